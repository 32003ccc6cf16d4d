"""What the supervisor knows and may ask for: the fleet's state, its events and its actions, as data."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from nbs_fleet.model import AgentState, Exit, ProcId
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Filling, Plan
from nbs_fleet.sidecar.actions import Report


class Life(Struct, frozen=True):
    """One agent: its record on disk, its plan, and what is in flight.

    `plan` None: it left the team file. `flight` is "starting" or "stopping" while an effect runs; `after`
    says what follows a stop ("start", "rest" or "forget"). `due` is the monotonic second of the next start.
    `cause` says why the next start is not the first (told to the agent); `fresh` asks for a new session.
    """

    record: AgentRecord
    plan: AgentPlan | None
    alive: bool = False
    flight: str = ""
    after: str = ""
    due: float | None = None
    cause: str = ""
    fresh: bool = False
    started: float = 0.0
    """Monotonic second of the last start, for the bound on parallel starts."""
    pending_now: bool = False
    """The restart that `record.pending` asks for need not wait for idle."""
    rested: bool = False
    """Since its start its client was seen to take nothing of a core: it keeps no other from starting."""


class Fleet(Struct, frozen=True):
    """All agents, the plan, and what the mass-death alarm remembers (monotonic seconds of deaths)."""

    plan: Plan | None = None
    lives: dict[str, Life] = {}
    deaths: tuple[float, ...] = ()
    alarm: str = ""
    pace_until: float = 0.0
    """Until this monotonic second starts are paced: one mass death, one slow recovery."""
    wake_at: float | None = None
    """The next monotonic second at which something becomes due by itself."""
    yielding: bool = False
    """Someone else is about to own the panes: nothing is started or stopped any more."""
    looking: bool = False
    """It is being seen which of the clients that start rest."""

    def changes(self, before: Fleet) -> Iterator[tuple[str, Life | None, Life]]:
        """The agents of which something changed: handle, what was known before, what is known now."""
        for handle, life in self.lives.items():
            old = before.lives.get(handle)
            if old is not life:
                yield handle, old, life


class Loaded(Struct, frozen=True, tag=True):
    """A plan to bring about. `only`: handles that may change; `up`: stopped and failed agents start again."""

    plan: Plan
    only: tuple[str, ...] | None = None
    now: bool = False
    up: bool = False


class Found(Struct, frozen=True, tag=True):
    """What was found at the supervisor's own start: records, and which of them live."""

    records: tuple[AgentRecord, ...]
    alive: tuple[str, ...]
    boot: str


class Launched(Struct, frozen=True, tag=True):
    """One start came to something: a process in a pane, or the reason why not."""

    handle: str
    proc: ProcId | None = None
    pane: str | None = None
    session_id: str | None = None
    sessions: tuple[str, ...] = ()
    fields: dict[str, str] = {}
    """The digests of what was really started: the plan may have changed meanwhile."""
    resumed: bool = False
    prompted: bool = False
    transcript_from: int = 0
    end: Exit | None = None


class LaunchedAll(Struct, frozen=True, tag=True):
    """The results of one batch of starts."""

    results: tuple[Launched, ...]


class Died(Struct, frozen=True, tag=True):
    """A client is gone, not by us."""

    handle: str
    proc: ProcId
    end: Exit


class Ended(Struct, frozen=True, tag=True):
    """A stop of ours is done; `survivors` are pids that could not be ended."""

    handle: str
    end: Exit
    survivors: tuple[int, ...] = ()


class Reported(Struct, frozen=True, tag=True):
    """A sidecar says what its agent is doing."""

    handle: str
    report: Report


class Metered(Struct, frozen=True, tag=True):
    """What an agent has used so far in its present session (tokens), and how full its context is."""

    handle: str
    session: str
    spent: int
    context: int
    model: str


class Filled(Struct, frozen=True, tag=True):
    """What was done about an agent's context."""

    handle: str
    filling: Filling


class Asked(Struct, frozen=True, tag=True):
    """A person asks: `start`, `stop`, `restart` (with `fresh`: a new session), `yield`."""

    verb: str
    handles: tuple[str, ...] = ()
    fresh: bool = False


class Broke(Struct, frozen=True, tag=True):
    """An effect failed in a way that nothing else describes."""

    what: str
    handle: str | None = None


class Rested(Struct, frozen=True, tag=True):
    """Which of the clients that were starting took nothing of a core for a moment, by handle; maybe none."""

    clients: dict[str, ProcId]


class Ticked(Struct, frozen=True, tag=True):
    """A time that was waited for has come."""


Event = (
    Loaded
    | Found
    | Launched
    | LaunchedAll
    | Died
    | Ended
    | Reported
    | Metered
    | Filled
    | Asked
    | Broke
    | Rested
    | Ticked
)


class StartOne(Struct, frozen=True):
    """How one agent is to be started. `number` counts its starts; `cause` is told to a resumed agent."""

    handle: str
    fresh: bool
    cause: str = ""


class Start(Struct, frozen=True, tag=True):
    """Start these agents, all panes in one go."""

    starts: tuple[StartOne, ...]


class Stop(Struct, frozen=True, tag=True):
    """End one client politely, then surely; `remove` takes its pane away as well."""

    handle: str
    why: str
    remove: bool = False


class Save(Struct, frozen=True, tag=True):
    """Write one record to disk and tell the followers; `gone` removes it."""

    record: AgentRecord
    gone: bool = False


class Watch(Struct, frozen=True, tag=True):
    """Begin to watch a client: its sidecar and its death. `prompted`: a prompt must yet be acknowledged.

    `died`: another client ran before this one (False: a live one is taken over).
    """

    handle: str
    prompted: bool
    died: bool = False


class AwaitRest(Struct, frozen=True, tag=True):
    """See which of these clients (by handle) rest: others wait for their places."""

    clients: dict[str, ProcId]


class Alarm(Struct, frozen=True, tag=True):
    """Several agents died at once: say it, once."""

    text: str


Action = Start | Stop | Save | Watch | AwaitRest | Alarm

STOPPED_STATES = (AgentState.STOPPED, AgentState.FAILED)


def broken(action: Action, what: str) -> Broke:
    """The event that an action failed."""
    match action:
        case Start():
            return Broke(what, action.starts[0].handle if action.starts else None)
        case Stop():
            return Broke(what, action.handle)
        case _:
            return Broke(what)
