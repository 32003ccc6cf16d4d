"""Who is called in a message, and the events that come of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.model import Priority
from nbs_fleet.nbs.bridge import PAYLOAD_BYTES, events_folder, publish_message
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.mentions import MOST, Call, Mention, expanded, mentions


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@ana look", {"ana": Call.MENTION}),
        ("stop @ana! now, @bo? and @cy.", {"ana": Call.INTERRUPT, "bo": Call.QUERY, "cy": Call.MENTION}),
        (r"@ana\! and @bo\?", {"ana": Call.INTERRUPT, "bo": Call.QUERY}),
        ("@ana then @ana!", {"ana": Call.MENTION}),
        ("write to ana@example.org or x.y+z@bo", {}),
        ("(@ana) ,@bo;@cy", {"ana": Call.MENTION, "bo": Call.MENTION, "cy": Call.MENTION}),
        ("@ @! nothing", {}),
        ("@bo-1 and @bo_2", {"bo-1": Call.MENTION, "bo_2": Call.MENTION}),
        ("@" + "x" * 64, {}),
    ],
)
def test_mentions_of_a_message(text: str, found: dict[str, Call]) -> None:
    assert {mention.handle: mention.call for mention in mentions(text)} == found


def test_only_the_first_sixteen_count() -> None:
    assert len(mentions(" ".join(f"@h{n}" for n in range(30)))) == MOST


@given(st.text(max_size=80))
def test_any_text_has_distinct_mentions(text: str) -> None:
    found = [mention.handle for mention in mentions(text)]
    assert len(found) == len(set(found))
    assert all(f"@{handle}" in text for handle in found)


def test_the_team_is_the_roster_without_sender_and_sidecar() -> None:
    called = expanded(mentions("@team! and @bo"), "ana", ("ana", "bo", "cy", "sidecar"))
    assert called == (Mention("bo", Call.INTERRUPT), Mention("cy", Call.INTERRUPT))


def test_nobody_calls_oneself() -> None:
    assert expanded(mentions("@ana: note to myself"), "ana", ()) == ()


def bus_beside(folder: Path) -> tuple[Path, Bus]:
    for name in ("chat", "events"):
        (folder / ".nbs" / name).mkdir(parents=True)
    return folder / ".nbs" / "chat" / "live.chat", Bus(str(folder / ".nbs" / "events"))


def test_a_message_becomes_one_event_and_one_for_each_who_is_called(tmp_path: Path) -> None:
    chat, bus = bus_beside(tmp_path)
    assert publish_message(str(chat), "ana", "hello @bo! and @team", ("ana", "bo", "cy")) == ()
    found = {(e.type, e.priority, e.payload) for e in bus.pending().events}
    assert found == {
        ("chat-message", Priority.NORMAL, "ana: hello @bo! and @team"),
        ("chat-interrupt", Priority.CRITICAL, "@bo from ana: hello @bo! and @team"),
        ("chat-mention", Priority.HIGH, "@cy from ana: hello @bo! and @team"),
    }
    assert {e.source for e in bus.pending().events} == {"nbs-chat"}


def test_equal_messages_are_never_taken_for_duplicates(tmp_path: Path) -> None:
    chat, bus = bus_beside(tmp_path)
    Path(bus.folder, "config.yaml").write_text("dedup-window: 300\n")
    for _ in range(3):
        publish_message(str(chat), "ana", "again", ())
    assert len(bus.pending().events) == 3


def test_long_messages_are_cut_between_characters(tmp_path: Path) -> None:
    chat, bus = bus_beside(tmp_path)
    publish_message(str(chat), "ana", "é" * 3000, ())
    payload = bus.pending().events[0].payload
    assert PAYLOAD_BYTES - 1 <= len(payload.encode()) <= PAYLOAD_BYTES
    assert payload.startswith("ana: éé")


def test_without_a_bus_or_text_nothing_happens(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    if events_folder(str(folder / "x.chat")) is None:
        assert publish_message(str(folder / "x.chat"), "ana", "x", ()) == ()
    chat, bus = bus_beside(tmp_path)
    assert publish_message(str(chat), "ana", "", ()) == ()
    assert bus.pending().events == ()


def test_the_bus_is_found_from_the_chat_upwards(tmp_path: Path) -> None:
    _, bus = bus_beside(tmp_path)
    deep = tmp_path / "docs" / "deep"
    deep.mkdir(parents=True)
    assert events_folder(str(deep / "x.chat")) == bus.folder
    assert events_folder(str(tmp_path / ".nbs" / "chat" / "x.chat")) == bus.folder


def test_a_bus_that_fails_does_not_fail_the_message(tmp_path: Path) -> None:
    chat, bus = bus_beside(tmp_path)
    Path(bus.processed_folder).write_text("in the way")
    Path(bus.folder).chmod(0o500)
    try:
        problems = publish_message(str(chat), "ana", "@bo x", ())
    finally:
        Path(bus.folder).chmod(0o700)
    assert problems == () or len(problems) == 2  # root may write everywhere
