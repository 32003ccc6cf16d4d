"""The session's transcript: one JSON line per thing that happened, flushed in batches (Claude Code 2.1.197)."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from nbs_fleet.sim.args import VERSION
from nbs_fleet.sim.kernel import Loop, Timer

FLUSH_SECONDS = 0.1

Json = dict[str, Any]


def stamp(at: float | None = None) -> str:
    """An instant as the transcript writes it: 2026-01-31T23:59:59.123Z."""
    at = time.time() if at is None else at
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03d}Z"


def new_uuid() -> str:
    """A random UUID, version 4."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Transcript:
    """Appends to `path`; nothing is created before the first line. `off` keeps everything in memory only."""

    def __init__(self, loop: Loop, path: str, session_id: str, cwd: str, *, off: bool) -> None:
        self.loop = loop
        self.path = path
        self.session_id = session_id
        self.cwd = cwd
        self.off = off
        self.parent: str | None = None
        self.count = 0
        self.lines: list[str] = []
        self.timer: Timer | None = None

    def exists(self) -> bool:
        """Whether there is something to resume."""
        return os.path.exists(self.path)

    def raw(self, line: Json) -> None:
        """A bookkeeping line: type, own fields, sessionId."""
        self._push(line)

    def add(self, line: Json, **extra: Any) -> str:
        """A line of the conversation: linked to the one before, with the common envelope. Returns its uuid."""
        uuid = line.get("uuid") or new_uuid()
        full: Json = {"parentUuid": self.parent, "isSidechain": False, **line}
        full["uuid"] = uuid
        full.setdefault("timestamp", stamp())
        full.update(extra)
        full.update(
            userType="external",
            entrypoint="cli",
            cwd=self.cwd,
            sessionId=self.session_id,
            version=VERSION,
            gitBranch="HEAD",
        )
        self.parent = uuid
        self.count += 1
        self._push(full)
        return uuid

    def header(self, name: str | None, mode: str) -> None:
        """The bookkeeping lines at the head of a session's lines."""
        if name is not None:
            self.raw({"type": "custom-title", "customTitle": name, "sessionId": self.session_id})
            self.raw({"type": "agent-name", "agentName": name, "sessionId": self.session_id})
        self.raw({"type": "mode", "mode": "normal", "sessionId": self.session_id})
        self.raw({"type": "permission-mode", "permissionMode": mode, "sessionId": self.session_id})

    def queue(self, operation: str, content: str | None = None) -> None:
        """enqueue, dequeue, remove or popAll; written at once, before what waits to be flushed."""
        line: Json = {
            "type": "queue-operation",
            "operation": operation,
            "timestamp": stamp(),
            "sessionId": self.session_id,
        }
        if content is not None:
            line["content"] = content
        if not self.off:
            self._write([json.dumps(line, separators=(",", ":"), ensure_ascii=False)])

    def _push(self, line: Json) -> None:
        if self.off:
            return
        self.lines.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False))
        if self.timer is None:
            self.timer = self.loop.call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what is waiting. A folder that can't be written loses the lines, as it does for the real client."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        lines, self.lines = self.lines, []
        if lines:
            self._write(lines)

    def _write(self, lines: list[str]) -> None:
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            with open(self.path, "a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        except OSError:
            return


def read(path: str) -> list[Json]:
    """The lines of a transcript that are JSON objects; a torn last line is left out. OSError if it can't be read."""
    found: list[Json] = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                found.append(line)
    return found
