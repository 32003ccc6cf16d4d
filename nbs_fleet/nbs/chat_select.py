"""Which messages of a chat are meant: unread ones, the last ones, those of a time, those with a word. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from nbs_fleet.nbs.chat_format import ChatMessage

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Filters(Struct, frozen=True):
    """What narrows a reading, in the order in which it is applied: times (0: none), then offset, then last."""

    after: int = 0
    before: int = 0
    offset: int = 0
    last: int | None = None


class Unread(Struct, frozen=True):
    """What waits in a chat for one handle: how many, the index of the first, how many by whom, the last of each.

    `newest` numbers messages from the first one that this process knew of: an archiving does not change it.
    """

    count: int
    first: int
    senders: dict[str, int]
    newest: dict[str, int] = {}


def since(messages: Sequence[ChatMessage], handle: str) -> int:
    """The index after the last message of `handle`; 0 if it has posted none."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].handle == handle:
            return index + 1
    return 0


def narrow(messages: Sequence[ChatMessage], start: int, filters: Filters) -> tuple[int, int]:
    """(start, end) of what the filters leave of the messages from `start` on."""
    end = len(messages)
    while filters.after and start < end and messages[start].at < filters.after:
        start += 1
    while filters.before and end > start and messages[end - 1].at > filters.before:
        end -= 1
    end = max(end - filters.offset, start)
    if filters.last is not None:
        start = max(start, end - filters.last)
    return start, end


def waiting(messages: Sequence[ChatMessage], cursor: int, gone: int) -> Unread:
    """What comes after the cursor; `gone` messages are in archives."""
    senders: dict[str, int] = {}
    newest: dict[str, int] = {}
    for index in range(cursor + 1, len(messages)):
        handle = messages[index].handle
        senders[handle] = senders.get(handle, 0) + 1
        newest[handle] = gone + index
    return Unread(len(messages) - cursor - 1, cursor + 1, senders, newest)


def matches(message: ChatMessage, pattern: str, handle: str | None, filters: Filters) -> bool:
    """Whether a search finds this message; upper and lower case are the same, an empty pattern fits everything."""
    if handle is not None and message.handle != handle:
        return False
    if message.at < filters.after or (filters.before and message.at > filters.before):
        return False
    return pattern.lower() in message.text.lower()


def moment(text: str, now: float) -> int:
    """Seconds since the epoch of `30s`, `5m`, `2h`, `1d` (ago), of at least ten digits, or of ISO local time.

    Raises ValueError.
    """
    if text.isascii() and text[:-1].isdigit() and text[-1] in _UNITS:
        return int(now) - int(text[:-1]) * _UNITS[text[-1]]
    if text.isascii() and text.isdigit() and 10 <= len(text) <= 12:
        return int(text)
    try:
        return int(datetime.fromisoformat(text).timestamp()) if "-" in text else _refuse()
    except (ValueError, OverflowError):
        return _refuse()


def _refuse() -> int:
    raise ValueError("is no time; write 30s, 5m, 2h or 1d (ago), seconds since 1970, or 2026-05-01T09:00:05")
