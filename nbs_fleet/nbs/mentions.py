"""Who is called in a chat message: `@handle`, `@handle!` (interrupt), `@handle?` (show your screen), `@team`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from nbs_fleet.model import Priority
from nbs_fleet.nbs.bus_format import TEAM

MOST = 16
"""Mentions that count in one message, as with the nbs tools."""
_MENTION = re.compile(r"(?<![A-Za-z0-9._+-])@([A-Za-z0-9_-]+)(\\?[!?])?")
"""Not in an e-mail address. A backslash is what models put before `!`."""
_HANDLE_BYTES = 63


class Call(StrEnum):
    """What a mention asks for, the most urgent last; the value is the type of its event."""

    MENTION = "chat-mention"
    QUERY = "chat-query"
    INTERRUPT = "chat-interrupt"

    @property
    def priority(self) -> Priority:
        """How urgent its event is."""
        return Priority.CRITICAL if self is Call.INTERRUPT else Priority.HIGH


class Mention(Struct, frozen=True):
    """One call: for whom, and what it asks."""

    handle: str
    call: Call


def mentions(text: str) -> tuple[Mention, ...]:
    """The first distinct handles of a message; of one called twice, the first call counts."""
    found: dict[str, Call] = {}
    for match in _MENTION.finditer(text):
        if len(found) == MOST:
            break
        handle, mark = match[1], (match[2] or "")[-1:]
        if len(handle) <= _HANDLE_BYTES:
            found.setdefault(handle, {"!": Call.INTERRUPT, "?": Call.QUERY}.get(mark, Call.MENTION))
    return tuple(Mention(handle, call) for handle, call in found.items())


def expanded(called: Iterable[Mention], sender: str, roster: Iterable[str]) -> tuple[Mention, ...]:
    """One mention per recipient: `@team` becomes everybody of the roster but the sidecar; never the sender.

    Of two calls for the same recipient the more urgent one is left.
    """
    members = tuple(handle for handle in roster if handle != "sidecar")
    found: dict[str, Call] = {}
    for mention in called:
        for handle in members if mention.handle == TEAM else (mention.handle,):
            if handle != sender:
                found[handle] = max(mention.call, found.get(handle, mention.call), key=tuple(Call).index)
    return tuple(Mention(handle, call) for handle, call in found.items())
