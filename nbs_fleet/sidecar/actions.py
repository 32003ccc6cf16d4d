"""What a sidecar sees and what it may ask for: its events and actions, as data."""

from __future__ import annotations

from msgspec import Struct

from nbs_fleet.drivers.base import HookNews, Reading, StateFile, Turns
from nbs_fleet.model import AgentState, Asking, BlockedKind, Evidence, Failure
from nbs_fleet.sidecar.delivery import PostAction, PostEvent
from nbs_fleet.sidecar.notices import Notify, Waiting
from nbs_fleet.sidecar.recovery import Remedy

SETTLED = "settled"
"""The kind of a signal that a person gives for an agent: what it said, or did not say, is dealt with."""


class StateFileSeen(Struct, frozen=True, tag=True):
    """The client's own state file was read; None: there is none (any more)."""

    file: StateFile | None


class TitleSeen(Struct, frozen=True, tag=True):
    """The pane's title, and what the driver makes of it."""

    title: str
    reading: Reading


class ScreenSeen(Struct, frozen=True, tag=True):
    """A look at the screen. `answer`: the keys that answer its dialog by the team's policy, if one does."""

    reading: Reading
    answer: tuple[str, ...] | None = None


class TranscriptSeen(Struct, frozen=True, tag=True):
    """What the transcript says, and how long it is (bytes).

    `fresh`: prompts since this run of the client began, where the session is older than that; None: all of them are.
    """

    turns: Turns
    size: int = 0
    fresh: int | None = None

    @property
    def prompted(self) -> bool:
        """Whether this run of the client has taken a prompt."""
        return (self.turns.prompts if self.fresh is None else self.fresh) > 0


class HookSeen(Struct, frozen=True, tag=True):
    """A hook of the client fired at `at` (wall seconds); `proves`: ids of messages in the prompt it carries."""

    news: HookNews
    at: float
    proves: tuple[str, ...] = ()


class Signalled(Struct, frozen=True, tag=True):
    """What the agent said of itself: complete, escalate, continue; None: nothing any more."""

    kind: str | None
    message: str = ""


class Settled(Struct, frozen=True, tag=True):
    """A person says that what was in the agent's way is settled: a failed turn, a signal, an escalation."""


class WaitingSeen(Struct, frozen=True, tag=True):
    """What waits for this agent on the nbs files: chats and events."""

    waiting: Waiting


class Paused(Struct, frozen=True, tag=True):
    """Whether the fleet is told to leave the agents alone."""

    paused: bool


class Flickered(Struct, frozen=True, tag=True):
    """Something moved in the pane: worth a look where nothing better speaks."""


class Pressed(Struct, frozen=True, tag=True):
    """Keys were pressed, or not (`why` says why not)."""

    ok: bool
    why: str = ""


class Faulted(Struct, frozen=True, tag=True):
    """An effect failed."""

    what: str


class Ticked(Struct, frozen=True, tag=True):
    """Time passed: something is due, or (`poll`) everything is looked at again."""

    poll: bool = False


Event = (
    StateFileSeen
    | TitleSeen
    | ScreenSeen
    | TranscriptSeen
    | HookSeen
    | Signalled
    | Settled
    | Paused
    | WaitingSeen
    | Flickered
    | Pressed
    | Faulted
    | Ticked
    | PostEvent
)


class Look(Struct, frozen=True, tag=True):
    """Capture the screen and read it."""


class ReadTranscript(Struct, frozen=True, tag=True):
    """Read head and tail of the transcript."""


class Press(Struct, frozen=True, tag=True):
    """Answer a dialog: only if a fresh look still shows `dialog` (its text)."""

    keys: tuple[str, ...]
    dialog: str


class Report(Struct, frozen=True, tag=True):
    """Tell the supervisor what this agent is doing now."""

    state: AgentState
    since: float
    ready: bool
    blocked: BlockedKind | None = None
    detail: str = ""
    until: float | None = None
    evidence: tuple[Evidence, ...] = ()
    queued: int = 0
    """Messages on their way to it."""
    unread: dict[str, int] = {}
    """Unread messages per chat."""
    events: int = 0
    rung: str | None = None
    """The highest rung its messages can take now."""
    attention: str | None = None
    """Why a person should look at it, beside its state."""
    signal: str | None = None
    session_id: str | None = None
    tries: dict[str, int] = {}
    """Remedies tried since the agent last made progress, by trigger."""
    signal_text: str = ""
    asking: Asking | None = None
    """The dialog that is open, once it was read."""
    failure: Failure | None = None
    escalated: str = ""
    words: str = ""
    """The agent's last words, while it may need a person."""


class Heed(Struct, frozen=True, tag=True):
    """Be told (`on`), or no longer, when something moves in the pane."""

    on: bool


Action = Look | Heed | ReadTranscript | Press | Report | PostAction | Remedy | Notify
