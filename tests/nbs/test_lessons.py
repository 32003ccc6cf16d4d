"""What the nbs tools learned the hard way about their files, each under the number of its lesson."""

from __future__ import annotations

import base64
import inspect
import os
from pathlib import Path

import pytest

from nbs_fleet.model import Priority
from nbs_fleet.nbs import chat_file, chat_format, presence, pythia_files, standup_file
from nbs_fleet.nbs.bridge import publish_message
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.chat_format import ChatMessage
from nbs_fleet.nbs.files import NbsFileError, record_lock
from tests.support.nbs_reading import read_chat, read_cursors, write_cursors


def path_of(chat: Chat) -> Path:
    return Path(chat.path)


def fill(chat: Chat, number: int, handle: str = "ana") -> None:
    for n in range(number):
        chat.send(handle, str(n))


def append(chat: Chat, *lines: str) -> None:
    """Lines that somebody wrote into the file by hand."""
    with path_of(chat).open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


@pytest.fixture
def bus(tmp_path: Path) -> Bus:
    for name in ("chat", "events"):
        (tmp_path / ".nbs" / name).mkdir(parents=True)
    return Bus(str(tmp_path / ".nbs" / "events"))


def beside(bus: Bus) -> str:
    """A chat that belongs to this bus."""
    return os.path.join(os.path.dirname(bus.folder), "chat", "live.chat")


def test_l1_a_cursor_set_at_a_restart_never_hides_the_next_message(chat: Chat) -> None:
    fill(chat, 3)
    chat.set_cursor("bo", chat.count())
    chat.send("ana", "the next")
    assert [m.text for m in chat.read(unread="bo").messages] == ["the next"]


def test_l2_to_replay_messages_the_cursor_is_set_as_many_below_the_last(chat: Chat) -> None:
    fill(chat, 6)
    chat.set_cursor("bo", chat.count() - 1 - 2)
    assert chat.unread("bo").count == 2


def test_l3_cursors_are_written_under_the_lock_of_the_chat(chat: Chat) -> None:
    fill(chat, 2)
    selection = chat.read(unread="bo")
    with record_lock(f"{chat.path}.lock"):
        with pytest.raises(NbsFileError, match="still held"):
            chat.set_cursor("bo", 1, timeout=0.01)
        with pytest.raises(NbsFileError, match="still held"):
            chat.mark_read("bo", selection, timeout=0.01)
    assert read_cursors(path_of(chat)) == {"ana": 1}


def test_l4_messages_begin_after_the_separator_however_long_the_header_is(chat: Chat) -> None:
    fill(chat, 2)
    data = path_of(chat).read_bytes().replace(b"---\n", b"topic: new in some version\n---\n", 1)
    path_of(chat).write_bytes(data)
    assert (chat.count(), chat.skipped()) == (2, 0)


def test_l9_a_cursor_beyond_the_end_is_taken_as_the_end_and_written_back(chat: Chat) -> None:
    fill(chat, 3)
    write_cursors(path_of(chat), {"bo": 1500})
    assert chat.unread("bo").count == 0
    chat.mark_read("bo", chat.read(unread="bo"))
    assert read_cursors(path_of(chat))["bo"] == 2
    chat.send("ana", "3")
    assert chat.unread("bo").count == 1


def test_l10_a_reader_that_saw_more_messages_before_an_archive_goes_on(chat: Chat, small: None) -> None:
    reader = Chat(chat.path)
    fill(chat, 20)
    reader.mark_read("bo", reader.read(unread="bo"))
    assert reader.unread("bo").count == 0
    assert chat.send("ana", "20").archive
    assert [m.text for m in reader.read(unread="bo").messages] == ["20"]


def test_l10_what_was_read_before_an_archive_is_marked_where_it_is_after_it(chat: Chat, small: None) -> None:
    fill(chat, 20)
    selection = chat.read(unread="bo")
    assert chat.send("ana", "20").archive
    chat.mark_read("bo", selection)
    assert [m.text for m in chat.read(unread="bo").messages] == ["20"]


def test_l11_one_s_own_message_is_not_unread(chat: Chat) -> None:
    chat.send("ana", "x")
    chat.send("ana", "y")
    assert chat.unread("ana").count == 0


def test_l11_posting_does_not_hide_what_one_has_not_read(chat: Chat) -> None:
    chat.send("ana", "important")
    chat.send("bo", "hello")
    assert [m.text for m in chat.read(unread="bo").messages] == ["important", "hello"]
    chat.mark_read("bo", chat.read(unread="bo"))
    chat.send("bo", "more")
    assert chat.unread("bo").count == 0


def test_l12_without_a_cursor_the_first_message_counts(chat: Chat) -> None:
    chat.send("ana", "the first")
    assert chat.cursor("bo") == -1
    assert (chat.unread("bo").count, chat.unread("bo").first) == (1, 0)


def test_l13_lines_that_are_no_message_have_no_index_anywhere(chat: Chat) -> None:
    fill(chat, 2)
    append(chat, "raw text", "abcd")
    chat.send("ana", "2")
    assert (chat.count(), chat.skipped()) == (3, 2)
    chat.mark_read("bo", chat.read(unread="bo"))
    assert chat.unread("bo").count == 0
    assert read_cursors(path_of(chat)) == {"ana": 2, "bo": 2}
    assert [hit.index for hit in chat.search("2")] == [2]


def test_l13_an_archive_with_such_lines_moves_cursors_by_its_messages(chat: Chat, small: None) -> None:
    fill(chat, 4)
    append(chat, "raw text", "more of it")
    for n in range(4, 20):
        chat.send("ana", str(n))
    chat.set_cursor("bo", 14)
    assert chat.send("ana", "20").archive
    assert [m.text for m in chat.read(unread="bo").messages] == [str(n) for n in range(15, 21)]
    archived, left = read_chat(Path(chat.archives()[0])), read_chat(path_of(chat))
    assert (archived.skipped, left.skipped) == (2, 0)
    assert [text for _, _, text in (*archived.messages, *left.messages)] == [str(n) for n in range(21)]
    assert left.messages[0][2] == str(chat_file.ARCHIVE_COUNT)


def test_l14_what_came_before_one_s_own_post_is_still_unread(chat: Chat) -> None:
    chat.send("ana", "question")
    chat.send("bo", "busy")
    assert chat.read(after_own="bo").messages == ()
    assert [m.text for m in chat.read(unread="bo").messages] == ["question", "busy"]


def test_l16_looking_at_what_waits_moves_no_cursor(chat: Chat) -> None:
    fill(chat, 3)
    before = read_cursors(path_of(chat))
    for _ in range(2):
        assert chat.unread("bo").count == 3
        assert len(chat.read(unread="bo").messages) == 3
    assert read_cursors(path_of(chat)) == before


def test_l16_two_readers_of_one_handle_never_move_it_back(chat: Chat) -> None:
    fill(chat, 3)
    slow = Chat(chat.path).read(unread="bo")
    chat.send("ana", "3")
    chat.mark_read("bo", chat.read(unread="bo"))
    chat.mark_read("bo", slow)
    assert read_cursors(path_of(chat))["bo"] == 3


def test_l21_a_living_process_under_the_same_handle_is_a_collision(tmp_path: Path) -> None:
    process = tmp_path / "proc" / "77"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"/opt/nbs-sidecar\0--handle=ana\0")
    (tmp_path / ".nbs" / "pids").mkdir(parents=True)
    Path(presence.sidecar_path(str(tmp_path), "ana")).write_text("77")
    with pytest.raises(presence.CollisionError):
        presence.refuse_foreign(str(tmp_path), "ana", proc=str(tmp_path / "proc"))
    presence.refuse_foreign(str(tmp_path), "an", proc=str(tmp_path / "proc"))


def test_l27_acknowledging_one_s_own_events_leaves_those_of_others(bus: Bus) -> None:
    publish_message(beside(bus), "ana", "@bo and @cy! look", ())
    for event in bus.pending().events:
        if event.addressee == "bo":
            bus.ack(event.name)
    assert {event.addressee for event in bus.pending().events} == {"cy", None}


def test_l40_a_handle_that_begins_another_is_not_that_other(bus: Bus) -> None:
    publish_message(beside(bus), "cy", "@ana2 tell @ann about @ana", ())
    mine = [event for event in bus.pending().events if event.concerns("ana", ("ana", "ana2", "ann"))]
    assert [event.addressee for event in mine] == ["ana"]
    assert sum(event.concerns("ana2", ()) for event in bus.pending().events) == 1


def test_l41_a_call_to_the_team_is_one_event_for_each(bus: Bus) -> None:
    publish_message(beside(bus), "ana", "@team stand up", ("ana", "bo", "cy"))
    called = sorted(event.addressee or "" for event in bus.pending().events if event.type == "chat-mention")
    assert called == ["bo", "cy"]


def test_l41_a_shared_event_for_the_team_concerns_the_whole_roster(bus: Bus) -> None:
    bus.publish("x", "note", Priority.NORMAL, "@team from x: all", dedup_window=0)
    (event,) = bus.pending().events
    assert [event.concerns(handle, ("ana", "bo")) for handle in ("ana", "bo", "stranger")] == [True, True, False]


def test_l42_who_has_never_posted_is_still_on_the_team(bus: Bus) -> None:
    chat = Chat(beside(bus))
    chat.create()
    chat.send("ana", "@team hello")
    publish_message(chat.path, "ana", "@team hello", ("ana", "medic"))
    assert [e.addressee for e in bus.pending().events if e.type == "chat-mention"] == ["medic"]


def test_l61_a_line_may_be_as_long_as_a_message_may_be(chat: Chat) -> None:
    long = "x" * (chat_format.MESSAGE_BYTES - 100)
    chat.send("ana", long)
    chat.send("ana", "after")
    assert [len(m.text) for m in Chat(chat.path).messages()] == [len(long), 5]


def test_l63_that_only_a_machine_has_posted_is_told_by_author_without_moving_a_cursor(chat: Chat) -> None:
    chat.send("sidecar", "check in")
    assert set(chat.unread("bo").senders) == {"sidecar"}
    chat.send("ana", "hello")
    assert set(chat.unread("bo").senders) == {"sidecar", "ana"}
    assert chat.cursor("bo") == -1


def test_l66_shared_state_is_looked_at_again_under_its_lock(tmp_path: Path, bus: Bus) -> None:
    seen: list[int | None] = []

    def decide(last: int | None) -> tuple[int | None, str | None]:
        seen.append(last)
        return (1, "look") if last is None else (None, None)

    assert [len(pythia_files.advance(str(tmp_path), bus, decide)) for _ in range(3)] == [1, 0, 0]
    assert seen == [None, 1, 1]


def test_l66_one_standup_for_any_number_of_sidecars(chat: Chat) -> None:
    held = [standup_file.hold(Chat(chat.path), "sidecar", "check in", 5000.0 + n, 900.0) for n in range(5)]
    assert held == [True, *[False] * 4]


def test_l67_the_last_bucket_outlives_a_restart_and_may_be_set_lower(tmp_path: Path, bus: Bus) -> None:
    pythia_files.advance(str(tmp_path), bus, lambda last: (7, None))
    assert pythia_files.last_bucket(str(tmp_path)) == 7
    pythia_files.advance(str(tmp_path), bus, lambda last: (2, None))
    assert pythia_files.last_bucket(str(tmp_path)) == 2


def test_l68_the_scribe_log_is_that_of_the_chat(tmp_path: Path) -> None:
    for name, number in (("live", 3), ("x", 5)):
        path = Path(pythia_files.scribe_log(str(tmp_path), name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("### D-1 a\n" * number)
    counted = [pythia_files.count_decisions(str(tmp_path), name, str(tmp_path)).count for name in ("live", "x")]
    assert counted == [3, 5]
    assert (tmp_path / ".nbs" / "scribe" / "x-log.md").is_file()


def test_l75_no_event_is_invisible_however_many_wait(bus: Bus) -> None:
    for n in range(260):
        Path(bus.folder, f"{n + 1}-a-x-1.event").write_text("source: a\ntype: x\npriority: low\n")
    Path(bus.folder, "999999-a-x-1.event").write_text("source: a\ntype: x\npriority: critical\n")
    events = bus.pending().events
    assert len(events) == 261
    assert events[0].priority is Priority.CRITICAL


def test_l76_raw_text_in_a_chat_file_is_skipped_counted_and_kept(chat: Chat) -> None:
    fill(chat, 1)
    append(chat, "I write straight into the file")
    fill(chat, 1)
    assert (chat.count(), chat.skipped()) == (2, 1)
    assert "I write straight into the file" in read_chat(path_of(chat)).lines


def test_l77_nobody_writes_into_a_file_that_others_may_be_reading(chat: Chat) -> None:
    fill(chat, 1)
    with path_of(chat).open("rb") as reader:
        before = reader.read()
        fill(chat, 1)
        reader.seek(0)
        assert reader.read() == before


def test_l78_metadata_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = presence.Session("id", "ana", "m", "t", "/", 1, initial_prompt_set=False)
    presence.write_session(str(tmp_path), session)

    def write(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with pytest.raises(NbsFileError, match="No space left"):
            presence.write_session(
                str(tmp_path), presence.Session("new", "ana", "m", "t", "/", 1, initial_prompt_set=True)
            )
    assert presence.read_session(str(tmp_path), "ana") == session
    assert os.listdir(tmp_path / ".nbs" / "sessions") == ["ana.json"]


def test_l80_a_pause_is_seen_by_whoever_looks_and_made_by_whoever_wants(tmp_path: Path) -> None:
    (tmp_path / ".nbs").mkdir()
    Path(presence.pause_path(str(tmp_path))).write_text("by a person, with the nbs tools")
    assert presence.paused(str(tmp_path))


def test_messages_of_old_binaries_are_read_beside_new_ones(chat: Chat) -> None:
    for raw in ("ana: of old", "ana|1777626000|c2ln: signed"):
        append(chat, base64.b64encode(raw.encode()).decode())
    chat.send("ana", "new")
    assert chat.messages()[:2] == (ChatMessage("ana", 0, "of old"), ChatMessage("ana", 1777626000, "signed"))


def test_no_writer_forgets_its_lock_timeout() -> None:
    for name in ("send", "mark_read", "set_cursor"):
        assert inspect.signature(getattr(Chat, name)).parameters["timeout"].default == 10.0
