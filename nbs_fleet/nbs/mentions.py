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
    """What a mention asks for; the value is the type of its event."""

    MENTION = "chat-mention"
    INTERRUPT = "chat-interrupt"
    QUERY = "chat-query"

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
    """One mention per recipient: `@team` becomes everybody of the roster but the sender and the sidecar.

    Who is called by name and as one of the team is called by name only.
    """
    every = tuple(called)
    named = {mention.handle for mention in every if mention.handle != TEAM}
    found: dict[str, Mention] = {}
    for mention in every:
        if mention.handle != TEAM:
            found.setdefault(mention.handle, mention)
            continue
        for handle in roster:
            if handle not in (sender, "sidecar") and handle not in named:
                found.setdefault(handle, Mention(handle, mention.call))
    return tuple(found.values())
