"""The team as all later stages know it: expanded, validated, frozen; durations in seconds, paths absolute."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

Choice = Literal["ask", "accept", "approve", "deny"]
Trigger = Literal["nudge", "resume", "restart", "escalate", "ignore"]


class Chat(Struct, frozen=True):
    """One chat: `path` of its `.chat` file; `members` are handles (expanded), all agents by default."""

    name: str
    path: str
    members: tuple[str, ...]


class Standup(Struct, frozen=True):
    """A check-in posted to `chat` (a chat's name) each `every` seconds."""

    every: float
    chat: str


class Pythia(Struct, frozen=True):
    """A checkpoint each `every` decisions on the bus directory `bus`, for the agent `agent` (a handle)."""

    every: int
    bus: str
    agent: str | None = None


class Layout(Struct, frozen=True):
    """How panes are put into windows; `size` is (columns, rows) while nobody is attached."""

    panes_per_window: int = 1
    arrange: str = "tiled"
    size: tuple[int, int] = (200, 50)


class Nag(Struct, frozen=True):
    """Seconds after which an unread message of that priority is mentioned again."""

    critical: float = 30.0
    high: float = 120.0


class SidecarSettings(Struct, frozen=True):
    """How a sidecar watches and tells; all durations in seconds."""

    bus_check: float = 3.0
    notify_cooldown: float = 15.0
    startup_grace: float = 30.0
    poll: float = 300.0
    poll_mode: Literal["needed", "always"] = "needed"
    notify_fail_threshold: int = 5
    notices: bool = True
    """False (or NBS_POLL_DISABLE in the environment): the agent is told of nothing that waits."""
    idle_grace: float = 60.0
    nag: Nag = Nag()
    delivery: Literal["auto", "keys"] = "auto"
    draft: Literal["wait", "stash"] = "wait"
    notify: str | None = None


class Dialogs(Struct, frozen=True):
    """What to do about each kind of dialog; `ask` means a person decides."""

    trust: Choice = "ask"
    bypass: Choice = "ask"
    mcp: Choice = "ask"
    setup: Choice = "ask"
    apikey: Choice = "ask"
    login: Choice = "ask"
    settings: Choice = "ask"
    resume: Choice = "ask"
    plan: Choice = "ask"
    permission: Choice = "ask"
    question: Choice = "ask"


class Backoff(Struct, frozen=True):
    """Seconds before the first restart, doubled each time up to `max`."""

    first: float = 1.0
    max: float = 60.0


class RestartPolicy(Struct, frozen=True):
    """`max` starts within `within` seconds (the first counts), then `failed` until a person acts."""

    policy: Literal["on-failure", "always", "never"] = "on-failure"
    max: int = 5
    within: float = 600.0
    backoff: Backoff = Backoff()
    resume: bool = True


class Recovery(Struct, frozen=True):
    """What to do when an agent is stuck: `do`, how often, how long between, with which words."""

    do: Trigger = "escalate"
    attempts: int = 1
    cooldown: float = 0.0
    text: str | None = None


class Budget(Struct, frozen=True):
    """Limits of use; None is no limit. `hours` of wall time since `up`."""

    tokens: int | None = None
    restarts: int | None = None
    hours: float | None = None
    then: Literal["notice", "pause", "attention"] = "attention"


class ContextRules(Struct, frozen=True):
    """What happens as the context fills up; shares in percent of `limit` tokens. None: nothing. `timeout` in seconds."""

    limit: int = 200_000
    warn: int | None = None
    handover: int | None = None
    file: str | None = None
    timeout: float = 300.0


class Notification(Struct, frozen=True):
    """One rule: on what occasions a person is called outside the terminal, and how. Times in seconds.

    `after`: so long an item waits while somebody is attached to the team. `quiet`: `22:00-07:00`, local time.
    """

    on: tuple[str, ...]
    via: Literal["desktop", "command", "webhook"]
    command: tuple[str, ...] | None = None
    url: str | None = None
    after: float = 0.0
    cooldown: float = 0.0
    quiet: str | None = None


class Client(Struct, frozen=True):
    """What a client without a driver of its own looks like; patterns for one row, `submit_gap` in seconds.

    `ready` matches what stands before the input. `prompt_args` None: the first prompt is typed, like a message.
    """

    ready: str
    busy: str | None = None
    blocked: dict[str, str] = field(default_factory=dict)
    otherwise: Literal["unknown", "busy"] = "unknown"
    placeholder: str | None = None
    rows: int = 1
    submit_gap: float = 0.3
    prompt_args: tuple[str, ...] | None = None
    model_args: tuple[str, ...] = ("--model",)
    auto_approve: tuple[str, ...] = ()
    yes_keys: tuple[str, ...] = ()
    no_keys: tuple[str, ...] = ()


class Agent(Struct, frozen=True):
    """One agent after expansion. `base` is the handle in the file (`bo` of `bo-2`)."""

    handle: str
    base: str
    role: str | None
    driver: str
    dir: str
    command: tuple[str, ...] | None = None
    client: Client | None = None
    args: tuple[str, ...] = ()
    model: str | None = None
    permission_mode: str | None = None
    permissions: dict[str, Any] = field(default_factory=dict)
    environment: Literal["inherit", "clean"] = "inherit"
    env: dict[str, str] = field(default_factory=dict)
    env_pass: tuple[str, ...] = ()
    env_file: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    skills: tuple[str, ...] = ()
    prompt: str | None = None
    """Absolute path of the template, or `template:NAME` for a packaged one."""
    prompt_text: str | None = None
    depends_on: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()
    bus: tuple[str, ...] = ()
    sidecar: SidecarSettings = SidecarSettings()
    dialogs: Dialogs = Dialogs()
    restart: RestartPolicy = RestartPolicy()
    context: ContextRules = ContextRules()
    stop: Literal["free", "signal"] = "free"
    on_idle: Recovery = Recovery()
    on_dead: Recovery = Recovery()
    on_error: Recovery = Recovery()
    on_prompt: Recovery = Recovery()
    budget: Budget | None = None
    notifications: tuple[Notification, ...] = ()
    """The agent's own rules, else the team's."""


class Team(Struct, frozen=True):
    """One team file, expanded. `file` and `root` are absolute real paths."""

    name: str
    file: str
    root: str
    agents: tuple[Agent, ...]
    vars: dict[str, Any] = field(default_factory=dict)
    chats: tuple[Chat, ...] = ()
    bus: tuple[str, ...] = ()
    standup: Standup | None = None
    pythia: Pythia | None = None
    layout: Layout = Layout()
    budget: Budget | None = None
    notifications: tuple[Notification, ...] = ()
    main_chat: str | None = None
