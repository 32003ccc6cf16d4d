"""The story: what was seen and done, one JSON object per line, in bounded segments."""

from __future__ import annotations

import os
from typing import Any

from nbs_fleet import jsontext

SEGMENT_BYTES = 4_000_000
SEGMENTS = 5


class Story:
    """An append-only file `path` (0600) with older segments `path.1` .. `path.4`, newest first.

    Each segment begins with a full state, so that the ones before it can go. A full disk drops lines here
    and never stops the fleet: the story explains, it does not decide.
    """

    def __init__(self, path: str, *, mask: tuple[str, ...] = ()) -> None:
        self.path = path
        self._mask = tuple(sorted(mask, key=len, reverse=True))
        self.dropped = 0
        self.segment = 0
        """Counts the segments begun here: whoever goes on with something says at each how it stands."""

    def tell(self, at: float, what: str, /, **more: Any) -> None:
        """Append one line: wall seconds, a word for what happened, and its particulars."""
        line = jsontext.encode({"at": round(at, 3), "what": what, **more})
        for secret in self._mask:
            line = line.replace(jsontext.encode(secret)[1:-1], b"****")
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

    def _append(self, line: bytes) -> None:
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)
