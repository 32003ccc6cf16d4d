"""Reads a client's own files for its sidecar: state file, transcript, hook spool. Effects only, no decisions."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable
from typing import Any, cast

import msgspec

from nbs_fleet import jsontext
from nbs_fleet.drivers import proofs
from nbs_fleet.drivers.base import Driver, Places, StateFile
from nbs_fleet.jsontext import MALFORMED
from nbs_fleet.launch import processes
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.model import ProcId
from nbs_fleet.sidecar.actions import SETTLED, HookSeen, TranscriptSeen

EDGE_BYTES = 65_536
"""How much of a transcript's head and tail is read."""
PAUSED_FILE = "paused"
"""In an agent's own folder: this agent alone is left in peace."""
HOOK_BYTES = 8_000_000
"""The largest hook payload that is read; a larger one is dropped."""


class StateFiles:
    """Finds and reads the state file of one client, also of one that a wrapper around it started."""

    def __init__(self, directory: str | None, proc: ProcId, driver: Driver) -> None:
        self.directory, self._proc, self._driver = directory, proc, driver
        self._name: str | None = None

    def changed(self, name: str) -> tuple[bool, StateFile | None]:
        """Whether a change of `name` concerns us, and what the file says now (None: it is gone or not ours)."""
        if self._name is None and not self._is_mine(name):
            return False, None
        if self._name is not None and name != self._name:
            return False, None
        return self._read(name)

    def find(self) -> tuple[bool, StateFile | None]:
        """Look for the file without a hint."""
        if self.directory is None:
            return False, None
        own = self._name or f"{self._proc.pid}.json"
        if os.path.exists(os.path.join(self.directory, own)):
            return self._read(own)
        names: list[str] = []
        with contextlib.suppress(OSError):
            names = [n for n in os.listdir(self.directory) if self._is_mine(n)]
        for name in names:
            seen, file = self._read(name)
            if file is not None:
                return seen, file
        return self._name is not None, None

    def _is_mine(self, name: str) -> bool:
        stem, _, ending = name.rpartition(".")
        if ending != "json" or not stem.isdigit():
            return False
        return int(stem) == self._proc.pid or self._proc in processes.ancestry(int(stem))

    def _read(self, name: str) -> tuple[bool, StateFile | None]:
        file = self._parse(name)
        if file is not None:
            self._name = name
        return self._name is not None, file

    def _parse(self, name: str) -> StateFile | None:
        try:
            with open(os.path.join(self.directory or "", name), encoding="utf-8") as file:
                found = self._driver.read_state_file(file.read(EDGE_BYTES))
        except (OSError, UnicodeDecodeError):
            return None
        if found is None:
            return None
        owner = processes.identify(found.pid)
        stale = owner is None or (found.start is not None and owner.start != found.start)
        return None if stale else found


def read_transcript(driver: Driver, path: str | None, since: int = 0) -> TranscriptSeen:
    """What head and tail of a transcript say, and its size; `since`: its bytes when this run of the client began."""
    head, tail = edges(path)
    size = size_of(path)
    fresh = driver.read_transcript(*edges(path, since)).prompts if 0 < since <= size else None
    return TranscriptSeen(driver.read_transcript(head, tail), size, fresh)


def size_of(path: str | None) -> int:
    """Bytes of a file; 0 if it is not there."""
    with contextlib.suppress(OSError):
        return os.stat(path).st_size if path is not None else 0
    return 0


def transcript_of(places: Places) -> str | None:
    """The session's own file; where only the client knows its whole name, the newest one that fits."""
    if places.transcript or not places.pattern:
        return places.transcript
    found = glob.glob(places.pattern, recursive=True)
    return max(found, key=lambda path: (os.path.getmtime(path) if os.path.exists(path) else 0.0, path), default=None)


def edges(path: str | None, since: int = 0) -> tuple[str, str]:
    """Head and tail of a file, or of what follows its first `since` bytes, as whole lines where possible.

    Two empty strings if it is not there.
    """
    if path is None:
        return "", ""
    try:
        with open(path, "rb") as file:
            file.seek(since)
            head = file.read(EDGE_BYTES)
            size = os.fstat(file.fileno()).st_size
            if size - since <= EDGE_BYTES:
                text = head.decode("utf-8", "replace")
                return text, text
            file.seek(size - EDGE_BYTES)
            tail = file.read(EDGE_BYTES)
    except OSError:
        return "", ""
    whole_head, _, _ = head.rpartition(b"\n")
    _, _, whole_tail = tail.partition(b"\n")
    return whole_head.decode("utf-8", "replace"), whole_tail.decode("utf-8", "replace")


def read_spool(driver: Driver, spool: str, odd: Callable[[str], None]) -> tuple[HookSeen, ...]:
    """The hook events that wait in the spool, oldest first; each file is removed once it is read.

    `odd` hears the name of a file that is damaged.
    """
    found: list[tuple[float, str]] = []
    try:
        with os.scandir(spool) as entries:
            for entry in entries:
                if entry.name.endswith(".json") and not entry.name.startswith("."):
                    with contextlib.suppress(OSError):
                        found.append((entry.stat().st_mtime, entry.path))
    except OSError:
        return ()
    seen: list[HookSeen] = []
    for at, path in sorted(found):
        event = _hook(driver, at, path)
        if event is not None:
            seen.append(event)
        elif not is_json(path):
            odd(os.path.basename(path))
        with contextlib.suppress(OSError):
            os.unlink(path)
    return tuple(seen)


def _hook(driver: Driver, at: float, path: str) -> HookSeen | None:
    try:
        if os.stat(path).st_size > HOOK_BYTES:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            news = driver.read_hook(file.read(), at)
    except OSError:
        return None
    if news is None:
        return None
    return HookSeen(news, at, proofs.in_prompt(news.prompt) if news.prompt else ())


def is_json(path: str) -> bool:
    """Whether a file holds JSON; one that is gone does."""
    try:
        with open(path, "rb") as file:
            jsontext.loads(file.read(HOOK_BYTES + 1).decode())
    except FileNotFoundError:
        return True
    except (OSError, *jsontext.MALFORMED):
        return False
    return True


def set_paused(agent_dir: str, *, paused: bool) -> None:
    """Leave one agent in peace, or no longer. FleetError: it can't be written."""
    path = os.path.join(agent_dir, PAUSED_FILE)
    if paused:
        write_atomic(path, "")
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def forget_signal(path: str) -> None:
    """What an agent said of itself is settled."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def settle_signal(path: str, at: float) -> None:
    """A person has heard what an agent said of itself, or that it said nothing: until its next turn nobody asks again.

    FleetError: it can't be written.
    """
    write_atomic(path, msgspec.json.encode({"kind": SETTLED, "message": "", "at": at}) + b"\n")


def read_signal(path: str) -> tuple[str | None, str]:
    """What an agent said of itself in its last turn, and its words; (None, "") if nothing.

    The hook of each prompt touches `turn` beside it: what was said before that is over.
    """
    turn = os.path.join(os.path.dirname(path), "turn")
    try:
        with open(path, "rb") as file:
            if os.path.exists(turn) and os.stat(turn).st_mtime_ns > os.fstat(file.fileno()).st_mtime_ns:
                return None, ""
            said = msgspec.json.decode(file.read(100_000))
    except (OSError, *MALFORMED):
        return None, ""
    if not isinstance(said, dict):
        return None, ""
    fields = cast("dict[str, Any]", said)
    kind, message = fields.get("kind"), fields.get("message")
    return (kind if isinstance(kind, str) else None), (message if isinstance(message, str) else "")
