"""The team file as written: every key, what it means, and what a change of it does. Strict: unknown keys are errors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nbs_fleet.spec.fields import (
    NUMBER,
    VERSION,
    WORD,
    Argument,
    Bool,
    ChatName,
    Command,
    Duration,
    EnvName,
    EnvValue,
    FreeForm,
    Handle,
    PassName,
    RoleName,
    Span,
    TeamName,
    Text,
    false_or,
    name_or,
    word_or,
)
from nbs_fleet.spec.schema_client import ClientFile
from nbs_fleet.spec.schema_limits import BudgetFile, ContextFile, NotificationFile
from nbs_fleet.spec.section import Strict, key

RESTART = "restarts that agent when next idle, same session"
FRESH = "restarts that agent when next idle, fresh session"
OTHER_TEAM = "is another team"
OTHER_AGENT = "is another agent"
ORDER = "nobody restarts; the next start keeps to it"

Size = Annotated[list[Annotated[int, Field(ge=10, le=2000), NUMBER]], Field(min_length=2, max_length=2)]
Accept = Annotated[Literal["ask", "accept", "deny"], WORD]
Approve = Annotated[Literal["ask", "approve", "deny"], WORD]
DoWord = Literal["nudge", "resume", "restart", "escalate", "ignore"]


class ChatFile(Strict):
    """One chat."""

    name: ChatName = key("Name of the chat", must=True, example="live")
    path: Text | None = key("Its file, relative to the root", default=".nbs/chat/NAME.chat", example="talk/live.chat")
    members: list[Text] | None = key(
        "Handles that take part; a base handle stands for all its copies", default="all agents", example=["ana", "bo"]
    )


class StandupFile(Strict):
    """A check-in that is posted regularly."""

    every: Span | None = key("Time between two check-ins", default="15m", example="15m")
    chat: Text | None = key("Chat it is posted in", default="the first chat", example="live")


class PythiaFile(Strict):
    """A checkpoint after so many decisions."""

    every: Annotated[int, Field(ge=1, le=1_000_000), NUMBER] | None = key(
        "Decisions between two checkpoints", default="pythia-interval of the bus's config.yaml, else 20", example=20
    )
    agent: Text | None = key("Handle that is told of each checkpoint", default="nobody", example="oracle")
    bus: Text | None = key("Bus directory it is published on", default="the first bus", example=".nbs/events")


class NagFile(Strict):
    """When what waits on the chats and buses is mentioned again."""

    critical: Span | None = key("Wait for critical ones", example="30s")
    high: Span | None = key("Wait for high ones", example="2m")


class SidecarFile(Strict):
    """How a sidecar watches and tells."""

    notices: Bool | None = key("Whether the agent is told that something waits for it", example=True)
    bus_check: Span | None = key("Longest time between two looks at chats and bus", example="3s")
    notify_cooldown: Duration | None = key("Shortest time between two notices", example="15s")
    startup_grace: Duration | None = key("Time after a start without notices", example="30s")
    poll: Span | None = key("Idle time after which an agent is asked to look around", example="5m")
    poll_mode: Annotated[Literal["needed", "always"], WORD] | None = key(
        "Poll only when something may wait, or always", example="needed"
    )
    notify_fail_threshold: Annotated[int, Field(ge=1, le=1000), NUMBER] | None = key(
        "Notices in a row without effect before the recovery text is sent", example=5
    )
    idle_grace: Duration | None = key("Idle time before on_idle applies", example="60s")
    nag: NagFile | None = key("When what waits on chats and buses is mentioned again", example={"critical": "30s"})
    delivery: Annotated[Literal["auto", "keys"], WORD] | None = key(
        "Highest way in that is possible, or only keys", example="auto"
    )
    draft: Annotated[Literal["wait", "stash"], WORD] | None = key(
        "Wait for a half-typed draft of a person, or put it aside", example="wait"
    )
    notify: Text | None = key("Template of a notice", default="the driver's", example="/nbs-notify {summary}")


class DialogsFile(Strict):
    """What to do about each kind of dialog."""

    trust: Accept | None = key("Trust of the folder", example="accept")
    bypass: Accept | None = key(
        "Warning of the bypass mode", default="ask; accept where the file sets bypassPermissions", example="accept"
    )
    mcp: Accept | None = key("New MCP servers", example="deny")
    setup: Accept | None = key("First-run setup", example="accept")
    apikey: Accept | None = key("Use of an API key found in the environment", example="accept")
    login: Accept | None = key("Login", example="ask")
    settings: Accept | None = key("Faulty or managed settings", example="ask")
    resume: Accept | None = key("How to resume a long session", example="accept")
    plan: Approve | None = key("A plan that is ready", example="approve")
    permission: Approve | None = key("Use of a tool", example="ask")
    question: Approve | None = key("A question of the agent", example="ask")


class BackoffFile(Strict):
    """Growing waits between restarts."""

    first: Duration | None = key("Wait before the first restart; doubled each time", example="1s")
    max: Duration | None = key("Longest wait", example="1m")


class RestartFile(Strict):
    """What happens when a client ends."""

    policy: Annotated[Literal["on-failure", "always", "never"], WORD] | None = key(
        "When to start it again", example="on-failure"
    )
    max: Annotated[int, Field(ge=1, le=1000), NUMBER] | None = key(
        "Starts within `within`, the first included, before it is failed", example=5
    )
    within: Span | None = key("The window for `max`", example="10m")
    backoff: BackoffFile | None = key("Waits between restarts", example={"first": "1s", "max": "1m"})
    resume: Bool | None = key("Take up the same session", example=True)


class RecoveryFile(Strict):
    """What to do when an agent is stuck."""

    do: Annotated[DoWord, WORD] = key("What to do", must=True, example="nudge")
    attempts: Annotated[int, Field(ge=1, le=1000), NUMBER] | None = key("How often before it is escalated", example=3)
    cooldown: Duration | None = key("Wait between two attempts", example="1m")
    text: Text | None = key("Words of the nudge", default="a standard text", example="Go on.")


class LayoutFile(Strict):
    """How panes are put into windows."""

    panes_per_window: Annotated[int, Field(ge=1, le=50), NUMBER] | None = key("Panes in one window", example=1)
    arrange: (
        Annotated[Literal["tiled", "even-horizontal", "even-vertical", "main-horizontal", "main-vertical"], WORD] | None
    ) = key("tmux layout of a window with several panes", example="tiled")
    size: Size | None = key("Columns and rows while nobody is attached", example=[200, 50])


Recovery = Annotated[RecoveryFile, word_or(RecoveryFile, DoWord)]


class CommonFile(Strict):
    """Keys that a team, a role and an agent may have; the agent's stands above the role's above the team's."""

    driver: Text | None = key("What the agent's client is", change=RESTART, default="claude", example="claude")
    command: Command | None = key(
        "Program and first arguments; text is split like in a shell",
        change=RESTART,
        default="the driver's",
        example="claude",
    )
    client: ClientFile | None = key(
        "What a client of `driver: generic` looks like", change=RESTART, default="none", example={"ready": "^> "}
    )
    args: list[Argument] | None = key("More arguments", change=RESTART, default="none", example=["--verbose"])
    model: Text | None = key("Model", change=RESTART, default="the client's", example="opus")
    permission_mode: Text | None = key("Permission mode", change=RESTART, default="the client's", example="plan")
    permissions: FreeForm | None = key(
        "Rules in the client's own syntax, passed through",
        change=RESTART,
        default="none",
        example={"allow": ["Bash(ls:*)"]},
    )
    dir: Text | None = key("Working directory, relative to the root", change=RESTART, default="the root", example="src")
    environment: Annotated[Literal["inherit", "clean"], WORD] | None = key(
        "Start from the caller's environment, or from an allowlist", change=RESTART, example="clean"
    )
    env: dict[EnvName, EnvValue] | None = key("Variables", change=RESTART, default="none", example={"LOG": "debug"})
    env_pass: list[PassName] | None = key(
        "Variables (or PREFIX_*) of the caller that pass a clean environment",
        change=RESTART,
        default="none",
        example=["CI"],
    )
    env_file: Text | None = key(
        "File of KEY=VALUE lines beside this file; yours, mode 0600",
        change=RESTART,
        default="none",
        example="secrets.env",
    )
    settings: FreeForm | None = key(
        "More settings for the client, merged", change=RESTART, default="none", example={"theme": "dark"}
    )
    skills: list[Text] | None = key(
        "Skills: folders beside this file, or packaged ones", change=RESTART, default="none", example=["nbs-notify"]
    )
    sidecar: SidecarFile | None = key("How its sidecar watches and tells", example={"notify_cooldown": "15s"})
    dialogs: DialogsFile | None = key("What to do about each kind of dialog", example={"trust": "accept"})
    restart: RestartFile | None = key("What happens when its client ends", example={"max": 5})
    context: ContextFile | None = key(
        "What happens as its context fills up", default="nothing", example={"warn": 70, "handover": 85}
    )
    stop: Annotated[Literal["free", "signal"], WORD] | None = key(
        "May end a turn at will, or must signal first", example="signal"
    )
    on_idle: Recovery | None = key("When it idles with work waiting", default="escalate", example="nudge")
    on_dead: Recovery | None = key("When its client is gone for good", default="escalate", example="restart")
    on_error: Recovery | None = key("When its client reports an error", default="escalate", example="resume")
    on_prompt: Recovery | None = key("When it waits at a dialog", default="escalate", example="escalate")


class RoleFile(CommonFile):
    """A reusable part of an agent's declaration."""

    prompt: Text | None = key(
        "Template of the first prompt: a path beside this file, else a packaged one",
        change=FRESH,
        default="none",
        example="tester.md.j2",
    )
    prompt_text: Text | None = key("The first prompt itself", change=FRESH, default="none", example="Read README.md.")


class AgentFile(RoleFile):
    """One agent, or `count` copies of it."""

    handle: Handle = key("Its name", change=OTHER_AGENT, must=True, example="ana")
    role: Text | None = key(
        "Role it takes keys from", change="as the keys it brings", default="none", example="reviewer"
    )
    count: Annotated[int, Field(ge=1, le=500), NUMBER] | None = key(
        "Number of copies: bo-1, bo-2 ..; 1 gives bo-1",
        change="starts or stops copies",
        default="one, without a number",
        example=3,
    )
    depends_on: list[Text] | None = key(
        "Handles that are ready before it starts", change=ORDER, default="none", example=["ana"]
    )
    chats: list[Text] | None = key("Chats it takes part in", default="all it is a member of", example=["live"])
    bus: list[Text] | None = key(
        "Bus directories it watches, relative to the root", default="the team's", example=[".nbs/events"]
    )
    budget: BudgetFile | None = key("Limits of this agent", default="none", example={"hours": 8})
    notifications: list[NotificationFile] | None = key(
        "Calls for this agent, instead of the team's",
        default="the team's",
        example=[{"on": ["failed"], "via": "desktop"}],
    )


class TeamFile(CommonFile):
    """A team file."""

    version: Annotated[Literal[1], VERSION] = key("Version of this format", change="none", must=True, example=1)
    team: TeamName = key("The team's name", change=OTHER_TEAM, must=True, example="review")
    root: Text | None = key(
        "Project directory, relative to this file",
        change=OTHER_TEAM,
        default="nearest parent with .nbs or .git, else this file's folder",
        example="..",
    )
    include: list[Text] | None = key(
        "Files that this one stands upon", change="as the keys they bring", default="none", example=["base.yaml"]
    )
    vars: FreeForm | None = key(
        "Values for prompt templates",
        change="as the prompts that use them",
        default="none",
        example={"project": "Widget"},
    )
    chats: Annotated[list[Annotated[ChatFile, name_or(ChatFile)]], Field(max_length=100)] | None = key(
        "Chats; the first is the main one", default="none", example=["live"]
    )
    bus: list[Text] | None = key(
        "Bus directories, relative to the root", default=".nbs/events if it exists", example=[".nbs/events"]
    )
    standup: Annotated[StandupFile | None, false_or(StandupFile)] = key(
        "A check-in that is posted regularly", default="false", example={"every": "15m", "chat": "live"}
    )
    pythia: Annotated[PythiaFile | None, false_or(PythiaFile)] = key(
        "A checkpoint after so many decisions", default="false", example={"every": 20, "agent": "oracle"}
    )
    layout: LayoutFile | None = key(
        "How panes are put into windows", change="new panes only", example={"panes_per_window": 4}
    )
    budget: BudgetFile | None = key("Limits of the whole team", default="none", example={"hours": 8})
    notifications: list[NotificationFile] | None = key(
        "Calls outside the terminal", default="none", example=[{"on": ["attention"], "via": "desktop"}]
    )
    roles: dict[RoleName, RoleFile] | None = key(
        "Roles by name", change="as the keys they bring", default="none", example={"reviewer": {"model": "opus"}}
    )
    agents: Annotated[list[AgentFile], Field(min_length=1)] = key(
        "The members", change="starts or stops members", must=True, example=[{"handle": "ana"}]
    )
