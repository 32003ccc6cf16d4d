"""Value types that all stages share: states, identities, evidence."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class AgentState(StrEnum):
    """What an agent is doing; the table of transitions is `sidecar/states.py`."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    BLOCKED = "blocked"
    LIMITED = "limited"
    COMPACTING = "compacting"
    PAUSED = "paused"
    BACKOFF = "backoff"
    STOPPED = "stopped"
    FAILED = "failed"
    UNKNOWN = "unknown"


class BlockedKind(StrEnum):
    """What a blocked agent waits for."""

    TRUST = "trust"
    BYPASS = "bypass"
    MCP = "mcp"
    SETUP = "setup"
    APIKEY = "apikey"
    LOGIN = "login"
    SETTINGS = "settings"
    RESUME = "resume"
    PLAN = "plan"
    PERMISSION = "permission"
    QUESTION = "question"
    DRAFT = "draft"


class Source(StrEnum):
    """Where a piece of evidence comes from, strongest first."""

    PROCESS = "process"
    STATE_FILE = "state file"
    HOOK = "hook"
    TITLE = "title"
    TRANSCRIPT = "transcript"
    SCREEN = "screen"
    POLICY = "policy"


class ProcId(Struct, frozen=True):
    """A process that can't be mistaken for a later one with the same number.

    `start` is field 22 of `/proc/<pid>/stat` (clock ticks since boot); elsewhere the creation time in ms.
    """

    pid: int
    start: int


class Moment(Struct, frozen=True):
    """One instant: `wall` seconds since the epoch, `mono` seconds of this boot, `boot` its id."""

    wall: float
    mono: float
    boot: str = ""


class Evidence(Struct, frozen=True):
    """One observation: which source says what, and when (wall seconds)."""

    source: Source
    says: str
    at: float
    detail: str = ""


class ExitKind(StrEnum):
    """Why a client is gone; the restart policy treats each in its own way."""

    CLEAN = "clean exit"
    CRASH = "crash"
    STOPPED = "stopped by us"
    MISSING_PROGRAM = "program missing"
    NOT_EXECUTABLE = "not executable"
    SESSION_IN_USE = "session id in use"
    NO_CONVERSATION = "no such session"
    REFUSED = "client refused to start"
    TMUX_DIED = "tmux server died"


class Exit(Struct, frozen=True):
    """How a client ended: exit `code` or `signal`, wall time, and the last lines of its screen."""

    kind: ExitKind
    at: float
    code: int | None = None
    signal: int | None = None
    lines: tuple[str, ...] = ()

    def describe(self) -> str:
        """`exit 7`, `signal 9` or the kind, for one column of a table."""
        if self.signal:
            return f"{self.kind.value} (signal {self.signal})"
        if self.code is not None:
            return f"{self.kind.value} (exit {self.code})"
        return self.kind.value
