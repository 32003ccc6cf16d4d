"""One chat: create, send, read, cursors, archives, search; what is refused; what a full disk does."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from nbs_fleet.nbs import chat_file, files
from nbs_fleet.nbs.chat import Chat, ChatArgumentError, chat_files, is_archive
from nbs_fleet.nbs.chat_file import ChatMissingError
from nbs_fleet.nbs.chat_format import ChatMessage
from nbs_fleet.nbs.chat_select import Filters, Unread
from nbs_fleet.nbs.files import NbsFileError
from tests.nbs.conftest import Clock
from tests.support.nbs_reading import read_chat, read_cursors, tool_send, write_cursors


def path_of(chat: Chat) -> Path:
    return Path(chat.path)


def texts(messages: tuple[ChatMessage, ...]) -> list[str]:
    return [message.text for message in messages]


def fill(chat: Chat, number: int, handle: str = "ana") -> None:
    for n in range(number):
        chat.send(handle, str(n))


def test_the_known_history_gives_the_known_file(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    chat = Chat(str(tmp_path / "x.chat"), clock=clock)
    chat.create()
    chat.send("ana", "hi")
    clock.now += 5
    chat.send("bo", "hello\nthere")
    lines = path_of(chat).read_text().split("\n")
    assert lines[3:] == [
        "file-length: 181",
        "participants: ana(1), bo(1)",
        "---",
        "YW5hfDE3Nzc2MjYwMDA6IGhp",
        "Ym98MTc3NzYyNjAwNTogaGVsbG8KdGhlcmU=",
        "",
    ]
    assert lines[2] == "last-write: 2026-05-01T09:00:05+0000"
    assert path_of(chat).stat().st_size == 181


def test_a_new_chat_is_private_and_empty_and_made_once(chat: Chat) -> None:
    found = read_chat(path_of(chat))
    assert (found.fields["last-writer"], found.participants, found.lines) == ("system", {}, [])
    assert stat.S_IMODE(path_of(chat).stat().st_mode) == 0o600
    with pytest.raises(NbsFileError, match="File already exists") as caught:
        chat.create()
    assert caught.value.exit_code == 1
    assert os.listdir(path_of(chat).parent) == ["live.chat"]


def test_a_chat_can_be_made_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: str, target: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    chat = Chat(str(tmp_path / "x.chat"))
    chat.create()
    with pytest.raises(NbsFileError, match="File already exists"):
        chat.create()
    assert os.listdir(tmp_path) == ["x.chat"]
    assert chat.count() == 0


def test_a_chat_in_a_missing_folder_can_t_be_made(tmp_path: Path) -> None:
    with pytest.raises(NbsFileError, match="No such file or directory") as caught:
        Chat(str(tmp_path / "no" / "x.chat")).create()
    assert caught.value.exit_code == 1


def test_a_missing_chat_is_an_error_of_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    chat = Chat(str(tmp_path / "x.chat"))
    for act in (chat.count, lambda: chat.send("ana", "x"), lambda: chat.set_cursor("ana", 0)):
        with pytest.raises(ChatMissingError) as caught:
            act()
        assert caught.value.exit_code == 2
    assert os.listdir(tmp_path) == []


def test_what_is_no_chat_is_neither_read_nor_written(tmp_path: Path) -> None:
    path = tmp_path / "x.chat"
    path.write_text("notes\n")
    for act in (Chat(str(path)).count, lambda: Chat(str(path)).send("ana", "x")):
        with pytest.raises(NbsFileError, match="is no chat: it has no nbs-chat header"):
            act()
    assert path.read_text() == "notes\n"


def test_what_others_write_is_seen_without_reading_all_again(chat: Chat) -> None:
    fill(chat, 3)
    assert chat.count() == 3
    tool_send(path_of(chat), "bo", "one\ntwo", 1777626100)
    assert chat.messages()[-1] == ChatMessage("bo", 1777626100, "one\ntwo")
    assert chat.participants() == (("ana", 3), ("bo", 1))
    assert chat.cursor("bo") == 3


def test_reading_moves_the_cursor_only_once_it_is_said_so(chat: Chat) -> None:
    fill(chat, 3)
    for _ in range(2):
        selection = chat.read(unread="bo")
        assert (selection.start, texts(selection.messages)) == (0, ["0", "1", "2"])
    chat.mark_read("bo", selection)
    assert read_cursors(path_of(chat)) == {"ana": 2, "bo": 2}
    assert chat.read(unread="bo").messages == ()
    chat.send("ana", "3")
    assert texts(chat.read(unread="bo").messages) == ["3"]


def test_reading_nothing_leaves_no_cursor(chat: Chat) -> None:
    chat.mark_read("bo", chat.read(unread="bo"))
    assert read_cursors(path_of(chat)) == {}


def test_what_waits_is_counted_by_sender(chat: Chat) -> None:
    fill(chat, 2)
    chat.send("sidecar", "check in")
    assert chat.unread("bo") == Unread(3, 0, {"ana": 2, "sidecar": 1}, {"ana": 1, "sidecar": 2})
    assert chat.unread("sidecar") == Unread(3, 0, {"ana": 2, "sidecar": 1}, {"ana": 1, "sidecar": 2})
    assert chat.unread("ana") == Unread(1, 2, {"sidecar": 1}, {"sidecar": 2})


def test_messages_after_one_s_own_last(chat: Chat) -> None:
    for handle in ("ana", "bo", "ana", "cy"):
        chat.send(handle, f"by {handle}")
    assert texts(chat.read(after_own="ana").messages) == ["by cy"]
    assert texts(chat.read(after_own="bo").messages) == ["by ana", "by cy"]
    assert len(chat.read(after_own="nobody").messages) == 4


def test_filters_apply_in_the_order_of_the_nbs_tools(chat: Chat, clock: Clock) -> None:
    for n in range(6):
        clock.now = 1000.0 + n
        chat.send("ana", str(n))
    cases = {
        Filters(after=1002): "2345",
        Filters(before=1003): "0123",
        Filters(after=1001, before=1004): "1234",
        Filters(offset=2): "0123",
        Filters(offset=9): "",
        Filters(last=2): "45",
        Filters(last=0): "",
        Filters(after=1001, before=1004, offset=1, last=2): "23",
    }
    for filters, wanted in cases.items():
        assert "".join(texts(chat.read(filters=filters).messages)) == wanted


def test_the_53rd_handle_is_refused_before_anything_is_written(chat: Chat) -> None:
    for n in range(52):
        chat.send(f"h{n}", "x")
    before = path_of(chat).read_bytes()
    with pytest.raises(ChatArgumentError, match="h52 would be participant number 53") as caught:
        chat.send("h52", "x")
    assert caught.value.hint
    assert path_of(chat).read_bytes() == before
    assert chat.send("h51", "still fine").index == 52


@pytest.mark.parametrize(("handle", "text"), [("", "x"), ("a=b", "x"), ("x" * 64, "x"), ("ana", "a\0b")])
def test_what_could_not_be_read_back_is_refused(chat: Chat, handle: str, text: str) -> None:
    before = path_of(chat).read_bytes()
    with pytest.raises(ChatArgumentError) as caught:
        chat.send(handle, text)
    assert caught.value.exit_code == 4
    assert path_of(chat).read_bytes() == before


def test_a_cursor_can_t_be_set_beyond_the_last_message(chat: Chat) -> None:
    fill(chat, 3)
    chat.set_cursor("bo", 1)
    assert texts(chat.read(unread="bo").messages) == ["2"]
    chat.set_cursor("bo", 99)
    assert read_cursors(path_of(chat))["bo"] == 2
    for handle, index in (("bo", -1), ("a=b", 0)):
        with pytest.raises(ChatArgumentError):
            chat.set_cursor(handle, index)


def test_search_ignores_case_and_finds_archived_messages_last(chat: Chat, small: None) -> None:
    for n in range(21):
        chat.send("ana" if n % 2 else "bo", f"Word {n}")
    assert [(h.archive, h.index) for h in chat.search("word 1")] == [(None, n) for n in range(10)]
    found = list(chat.search("WORD 0", archives=True))
    assert [(h.archive, h.index, h.message.text) for h in found] == [
        (os.path.basename(chat.archives()[0]), 0, "Word 0")
    ]
    assert len(list(chat.search("", handle="ana"))) == 5
    assert list(chat.search("word", filters=Filters(after=2_000_000_000))) == []


def test_an_archive_is_made_as_the_nbs_tools_make_it(chat: Chat, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(chat, 20)
    chat.mark_read("bo", chat.read(unread="bo", filters=Filters(offset=8)))
    sent = chat.send("cy", "last")
    assert sent.index == 10
    assert sent.archive is not None
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(1_777_626_000))
    assert os.path.basename(sent.archive) == f"live-{stamp}-archive.chat"
    old = read_chat(Path(sent.archive))
    assert (old.fields["last-writer"], old.fields["participants"]) == ("system", "(archived)")
    assert [text for _, _, text in old.messages] == [str(n) for n in range(10)]
    new = read_chat(path_of(chat))
    assert [text for _, _, text in new.messages] == [*(str(n) for n in range(10, 20)), "last"]
    assert new.participants == {"ana": 20, "cy": 1}
    assert read_cursors(path_of(chat)) == {"ana": 9, "bo": 1}
    assert texts(chat.read(unread="bo").messages) == [*(str(n) for n in range(12, 20)), "last"]
    assert is_archive(sent.archive)
    assert chat_files(str(path_of(chat).parent)) == ()


def test_two_archives_of_one_second_do_not_replace_one_another(chat: Chat, small: None) -> None:
    fill(chat, 41)
    assert len(chat.archives()) == 3
    found = [text for path in chat.archives() for _, _, text in read_chat(Path(path)).messages]
    assert found + texts(chat.messages()) == [str(n) for n in range(41)]


def test_archives_of_another_chat_with_a_longer_name_are_not_ours(tmp_path: Path, clock: Clock, small: None) -> None:
    short, long = (Chat(str(tmp_path / f"{name}.chat"), clock=clock) for name in ("live", "live-20260501-090000"))
    for chat in (short, long):
        chat.create()
    fill(long, 21)
    assert short.archives() == ()
    assert len(long.archives()) == 1


def crash(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The process is gone at the renaming number `number` (counted from 0)."""
    real, left = os.replace, [number]

    def replace(source: str, target: str) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)


@pytest.mark.parametrize("step", range(5))
def test_an_archiving_that_is_killed_loses_and_doubles_nothing(
    chat: Chat, small: None, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    fill(chat, 20)
    chat.set_cursor("bo", 14)
    with monkeypatch.context() as patched:
        crash(patched, step)
        with pytest.raises(KeyboardInterrupt):
            chat.send("ana", "20")
    fresh = Chat(chat.path)
    there = "20" in texts(fresh.messages())
    fresh.send("ana", "21")
    archived = [text for path in fresh.archives() for _, _, text in read_chat(Path(path)).messages]
    wanted = [str(n) for n in range(20)] + ["20"] * there + ["21"]
    assert archived + texts(fresh.messages()) == wanted
    unread = texts(fresh.read(unread="bo").messages)
    assert unread == wanted[15:]
    leftovers = [name for name in os.listdir(path_of(chat).parent) if name.endswith(".next")]
    assert leftovers == []


def no_space(monkeypatch: pytest.MonkeyPatch, after: int = 0) -> None:
    """The disk takes only `after` more writings."""
    real, left = os.write, [after]

    def write(fd: int, data: bytes) -> int:
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= 1
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)


@pytest.mark.parametrize("after", [0, 1])
def test_a_full_disk_loses_nothing_and_is_said(chat: Chat, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    fill(chat, 2)
    before = path_of(chat).read_bytes()
    with monkeypatch.context() as patched:
        no_space(patched, after)
        with pytest.raises(NbsFileError, match="No space left") as caught:
            chat.send("ana", "2")
    assert "unharmed" in (caught.value.hint or "")
    assert path_of(chat).read_bytes() == before
    assert not Path(f"{chat.path}.tmp").exists()
    assert chat.count() == 2
    chat.send("ana", "2")
    assert texts(chat.messages()) == ["0", "1", "2"]


@pytest.mark.parametrize("after", range(2, 10))
def test_a_disk_that_is_full_while_archiving_loses_and_doubles_nothing(
    chat: Chat, small: None, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    fill(chat, 20)
    chat.set_cursor("bo", 14)
    with monkeypatch.context() as patched:
        no_space(patched, after)
        try:
            chat.send("ana", "20")
            sent = True
        except NbsFileError:
            sent = False
    assert ("20" in texts(Chat(chat.path).messages())) == sent
    chat.send("ana", "21")
    archived = [text for path in chat.archives() for _, _, text in read_chat(Path(path)).messages]
    wanted = [str(n) for n in range(20)] + ["20"] * sent + ["21"]
    assert archived + texts(chat.messages()) == wanted
    assert texts(chat.read(unread="bo").messages) == wanted[15:]


def test_a_cursor_that_can_t_be_written_does_not_unsay_a_message(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        no_space(patched, 2)
        assert chat.send("ana", "x").index == 0
    assert texts(chat.messages()) == ["x"]
    assert read_cursors(path_of(chat)) == {}


def test_a_lock_that_is_held_is_waited_for_and_then_named(chat: Chat) -> None:
    with files.record_lock(f"{chat.path}.lock"), pytest.raises(NbsFileError, match="held by this process after"):
        chat.send("ana", "x", timeout=0.05)
    assert chat.send("ana", "x").index == 0


def test_threads_of_one_process_do_not_break_each_other_s_lock(chat: Chat) -> None:
    def post(handle: str) -> None:
        own = Chat(chat.path)
        for n in range(20):
            own.send(handle, str(n))

    threads = [threading.Thread(target=post, args=(f"t{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    found = read_chat(path_of(chat))
    assert found.participants == dict.fromkeys(found.participants, 20)
    for handle in found.participants:
        assert [text for who, _, text in found.messages if who == handle] == [str(n) for n in range(20)]


def test_a_cursor_changed_twice_within_a_clock_tick_is_seen(chat: Chat) -> None:
    fill(chat, 5)
    for index in (1, 2, 3, 1, 2):
        write_cursors(path_of(chat), {"bo": index})
        assert chat.cursor("bo") == index


def test_one_reader_serves_all_handles_while_nothing_changes(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(chat, 3)
    old = time.time() - 60
    os.utime(f"{chat.path}.cursors", (old, old))
    assert chat.unread("bo") is chat.unread("bo")
    monkeypatch.setattr(os, "open", None)
    assert chat.unread("bo").count == 3
    assert chat.unread("ana").count == 0
    assert chat.count() == 3


def test_only_chats_that_are_no_archives_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / ".nbs" / "chat"
    folder.mkdir(parents=True)
    for name in ("b.chat", "a.chat", "a-20260501-090000-archive.chat", "a.chat.cursors", "a.chat.lock"):
        (folder / name).touch()
    assert chat_files(str(tmp_path)) == (str(folder / "a.chat"), str(folder / "b.chat"))
    assert chat_files(str(tmp_path / "none")) == ()


def test_the_limits_are_the_nbs_tools() -> None:
    assert (chat_file.ARCHIVE_ABOVE, chat_file.ARCHIVE_COUNT) == (2000, 1000)
