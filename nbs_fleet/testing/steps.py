"""What each step of a test is: in words for progress, as a command line of our own, and with kept values put in. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct

from nbs_fleet.spec.section import Strict
from nbs_fleet.testing.expect import clip, wanted
from nbs_fleet.testing.schema import AgentSeen, ExpectFile, StepFile

M = TypeVar("M", bound=Strict)
SIGNALS = {"kill": "KILL", "stop": "TERM", "freeze": "STOP", "go_on": "CONT"}
SENDER = "tester"
"""Who posts and publishes where a step names nobody."""
ITEM = "\0item"
"""Stands in an argv for the id of the item that the agent has in the queue."""
_USE = re.compile(r"%\{([^}]*)\}")
_PATTERNS = frozenset({"matches", "order"})


class Call(Struct, frozen=True):
    """A command of ours: its arguments, what it reads from stdin, and the agent on whose behalf it runs (or None)."""

    args: tuple[str, ...]
    stdin: str = ""
    as_agent: str | None = None


class Strike(Struct, frozen=True):
    """A signal (its name without SIG) for a handle's client, `supervisor` or `tmux`."""

    target: str
    signal: str


class Line(Struct, frozen=True):
    """A line for the control inbox of an agent."""

    agent: str
    text: str


class Watch(Struct, frozen=True):
    """Something to be seen."""

    expected: ExpectFile


class Up(Struct, frozen=True):
    """The team is brought up again."""


Action = Call | Strike | Line | Watch | Up


def action_of(step: StepFile, *, bus: str) -> Action:
    """What to do for a step; `bus` is the team's first bus directory."""
    for name, signal in SIGNALS.items():
        target = getattr(step, name)
        if target is not None:
            return Strike(target, signal)
    if step.expect is not None:
        return Watch(step.expect)
    if step.wait is not None:
        return Watch(ExpectFile(agent=AgentSeen(handle=step.wait.agent, state=step.wait.state)))
    if step.up is not None:
        return Up()
    if step.control is not None:
        return Line(step.control.agent, step.control.line)
    return _call(step, bus)


def _call(step: StepFile, bus: str) -> Call:
    if step.chat is not None:
        return Call(("chat", "send", step.chat.to, step.chat.sender or SENDER, "-"), step.chat.text)
    if step.event is not None:
        event = step.event
        words = ("--", event.text) if event.text else ()
        where = event.bus or bus
        return Call(("bus", "publish", where, SENDER, event.type, event.priority or "normal", *words))
    if step.send is not None:
        sent = step.send
        return Call(("send", sent.to, "--stdin", "--priority", sent.priority or "normal"), sent.text)
    if step.signal is not None:
        words = ("--", step.signal.text) if step.signal.text else ()
        return Call(("signal", step.signal.what, *words), as_agent=step.signal.agent)
    if step.answer is not None:
        return _answer(step.answer.choice, step.answer.text)
    if step.pause is not None:
        return Call(("pause", step.pause))
    if step.resume is not None:
        return Call(("resume", step.resume))
    raise AssertionError("a step does something")


def _answer(choice: str, text: str | None) -> Call:
    words = ("-m", text) if text else ()
    if choice in ("approve", "deny"):
        return Call((choice, ITEM, *words))
    return Call(("answer", ITEM, choice, *words))


def describe(step: StepFile) -> str:
    """What progress calls the step."""
    if step.name is not None:
        return step.name
    for name, verb in (("kill", "kill"), ("stop", "stop"), ("freeze", "freeze"), ("go_on", "continue")):
        if (target := getattr(step, name)) is not None:
            return f"{verb} {target}"
    if step.expect is not None:
        return f"expect {wanted(step.expect)}"
    if step.wait is not None:
        return f"wait until {step.wait.agent} is {step.wait.state}"
    if step.chat is not None:
        return clip(f"{step.chat.sender or SENDER} posts in {step.chat.to}: {step.chat.text}")
    if step.event is not None:
        return clip(f"event {step.event.type}{f': {step.event.text}' if step.event.text else ''}")
    if step.send is not None:
        return clip(f"send {step.send.to}: {step.send.text}")
    if step.signal is not None:
        return f"{step.signal.agent} signals {step.signal.what}"
    if step.answer is not None:
        return f"answer {step.answer.agent}: {step.answer.choice}"
    if step.up is not None:
        return "up"
    if step.control is not None:
        return clip(f"control inbox of {step.control.agent}: {step.control.line}")
    return f"pause {step.pause}" if step.pause is not None else f"resume {step.resume}"


def filled(model: M, kept: Mapping[str, str]) -> M:
    """The same step with `%{NAME}` replaced by what was kept; in a pattern it stands for just that text."""
    changed: dict[str, Any] = {}
    for name in type(model).model_fields:
        value = getattr(model, name)
        changed[name] = _value(value, kept, pattern=name in _PATTERNS)
    return model.model_copy(update=changed)


def _value(value: Any, kept: Mapping[str, str], *, pattern: bool) -> Any:
    if isinstance(value, Strict):
        return filled(value, kept)
    if isinstance(value, list):
        return [_value(item, kept, pattern=pattern) for item in value]
    if isinstance(value, str):
        return _USE.sub(lambda use: re.escape(kept[use[1]]) if pattern else kept[use[1]], value)
    return value
