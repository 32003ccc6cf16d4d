"""Any history of a chat, written by us and by others, read by us and by an independent reader, is the same history."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbs_fleet.nbs import chat_file
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.chat_format import decode_line
from nbs_fleet.nbs.chat_log import Log
from tests.support.nbs_reading import Model, read_chat, read_cursors, tool_send

ABOVE, COUNT = 12, 5
HANDLES = ("ana", "bo", "cy")
RAW = ("hello there", "abcd", "====", "YW5hOmhp", "not four", "x" * 41)
"""Lines that are no message."""

handles = st.sampled_from(HANDLES)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
steps = st.one_of(
    st.tuples(st.just("send"), handles, texts),
    st.tuples(st.just("send"), handles, texts),
    st.tuples(st.just("tool"), handles, texts),
    st.tuples(st.just("read"), handles, st.just("")),
    st.tuples(st.just("look"), handles, st.just("")),
    st.tuples(st.just("raw"), st.just(""), st.sampled_from(RAW)),
    st.tuples(st.just("cut off"), st.just(""), st.sampled_from(RAW)),
)


def perform(step: tuple[str, str, str], chat: Chat, model: Model) -> None:
    """One step of a history, in both worlds."""
    what, handle, text = step
    path = Path(chat.path)
    match what:
        case "send":
            chat.send(handle, text)
            model.send(handle, text)
        case "tool":
            tool_send(path, handle, text, 1_777_626_000)
            model.tool_send(handle, text)
        case "read":
            selection = chat.read(unread=handle)
            chat.mark_read(handle, selection)
            found = [(m.handle, m.text) for m in selection.messages]
            assert found == model.read_unread(handle)
        case "look":
            assert chat.unread(handle).count == len(model.messages) - model.cursor(handle) - 1
        case "raw" | "cut off":
            before = path.read_bytes()
            gap = "" if before.endswith(b"\n") else "\n"
            path.write_bytes(before + f"{gap}{text}".encode() + (b"\n" if what == "raw" else b""))
            model.lines.append(None)


def compare(chat: Chat, model: Model) -> None:
    """What we say, what the files say, and what the model says."""
    path = Path(chat.path)
    assert [(m.handle, m.text) for m in chat.messages()] == model.messages
    assert chat.count() == len(model.messages)
    assert chat.skipped() == sum(1 for line in model.lines if line is None)
    found = read_chat(path, touched=True)
    assert [(who, text) for who, _, text in found.messages] == model.messages
    assert found.participants == model.posted
    assert read_cursors(path) == model.cursors
    for handle in HANDLES:
        assert chat.cursor(handle) == model.cursor(handle)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(steps, max_size=60))
def test_any_history_reads_the_same(monkeypatch: pytest.MonkeyPatch, history: list[tuple[str, str, str]]) -> None:
    monkeypatch.setattr(chat_file, "ARCHIVE_ABOVE", ABOVE)
    monkeypatch.setattr(chat_file, "ARCHIVE_COUNT", COUNT)
    with tempfile.TemporaryDirectory() as folder:
        chat = Chat(f"{folder}/live.chat")
        chat.create()
        model = Model(ABOVE, COUNT)
        for step in history:
            perform(step, chat, model)
            compare(chat, model)
        compare(Chat(chat.path), model)
        chat.send("ana", "the end")
        model.send("ana", "the end")
        read_chat(Path(chat.path))
        archived = [read_chat(Path(path)) for path in chat.archives()]
        assert [[(w, t) for w, _, t in a.messages] for a in archived] == [[x for x in a if x] for a in model.archives]
        assert [a.skipped for a in archived] == [a.count(None) for a in model.archives]


@given(st.lists(st.one_of(st.binary(max_size=12), st.just(b"YW5hfDU6IGhp")), max_size=30), st.data())
def test_a_log_that_follows_a_file_is_the_log_of_the_file(lines: list[bytes], data: st.DataObject) -> None:
    body = b"\n".join(lines)
    followed = Log()
    for end in sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6))):
        followed.follow(body[:end], 0)
    followed.follow(body, 0)
    whole = Log()
    whole.follow(body, 0)
    assert followed.messages == whole.messages
    assert (followed.body, followed.skipped) == (whole.body, whole.skipped)
    found = [decode_line(line.rstrip(b"\r")) for line in body.split(b"\n") if line.rstrip(b"\r")]
    assert whole.messages == [message for message in found if message]
    assert whole.skipped == found.count(None)
    for index, message in enumerate(whole.messages):
        assert decode_line(whole.line(index)[:-1]) == message
