"""The test file as written: every key and what it means. Strict: unknown keys are errors."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from nbs_fleet.spec.fields import NUMBER, VERSION, WORD, Bool, Command, Span, Text
from nbs_fleet.spec.problems import printable, quoted
from nbs_fleet.spec.schema import SidecarFile
from nbs_fleet.spec.schema_limits import Blocked
from nbs_fleet.spec.section import Strict
from nbs_fleet.spec.values import fault

State = Literal[
    "starting", "idle", "busy", "blocked", "limited", "compacting", "paused", "backoff", "stopped", "failed", "unknown"
]
Priority = Literal["critical", "high", "normal", "low"]
Ability = Literal[
    "resume",
    "session_id",
    "hooks",
    "skills",
    "skill_calls",
    "shared_skills",
    "state_file",
    "title",
    "export",
    "context_before_tool",
    "context_after_tool",
    "stop_block",
    "mail",
    "native_inbox",
    "permission_hook",
    "queues_input",
    "prompt",
    "resume_prompt",
    "turn_hooks",
    "whole_turns",
    "paste",
    "stash",
]
"""The names of `drivers.base.Capabilities` that a test may need."""
Count = Annotated[int, Field(ge=0, le=1_000_000), NUMBER]


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise fault(
            f"{quoted(value)} is no regular expression ({printable(str(error))}); write it as Python's re"
        ) from None
    return value


def _capture(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", value):
        raise fault(f"{quoted(value)} can't name a capture; use a lower-case letter, then letters, digits or _")
    return value


def _inside(value: str) -> str:
    if value.startswith(("/", "~")) or ".." in value.split("/"):
        raise fault(f"{quoted(value)} is outside the test's root; write a path below it, such as notes/plan.md")
    return value


def _team(value: object) -> object:
    if isinstance(value, str | dict):
        return value
    raise fault("must be the path of a team file, or a mapping that is one; write team: ../pair.yaml")


Pattern = Annotated[Text, AfterValidator(_pattern)]
Capture = Annotated[Text, AfterValidator(_capture)]
Inside = Annotated[Text, AfterValidator(_inside)]
Target = Text
Need = Annotated[Ability, WORD]
TeamUnderTest = Annotated[Any, BeforeValidator(_team), WithJsonSchema({"type": ["string", "object"]})]


def key(meaning: str, *, example: Any = None, must: bool = False, alias: str | None = None) -> Any:
    """A key of the file."""
    return Field(
        default=... if must else None,
        description=meaning,
        alias=alias,
        examples=None if example is None else [example],
    )


class ClientFile(Strict):
    """What stands in for a role's or an agent's client."""

    driver: Text | None = key("Driver", example="sim")
    command: Command | None = key("Program and first arguments", example="claudeless")
    scenario: Text | None = key("Scenario of a simulator: a path beside this file", example="ana.toml")


class OverridesFile(ClientFile):
    """What differs from the team file while it is tested."""

    roles: dict[Text, ClientFile] | None = key("By role", example={"reviewer": {"scenario": "reviewer.toml"}})
    agents: dict[Text, ClientFile] | None = key("By handle", example={"ana": {"scenario": "ana.toml"}})
    sidecar: SidecarFile | None = key("Intervals of every sidecar", example={"bus_check": "1s"})


class GivenFile(Strict):
    """A file that is there before the team starts: `text`, or a copy of `copy`."""

    path: Inside = key("Where, below the test's root", must=True, example="notes/plan.md")
    text: str | None = key("What is in it", example="- write the parser")
    copy_of: Text | None = key("A file beside this one", alias="copy", example="plan.md")


class ChatStep(Strict):
    """A post."""

    to: Text = key("Chat", must=True, example="live")
    sender: Text | None = key("Who posts", alias="from", example="tester")
    text: Text = key("What", must=True, example="@ana please review")


class EventStep(Strict):
    """An event on a bus."""

    type: Text = key("Its type", must=True, example="build-failed")
    priority: Annotated[Priority, WORD] | None = key("How urgent", example="normal")
    text: Text | None = key("Its payload", example="see log")
    bus: Text | None = key("Bus directory", example=".nbs/events")


class SendStep(Strict):
    """A directive."""

    to: Text = key("Handle", must=True, example="ana")
    text: Text = key("What", must=True, example="Run the tests.")
    priority: Annotated[Priority, WORD] | None = key("How urgent", example="normal")


class SignalStep(Strict):
    """A signal, as an agent would give it."""

    agent: Text = key("Handle", must=True, example="ana")
    what: Annotated[Literal["complete", "escalate", "continue"], WORD] = key("Which", must=True, example="complete")
    text: Text | None = key("Why", example="all green")


class ControlStep(Strict):
    """A line for a control inbox."""

    agent: Text = key("Handle", must=True, example="ana")
    line: Text = key("The line", must=True, example="register-chat .nbs/chat/more.chat")


class AnswerStep(Strict):
    """An answer to what an agent asks a person."""

    agent: Text = key("Handle", must=True, example="ana")
    choice: Text = key("`approve`, `deny`, or an option: its key, its label or how that begins", must=True, example="1")
    text: Text | None = key("Words that go with it", example="not today")


class WaitStep(Strict):
    """Go on when an agent is in a state; `idle` is one that has taken the prompt of its start, too."""

    agent: Text = key("Handle", must=True, example="ana")
    state: Annotated[State, WORD] = key("State", must=True, example="idle")


class AgentSeen(Strict):
    """How an agent is."""

    handle: Text = key("Handle", must=True, example="ana")
    state: Annotated[State, WORD] | None = key("Its state", example="idle")
    blocked: Annotated[Blocked, WORD] | None = key("What it waits for", example="permission")
    restarts: Count | None = key("How often it was started again", example=1)
    exit: Annotated[int, Field(ge=0, le=255), NUMBER] | None = key("Code of the last exit; 128 + N for signal N")


class MessagesSeen(Strict):
    """Messages in a chat."""

    chat: Text = key("Chat", must=True, example="live")
    sender: Text | None = key("Who posted", alias="from", example="ana")
    matches: Pattern | None = key("What is in each", example="done")
    count: Count | None = key("Exactly so many; without it at least one", example=1)
    order: Annotated[list[Pattern], Field(min_length=2)] | None = key("In this order", example=["begun", "done"])


class EventsSeen(Strict):
    """Events on a bus."""

    where: Annotated[Literal["pending", "processed"], WORD] = key("Where they are", must=True, example="pending")
    type: Text | None = key("Their type", example="pythia-checkpoint")
    matches: Pattern | None = key("What is in each", example="parser")
    count: Count | None = key("Exactly so many; without it at least one", example=1)
    bus: Text | None = key("Bus directory", example=".nbs/events")


class PromptsSeen(Strict):
    """Prompts that reached an agent."""

    agent: Text = key("Handle", must=True, example="ana")
    matches: Pattern = key("What is in each", must=True, example="Run the tests")
    count: Count | None = key("Exactly so many; without it at least one", example=1)


class ScreenSeen(Strict):
    """An agent's screen."""

    agent: Text = key("Handle", must=True, example="ana")
    matches: Pattern = key("What is on it", must=True, example="rate limit")


class AttentionSeen(Strict):
    """What waits for a person."""

    agent: Text | None = key("For which agent", example="ana")
    kind: Text | None = key("Why, as `nbs-fleet queue` names it", example="permission")
    matches: Pattern | None = key("What is in its title or text", example="rm -r")
    count: Count | None = key("Exactly so many; without it at least one", example=0)


class FileSeen(Strict):
    """A file below the test's root."""

    path: Inside = key("Where", must=True, example="notes/plan.md")
    exists: Bool | None = key("Whether it is there", example=True)
    matches: Pattern | None = key("What is in it", example="parser")


class NothingSeen(Strict):
    """No agent changes its state, and no message, event or prompt comes."""

    span: Span = key("For how long", must=True, alias="for", example="5s")
    agents: list[Text] | None = key("Of these agents only", example=["ana"])


class ExpectFile(Strict):
    """Exactly one of these."""

    agent: AgentSeen | None = key("An agent", example={"handle": "ana", "state": "idle"})
    messages: MessagesSeen | None = key("Messages in a chat", example={"chat": "live", "from": "ana"})
    events: EventsSeen | None = key("Events on a bus", example={"where": "processed"})
    prompts: PromptsSeen | None = key("Prompts", example={"agent": "ana", "matches": "Run"})
    screen: ScreenSeen | None = key("A screen", example={"agent": "ana", "matches": "limit"})
    attention: AttentionSeen | None = key("What waits for a person", example={"agent": "ana", "kind": "permission"})
    file: FileSeen | None = key("A file", example={"path": "plan.md"})
    nothing: NothingSeen | None = key("That nothing happens", example={"for": "5s"})


class StepFile(Strict):
    """One step: exactly one thing that is done, awaited or expected."""

    name: Text | None = key("What progress calls it", example="ana is asked")
    within: Span | None = key("The time it may take, 30s if it says nothing", example="10s")
    capture: Capture | None = key("Keep what was seen; %{NAME} stands for it later", alias="as", example="answer")
    chat: ChatStep | None = key("Post in a chat", example={"to": "live", "text": "hello"})
    event: EventStep | None = key("Publish an event", example={"type": "build-failed"})
    send: SendStep | None = key("Send a directive", example={"to": "ana", "text": "Go on."})
    signal: SignalStep | None = key("Give a signal", example={"agent": "ana", "what": "complete"})
    answer: AnswerStep | None = key("Answer what it asks", example={"agent": "ana", "choice": "approve"})
    kill: Target | None = key("SIGKILL for a handle's client, `supervisor` or `tmux`", example="ana")
    stop: Target | None = key("SIGTERM for it", example="ana")
    freeze: Target | None = key("SIGSTOP for it", example="ana")
    go_on: Target | None = key("SIGCONT for it", alias="continue", example="ana")
    control: ControlStep | None = key("Write a line to a control inbox", example={"agent": "ana", "line": "..."})
    pause: Text | None = key("Pause an agent", example="ana")
    resume: Text | None = key("End its pause", example="ana")
    up: Bool | None = key("Bring the team up again, as `nbs-fleet up` does (it is up from the start)", example=True)
    wait: WaitStep | None = key("Wait for a state", example={"agent": "ana", "state": "idle"})
    expect: ExpectFile | None = key("Expect something", example={"file": {"path": "plan.md"}})


class ScriptFile(Strict):
    """A test file."""

    version: Annotated[Literal[1], VERSION] = key("Version of this format", must=True, example=1)
    name: Text | None = key("What the test is called; else the file's name", example="crash and resume")
    team: TeamUnderTest = key("The team file, a path beside this file, or its text as a mapping", must=True)
    timeout: Span | None = key("The time for the whole test, 2m if it says nothing", example="2m")
    needs: list[Need] | None = key("What every client must be able to do; else skipped", example=["permission_hook"])
    overrides: OverridesFile | None = key("What differs while it is tested", example={"driver": "sim"})
    given: list[GivenFile] | None = key("Files that are there first", example=[{"path": "plan.md", "text": "..."}])
    steps: Annotated[list[StepFile], Field(min_length=1)] = key(
        "What happens, in this order", must=True, example=[{"wait": {"agent": "ana", "state": "idle"}}]
    )
    cleanup: list[StepFile] | None = key("Steps that are made in any case, last", example=[{"continue": "ana"}])
