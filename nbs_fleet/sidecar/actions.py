"""What a sidecar sees and what it may ask for: its events and actions, as data."""

from __future__ import annotations

from msgspec import Struct

from nbs_fleet.drivers.base import Reading, StateFile, Turns
from nbs_fleet.model import AgentState, BlockedKind, Evidence


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
    """What the transcript says."""

    turns: Turns


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
    """The slow poll: look at everything again."""


Event = StateFileSeen | TitleSeen | ScreenSeen | TranscriptSeen | Flickered | Pressed | Faulted | Ticked


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


Action = Look | ReadTranscript | Press | Report
