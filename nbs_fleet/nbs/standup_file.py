"""A chat's standups, each posted once whoever dies on the way: `<chat>.standup-ts`, shared with the nbs tools' sidecars.

The nbs tools know the time file only. Whoever takes the turn first writes beside it what it is about to do, then the
time, then the message, all under the chat's lock; what a dead one left half done is undone, or seen to be done, by the
next one who looks.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import LOCK_TIMEOUT, NbsFileError, read_bytes, remove, replace


class Turn(Struct, frozen=True):
    """A turn that was taken: its wall second, and the time that stood in the file before (None: no file)."""

    at: int
    before: int | None


def standup_path(chat_path: str) -> str:
    """Where the time of the last standup stands."""
    return f"{chat_path}.standup-ts"


def turn_path(chat_path: str) -> str:
    """Where stands whose turn is not over yet."""
    return f"{standup_path(chat_path)}.turn"


def last_standup(chat: Chat, handle: str, text: str) -> float | None:
    """Seconds since the epoch of the last standup; None if there was none, or the file can't be understood.

    A turn that was taken by one who died before `handle` had posted `text` does not count. Takes no lock.
    """
    # In this order: who reads the time of a turn finds the turn, or its end.
    last = _time(chat.path)
    turn = _turn(chat.path)
    if turn is not None and last == turn.at and not _is_posted(chat, turn, handle, text):
        last = turn.before
    return None if last is None else float(last)


def hold(chat: Chat, handle: str, text: str, now: float, every: float, *, timeout: float = LOCK_TIMEOUT) -> bool:
    """Post a standup at `now`; True for exactly one of all who try within an interval of `every` seconds.

    A last one that lies `every` seconds or more in the future (the clock was set back) is over. Raises NbsFileError:
    then nothing was posted, and the turn is free again.
    """
    with chat.writing(timeout=timeout) as post:
        _settle(chat, handle, text)
        last = _time(chat.path)
        if last is not None and abs(now - last) < every:
            return False
        turn = Turn(int(now), last)
        path, before = turn_path(chat.path), b"-" if last is None else b"%d" % last
        replace(path, b"%d %s\n" % (turn.at, before), temporary=f"{path}.tmp")
        try:
            _write_time(chat.path, turn.at)
            post(handle, text, turn.at)
        except NbsFileError:
            with suppress(NbsFileError):
                _settle(chat, handle, text)
            raise
        with suppress(NbsFileError):
            # It is posted: the next one who looks finds that, too.
            remove(path)
        return True


def _settle(chat: Chat, handle: str, text: str) -> None:
    """Give a turn back that was taken and not used; the lock is held, so who took it is dead."""
    turn = _turn(chat.path)
    if turn is None:
        return
    if _time(chat.path) == turn.at and not _is_posted(chat, turn, handle, text):
        if turn.before is None:
            remove(standup_path(chat.path))
        else:
            _write_time(chat.path, turn.before)
    remove(turn_path(chat.path))


def _is_posted(chat: Chat, turn: Turn, handle: str, text: str) -> bool:
    """Whether the message of a turn is in the chat, or was moved into an archive meanwhile."""
    found = chat.search(text, handle=handle, archives=True)
    return any(hit.message.at == turn.at and hit.message.text == text for hit in found)


def _time(chat_path: str) -> int | None:
    return _number((read_bytes(standup_path(chat_path)) or b"")[:64].split(b"\n")[0].strip())


def _write_time(chat_path: str, at: int) -> None:
    path = standup_path(chat_path)
    replace(path, b"%d\n" % at, temporary=f"{path}.tmp")


def _turn(chat_path: str) -> Turn | None:
    words = (read_bytes(turn_path(chat_path)) or b"")[:64].split()
    at = _number(words[0]) if len(words) == 2 else None
    return None if at is None else Turn(at, _number(words[1]))


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() and len(text) < 13 else None
