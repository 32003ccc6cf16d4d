"""The plan: what should run, what runs, and the steps between; values only."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from nbs_fleet.model import AgentState, Asking, Evidence, Exit, Failure, ProcId
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.spec.team import Agent, Budget, Chat, Layout, Notification, Pythia, Standup

SAME_SESSION = (
    *("driver", "command", "client", "args", "model", "permission_mode", "permissions", "dir"),
    *("environment", "env", "env_pass", "env_file", "settings", "skills"),
)
"""Keys of the team file whose change restarts an agent in the session it has."""

FRESH_SESSION = ("prompt",)
"""Keys whose change restarts it in a new session. `prompt` is the rendered text, wherever that came from."""


SKILL_TEXTS = ("SKILL.md.j2", "SKILL.md")
"""A skill's text in its folder: a template that is rendered, else plain words that are taken as they are."""


class Skill(Struct, frozen=True):
    """A skill as its agent gets it: the text of SKILL.md, and the folder whose other files go with it (None: none)."""

    name: str
    text: str
    folder: str | None = None


class AgentPlan(Struct, frozen=True):
    """One agent as it should run.

    `fields` maps each key of the team file whose change restarts this agent to a digest of its value.
    `prompt` is the rendered text of prompt.md (None: no positional prompt). `wave` 0 starts first.
    `window` and `slot` say where its pane goes: the window's name and the pane's number in it.
    """

    agent: Agent
    fields: dict[str, str]
    prompt: str | None
    wave: int
    window: str
    slot: int
    skills: tuple[Skill, ...] = ()


class Plan(Struct, frozen=True):
    """What one team file asks for. Written as plan.json; holds no secret values.

    `source` is a digest of the team file's text, for "file changed since up".
    """

    team: str
    file: str
    root: str
    source: str
    paths: RunPaths
    layout: Layout
    agents: tuple[AgentPlan, ...]
    chats: tuple[Chat, ...] = ()
    bus: tuple[str, ...] = ()
    standup: Standup | None = None
    pythia: Pythia | None = None
    sources: dict[str, str] = {}
    """Digest of each file the team was read from, by path: for "file changed since up"."""
    umask: int = 0o022
    """The file mode mask of whoever called `up`; agents work with it."""
    versions: dict[str, str] = {}
    """Client version per driver, where it was asked."""
    notifications: tuple[Notification, ...] = ()
    budget: Budget | None = None

    def rules(self) -> dict[str, tuple[Notification, ...]]:
        """The notification rules by handle, for agents that have their own; the team's under an empty handle."""
        own = {a.agent.handle: a.agent.notifications for a in self.agents}
        return {"": self.notifications, **{h: rules for h, rules in own.items() if rules != self.notifications}}

    def find(self, handle: str) -> AgentPlan | None:
        """The agent with this handle."""
        return next((a for a in self.agents if a.agent.handle == handle), None)


class Desired(StrEnum):
    """What a person last asked of one agent."""

    UP = "up"
    STOPPED = "stopped"


class Filling(Struct, frozen=True):
    """How full the context of one session has been: the highest mark of the team file that was acted upon (percent).

    `asked`: since when it is to write its handover (wall seconds); `late`: it took too long.
    """

    session: str = ""
    mark: int = 0
    asked: float | None = None
    late: bool = False


class AgentRecord(Struct, frozen=True):
    """What is known of one agent's runs: state.json. Written by the owner of supervisor.lock only."""

    handle: str
    desired: Desired = Desired.UP
    state: AgentState = AgentState.STOPPED
    since: float = 0.0
    blocked: str | None = None
    detail: str = ""
    until: float | None = None
    ready: bool = False
    proc: ProcId | None = None
    pane: str | None = None
    session_id: str | None = None
    sessions: tuple[str, ...] = ()
    """Session ids used before, newest last; a restart walks back to the last one with a turn."""
    transcript_from: int = 0
    """Bytes of the session's transcript when its client was started with a prompt, which follows them; 0: without one."""
    fields: dict[str, str] = {}
    """AgentPlan.fields of the run that lives now."""
    starts: tuple[float, ...] = ()
    """Starts inside the policy's window: monotonic seconds of boot `boot`."""
    boot: str = ""
    restarts: int = 0
    """Unplanned restarts since `up`."""
    last_exit: Exit | None = None
    pending: str | None = None
    """Why it will be restarted when next idle."""
    evidence: tuple[Evidence, ...] = ()
    """What the present state rests on, strongest first."""
    queued: int = 0
    unread: dict[str, int] = {}
    events: int = 0
    rung: str | None = None
    attention: str | None = None
    tries: dict[str, int] = {}
    """Remedies tried since the agent last made progress, by trigger."""
    signal: str | None = None
    """What the agent last said of itself: complete, escalate, continue."""
    signal_text: str = ""
    asking: Asking | None = None
    """The dialog that is open."""
    failure: Failure | None = None
    """Why its last turn failed, until the next one begins."""
    escalated: str = ""
    """The trigger for which no remedy is left."""
    words: str = ""
    """The agent's last words, while it may need a person."""
    tokens: dict[str, int] = {}
    """What each session used, subagents included; older ones as one sum under an empty name."""
    context: int = 0
    """Tokens of its conversation after the last request; 0: not known."""
    model: str = ""
    """The model that last answered it."""
    filling: Filling = Filling()


class Running(Struct, frozen=True):
    """One agent as found: its record, whether its process is the recorded one and alive, and its pane."""

    record: AgentRecord
    alive: bool
    pane_exists: bool


class Snapshot(Struct, frozen=True):
    """What runs now. `strays` are (handle, pane id) of panes marked as ours without a record.

    `owned` is False when no supervisor looks after the panes: what lives is then adopted.
    """

    server_alive: bool
    agents: tuple[Running, ...] = ()
    strays: tuple[tuple[str, str], ...] = ()
    owned: bool = True

    def find(self, handle: str) -> Running | None:
        """The agent with this handle."""
        return next((a for a in self.agents if a.record.handle == handle), None)


class Verb(StrEnum):
    """What happens to one agent."""

    KEEP = "keep"
    START = "start"
    RESTART = "restart"
    STOP = "stop"
    ADOPT = "adopt"
    ORPHAN = "orphan"


class Step(Struct, frozen=True):
    """One line of a plan. `reasons` names changed keys or causes; `fresh` starts a new session."""

    handle: str
    verb: Verb
    reasons: tuple[str, ...] = ()
    when_idle: bool = False
    fresh: bool = False
