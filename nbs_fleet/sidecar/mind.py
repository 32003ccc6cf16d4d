"""What a sidecar remembers of one run of a client. A value; `decide` makes the next one."""

from __future__ import annotations

from msgspec import Struct

from nbs_fleet.drivers.base import Capabilities, HookNews, Reading, StateFile, Turns
from nbs_fleet.model import AgentState, Failure
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.sidecar.actions import Report
from nbs_fleet.sidecar.delivery import Means, Post
from nbs_fleet.sidecar.notices import Noticed, NoticeRules, Waiting
from nbs_fleet.sidecar.recovery import Rules, Stuck

SILENT = Reading(AgentState.UNKNOWN)


class Watching(Struct, frozen=True):
    """What does not change during one run of a client."""

    capabilities: Capabilities
    expects_prompt: bool
    """A prompt was passed at this start and must be acknowledged."""
    addressed: bool = False
    """Its session was known to the client before this sidecar began: it was chosen by us, or has a transcript."""
    means: Means = Means(mail=False, stop_hook=False, keys_only=True)
    rules: Rules = Rules()
    notices: NoticeRules = NoticeRules()


class Mind(Struct, frozen=True):
    """Everything seen in this run that still matters. The `*_at` are wall seconds of our seeing it."""

    watching: Watching
    file: StateFile | None = None
    file_at: float = 0.0
    title: Reading = SILENT
    title_at: float = 0.0
    screen: Reading = SILENT
    screen_at: float = 0.0
    """When the look at it began: what changed meanwhile may be missing in it."""
    hook: HookNews | None = None
    hook_at: float = 0.0
    turns: Turns = Turns()
    turns_at: float = 0.0
    size: int = 0
    """Bytes of the transcript."""
    failure: Failure | None = None
    signal: str | None = None
    signal_text: str = ""
    acknowledged: bool = False
    looking: bool = False
    looking_at: float = 0.0
    look_again: bool = False
    asked: str = ""
    """The dialog on the screen that the client's own hook answers by policy, and since when (monotonic)."""
    asked_at: float = 0.0
    pressing: bool = False
    pressed_at: float = 0.0
    answered: tuple[str, ...] = ()
    commanded: float | None = None
    """When the client took a command (monotonic), until what it says of it has been read."""
    presumed: bool = False
    """It is reported busy only because it was just given something to do."""
    heeding: bool = False
    """It is told when something moves in the pane."""
    fault: str = ""
    paused: bool = False
    report: Report = Report(AgentState.STARTING, 0.0, ready=False)
    post: Post = Post(Means(mail=False, stop_hook=False, keys_only=True))
    stuck: Stuck = Stuck()
    waiting: Waiting = Waiting()
    noticed: Noticed = Noticed()
    noticing: bool = False
    """A notice was decided on and is not among the agent's messages yet: no other is made meanwhile."""
    wake_at: float | None = None
    """The monotonic second at which something becomes due without an event."""


def first_mind(watching: Watching, record: AgentRecord, *, adopted: bool) -> Mind:
    """What a sidecar knows at its start. `adopted`: an earlier one watched the same client; its failures are known."""
    return Mind(
        watching,
        report=Report(AgentState.STARTING, 0.0, ready=record.ready),
        post=Post(watching.means),
        stuck=Stuck(tries=record.tries, escalated=record.escalated if adopted else ""),
        failure=record.failure if adopted else None,
    )
