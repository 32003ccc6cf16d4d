"""The story: what was seen and done, one JSON object per line, in bounded segments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from nbs_fleet import jsontext
from nbs_fleet.launch.environment import MASK
from nbs_fleet.model import AgentState

SEGMENT_BYTES = 4_000_000
SEGMENTS = 5


LEFT = "left the team"
"""What a story says last of an agent that is not in the team file any more."""
_TAIL = 400_000
"""Bytes of a story's end that are read for what it remembers; what is told of each start is found in them or nowhere."""


class Memory(msgspec.Struct, frozen=True):
    """What a story still tells of its agent: the session of its last start, and its last state."""

    session: str | None
    state: AgentState


def recall(path: str) -> Memory | None:
    """What the story at `path` tells; None if it tells of no start, or last that the agent left the team."""
    session: str | None = None
    state = AgentState.STARTING
    started = False
    for entry in _entries(path):
        match entry:
            case {"what": "started"}:
                started, session, state = True, _text(entry.get("session")) or session, AgentState.STARTING
            case {"what": "state", "state": str(word)} if word in _STATES:
                state = AgentState(word)
            case {"what": "state", "state": {"session_id": str(known)}}:
                # The record that a segment begins with.
                started, session = True, known
            case {"what": what} if what == LEFT:
                started, session = False, None
            case _:
                pass
    return Memory(session, state) if started else None


def _entries(path: str) -> Iterator[dict[str, Any]]:
    """The last entries of a story, oldest first; damaged lines are left out."""
    try:
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - _TAIL))
            lines = file.read().split(b"\n")
    except OSError:
        return
    for line in lines:
        with suppress(*jsontext.MALFORMED):
            entry = jsontext.loads(line.decode())
            if isinstance(entry, dict):
                yield entry


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_STATES = frozenset(AgentState)


class Story:
    """An append-only file `path` (0600) with older segments `path.1` .. `path.4`, newest first.

    Each segment begins with a full state, so that the ones before it can go. A full disk drops lines here
    and never stops the fleet: the story explains, it does not decide.
    """

    def __init__(self, path: str, *, mask: tuple[str, ...] = ()) -> None:
        self.path = path
        self.hide(mask)
        self.dropped = 0
        self._file: int | None = None
        self._identity: tuple[int, int] | None = None
        self.segment = 0
        """Counts the segments begun here: whoever goes on with something says at each how it stands."""

    def hide(self, secrets: Iterable[str]) -> None:
        """Mask these values from now on, and no others."""
        self._hidden = frozenset(secrets)
        self._mask = tuple(jsontext.encode(secret)[1:-1] for secret in sorted(self._hidden, key=len, reverse=True))

    def hide_too(self, secrets: Iterable[str]) -> None:
        """Mask these values as well."""
        if more := frozenset(secrets) - self._hidden:
            self.hide(self._hidden | more)

    def tell(self, at: float, what: str, /, **more: Any) -> None:
        """Append one line: wall seconds, a word for what happened, and its particulars."""
        line = jsontext.encode({"at": round(at, 3), "what": what, **more})
        for secret in self._mask:
            line = line.replace(secret, MASK.encode())
        try:
            self._append(line + b"\n")
        except OSError:
            self.dropped += 1

    def is_full(self) -> bool:
        """Whether the next line should begin a new segment."""
        try:
            return os.stat(self.path).st_size >= SEGMENT_BYTES
        except OSError:
            return False

    def turn(self, at: float, state: Any) -> None:
        """Begin a new segment with the full state."""
        self.close()
        try:
            for number in range(SEGMENTS - 1, 0, -1):
                older = self.path if number == 1 else f"{self.path}.{number - 1}"
                if os.path.exists(older):
                    os.replace(older, f"{self.path}.{number}")
        except OSError:
            self.dropped += 1
            return
        self.segment += 1
        self.tell(at, "state", state=state)

    def close(self) -> None:
        """Let the file go; the next line opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        """As with any file: who forgets a story leaves nothing open."""
        self.close()

    def _append(self, line: bytes) -> None:
        # It stays open: each time it is closed, all who watch its folder are told.
        if self._file is not None and _identity(self.path) != self._identity:
            self.close()
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._identity = _identity(self.path)
        os.write(self._file, line)


def _identity(path: str) -> tuple[int, int] | None:
    """Which file this is; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
