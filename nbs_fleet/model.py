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
    PANE_CLOSED = "pane closed"


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

    def explain(self) -> str:
        """`describe`, and what the client said last.

        Nothing was said by one that a signal ended: the last row of its screen is whatever was drawn there.
        """
        said = " ".join(self.lines[-1].split()) if self.lines and not self.signal else ""
        return f"{self.describe()}: {said}" if said else self.describe()


class ErrorKind(StrEnum):
    """Why a client's turn failed; each kind is treated in its own way, none by a restart."""

    AUTHENTICATION = "authentication"
    BILLING = "billing"
    RATE_LIMIT = "rate limit"
    OVERLOAD = "overload"
    NETWORK = "network"
    CONTEXT_FULL = "context full"
    REFUSAL = "refusal"
    OTHER = "error"


class Failure(Struct, frozen=True):
    """A turn that ended in an error, until the next turn begins. Times: wall seconds."""

    kind: ErrorKind
    at: float
    detail: str = ""
    until: float | None = None


class Asking(Struct, frozen=True):
    """A dialog that is open, for the person who is to answer it.

    `mark` tells it from every other dialog; `options` are (key, label); `request` is what is asked for in full,
    where a hook told it (a tool's input, a plan, questions).
    """

    kind: str
    mark: str
    text: str
    options: tuple[tuple[str, str], ...] = ()
    request: str = ""


class Priority(StrEnum):
    """How much a message or event matters, as in the nbs tools."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class MessageKind(StrEnum):
    """What a message is: content from someone, a notice that something waits, a nudge, or text for the client itself."""

    DIRECTIVE = "directive"
    NOTICE = "notice"
    NUDGE = "nudge"
    COMMAND = "command"
    """Typed as it is, a leading `/` included: only keys can carry it."""


PERSON = "person"
"""The sender of what a person says."""


class Message(Struct, frozen=True):
    """One message for one agent: `<agent>/queue/<id>.json` until it is acknowledged, then in `archive/`.

    `id` begins with its kind's letter and sorts by time. `sender` is a handle or `person`. `created` wall seconds.
    """

    id: str
    to: str
    sender: str
    text: str
    created: float
    kind: MessageKind = MessageKind.DIRECTIVE
    type: str = "message"
    priority: Priority = Priority.NORMAL
    interrupt: bool = False
    remarks: tuple[str, ...] = ()
    """What was taken out of the text before it was accepted, for the story."""

    def spoken(self) -> str:
        """The text an agent gets: the id first, so that its arrival can be proved and a repeat recognised.

        It begins with a bracket, so no client takes it for a command. A quoted id in the text is broken up:
        it must not prove the arrival of another message.
        """
        if self.kind is MessageKind.COMMAND:
            return self.text
        what = self.type if self.kind is MessageKind.DIRECTIVE else str(self.kind)
        urgent = "" if self.priority is Priority.NORMAL else f", {self.priority}"
        text = self.text.replace("[nbs:", "[nbs\u200b:")
        return f"[nbs:{self.id}] {what} from {self.sender}{urgent}:\n{text}"


class Outcome(StrEnum):
    """How a message ended."""

    DELIVERED = "delivered"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


class Delivered(Struct, frozen=True):
    """The file of a message in `archive/`: the message, how it ended, by which rung, and what proved it."""

    message: Message
    outcome: Outcome
    at: float
    rung: str
    proof: str = ""
