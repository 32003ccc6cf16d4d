"""What is newest in a chat keeps its number whatever others do to the file: a notice goes by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbs_fleet.nbs.chat import Chat


@pytest.fixture
def other(chat: Chat, small: None) -> Chat:
    """The same chat as another process has it, with 20 messages; one more makes an archive of ten."""
    made = Chat(chat.path)
    for n in range(20):
        made.send("ana", str(n))
    assert newest(chat) == 19
    return made


def newest(chat: Chat) -> int:
    """The number of ana's newest message."""
    return chat.unread("bo").newest["ana"]


def test_an_archiving_by_another_changes_no_number(chat: Chat, other: Chat) -> None:
    assert other.send("ana", "one more").archive
    assert (chat.count(), newest(chat), newest(other)) == (11, 20, 20)


def test_after_more_than_was_known_the_newest_is_still_newer(chat: Chat, other: Chat) -> None:
    for n in range(60):
        other.send("ana", f"more {n}")
    assert newest(chat) > 19


def test_a_chat_that_lost_its_end_or_was_mended_has_nothing_new(chat: Chat, other: Chat) -> None:
    path = Path(chat.path)
    path.write_bytes(path.read_bytes() + b"no message\n")
    assert newest(chat) == 19
    path.write_bytes(path.read_bytes().replace(b"no message", b"          "))
    assert newest(chat) == 19
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-4]))
    assert newest(chat) == 16


def test_a_chat_begun_anew_has_something_new(chat: Chat, other: Chat) -> None:
    Path(chat.path).unlink()
    Chat(chat.path).create()
    assert chat.unread("bo").count == 0
    other.send("ana", "hello again")
    assert newest(chat) >= 0
