"""From a chat message to bus events: one for the message, one for each who is called in it; as nbs-chat does."""

from __future__ import annotations

import os
from collections.abc import Iterable

from nbs_fleet.model import Priority
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat_format import to_bytes, to_text
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.nbs.mentions import expanded, mentions

SOURCE = "nbs-chat"
PAYLOAD_BYTES = 2047
"""Longer payloads are cut: the whole message is in the chat."""
_LEVELS = 10


def events_folder(chat_path: str) -> str | None:
    """The events directory that belongs to a chat: beside its folder, or in a `.nbs` on the way up; None without."""
    folder = os.path.dirname(os.path.abspath(chat_path))
    for _ in range(_LEVELS):
        for place in (os.path.join(folder, "..", "events"), os.path.join(folder, ".nbs", "events")):
            if os.path.isdir(place):
                return os.path.realpath(place)
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return None


def publish_message(chat_path: str, sender: str, text: str, roster: Iterable[str]) -> tuple[str, ...]:
    """Publish what a message that was just sent means to the bus; returns what went wrong, which undoes nothing.

    `roster` is who `@team` stands for: the team's handles, or the chat's participants where no team is known.
    """
    folder = events_folder(chat_path)
    if folder is None or not text:
        return ()
    bus = Bus(folder)
    problems: list[str] = []
    for kind, priority, payload in _events(sender, text, roster):
        try:
            bus.publish(SOURCE, kind, priority, payload, dedup_window=0)
        except NbsFileError as error:
            problems.append(error.message)
    return tuple(problems)


def _events(sender: str, text: str, roster: Iterable[str]) -> list[tuple[str, Priority, str]]:
    found = [("chat-message", Priority.NORMAL, _cut(f"{sender}: {text}"))]
    for mention in expanded(mentions(text), sender, roster):
        payload = _cut(f"@{mention.handle} from {sender}: {text}")
        found.append((str(mention.call), mention.call.priority, payload))
    return found


def _cut(text: str) -> str:
    """The text up to the most bytes a payload may have; never in the middle of a character."""
    data = to_bytes(text)
    if len(data) <= PAYLOAD_BYTES:
        return text
    end = PAYLOAD_BYTES
    while end and data[end] & 0xC0 == 0x80:
        end -= 1
    return to_text(data[:end])
