"""The scripted model: rules of a scenario first, else directives in the conversation, else a plain echo."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from nbs_fleet.sim.scenario import Call, Failure, Response, Rule, Scenario, Step

Json = dict[str, Any]
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_PLAN = "# Plan\n\n1. step one\n2. step two"


class Reply(NamedTuple):
    """One answer. `wait` seconds pass before it begins, `think` seconds of thinking, `stream` seconds of text.

    With `until` it begins once that file exists, named from where the client was started.
    With `status` the request fails with that HTTP status instead, `times` times for the same `key`; with `failure` it
    fails as a scenario says; `broken` ends it in mid-stream with that error type.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    wait: float = 0.0
    until: str = ""
    stream: float = 0.0
    think: float = 0.0
    input_tokens: int = 100
    output_tokens: int = 20
    stop_reason: str = "end_turn"
    status: int | None = None
    times: int = 0
    key: str = ""
    failure: Failure | None = None
    broken: str | None = None


def text_of(message: Json) -> str:
    """The text blocks of a message, joined by newlines."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(b.get("text", "") for b in blocks if isinstance(b, dict) and b.get("type") == "text")


def _plain(text: str) -> str:
    """Without the client's own reminders, unless one carries directives (mail comes in that wrapper)."""
    return _REMINDER.sub(lambda m: m[0] if _DIRECTIVE.search(m[0]) else "", text)


def due(messages: list[Json]) -> tuple[str, str, str] | None:
    """The directive that is due: of the last message that holds some, the one after the replies it already got.

    Returns verb, text, and a key that stays the same for as long as the same request is repeated.
    """
    for i in range(len(messages) - 1, -1, -1):
        if messages[i].get("role") not in {"user", "system"}:
            continue
        text = _plain(text_of(messages[i]))
        if "[[" not in text:
            text = text.replace("((", "[[").replace("))", "]]")
        steps = _DIRECTIVE.findall(text)
        if steps:
            index = sum(1 for m in messages[i + 1 :] if m.get("role") == "assistant")
            return (*steps[index], f"{i}:{index}:{text}") if index < len(steps) else None
    return None


def echo(messages: list[Json]) -> str:
    """What is said when nothing was scripted: the beginning of the last prompt."""
    for message in reversed(messages):
        text = _plain(text_of(message)).strip()
        if message.get("role") == "user" and text:
            return "ok: " + text[:60].replace("\n", " ")
    return "ok: "


def _tool(name: str, given: Any) -> Reply:
    return Reply(calls=(Call(name, given if isinstance(given, dict) else {}),), stop_reason="tool_use")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _number(text: str, default: float = 0.0) -> float:
    try:
        return float(text)
    except ValueError:
        return default


def _say(text: str, _plan: str) -> Reply:
    return Reply(text)


def _slow(text: str, _plan: str) -> Reply:
    head, _, rest = text.partition(" ")
    return Reply(rest, stream=_number(head))


def _wait(text: str, _plan: str) -> Reply:
    head, _, rest = text.partition(" ")
    return Reply(rest or "waited", wait=_number(head))


def _until(text: str, _plan: str) -> Reply:
    head, _, rest = text.partition(" ")
    return Reply(rest or "there it is", until=head)


def _think(text: str, _plan: str) -> Reply:
    head, _, rest = text.partition(" ")
    return Reply(rest or "thought", think=_number(head))


def _usage(text: str, _plan: str) -> Reply:
    head, _, rest = text.partition(" ")
    return Reply(rest or f"claimed {head} input tokens", input_tokens=int(_number(head)))


def _bash(text: str, _plan: str) -> Reply:
    return _tool("Bash", {"command": text, "description": "A scripted command"})


def _background(text: str, _plan: str) -> Reply:
    return _tool("Bash", {"command": text, "description": "A scripted command", "run_in_background": True})


def _one_tool(text: str, _plan: str) -> Reply:
    head, _, rest = text.partition(" ")
    return _tool(head, _json(rest or "{}"))


def _tools(text: str, _plan: str) -> Reply:
    pairs = [p for p in _json(text) or [] if isinstance(p, list) and len(p) == 2]
    return Reply(calls=tuple(Call(str(n), g) for n, g in pairs), stop_reason="tool_use")


def _say_and_tool(text: str, plan: str) -> Reply:
    said, _, call = text.partition("||")
    return _one_tool(call.strip(), plan)._replace(text=said.strip())


def _write_plan(text: str, plan: str) -> Reply:
    return _tool("Write", {"file_path": plan, "content": (text or _PLAN).replace("\\n", "\n")})


def _fail(text: str, _plan: str) -> Reply:
    head, _, rest = text.partition(" ")
    return Reply(status=int(_number(head, 500)), times=int(_number(rest, 99)))


def _break(text: str, _plan: str) -> Reply:
    return Reply("partial text before the error", broken=text.partition(" ")[0] or "overloaded_error")


def _stop(text: str, _plan: str) -> Reply:
    head, _, rest = text.partition(" ")
    return Reply(rest or "stopped", stop_reason=head or "end_turn")


_OBEY: dict[str, Callable[[str, str], Reply]] = {
    "say": _say,
    "slow": _slow,
    "wait": _wait,
    "hang": _wait,
    "until": _until,
    "think": _think,
    "usage": _usage,
    "bash": _bash,
    "bg": _background,
    "tool": _one_tool,
    "tools": _tools,
    "saytool": _say_and_tool,
    "plan": _write_plan,
    "err": _fail,
    "streamerr": _break,
    "stop": _stop,
}


DIRECTIVES: tuple[tuple[str, str], ...] = (
    ("say TEXT", "a text"),
    ("slow SECS TEXT", "a text that comes word by word over so many seconds"),
    ("wait SECS TEXT", "a text that begins after so many seconds (`hang` is the same)"),
    ("until FILE TEXT", "a text that begins once the file exists, named from where the client was started"),
    ("think SECS TEXT", "a text after so many seconds of thinking"),
    ("bash COMMAND", "a call of Bash"),
    ("bg COMMAND", "a call of Bash in the background"),
    ("tool NAME JSON", "a call of any tool"),
    ("tools [[NAME, INPUT], ...]", "several calls in one reply"),
    ("saytool TEXT \\|\\| NAME JSON", "a text and a call"),
    ("plan TEXT", "the plan file is written"),
    ("err STATUS N", "the next N requests of this step fail with that status"),
    ("streamerr TYPE", "an error in the middle of a text"),
    ("stop REASON TEXT", "a text that ends for that reason, such as max_tokens or refusal"),
    ("usage N TEXT", "a text, with N tokens of input claimed"),
)
"""Every directive and what it asks for, for people."""

_DIRECTIVE = re.compile(rf"\[\[({'|'.join(_OBEY)})(?:\s+(.*?))?\]\](?!\])", re.DOTALL)


def obey(verb: str, text: str, plan_path: str) -> Reply:
    """The reply that one directive asks for."""
    return _OBEY[verb](text, plan_path)


def from_response(response: Response, delay_ms: int = 0) -> Reply:
    """A scenario's response as a reply."""
    return Reply(
        text=response.text,
        calls=response.calls,
        wait=(response.delay_ms or delay_ms) / 1000,
        input_tokens=response.input_tokens if response.input_tokens is not None else 100,
        output_tokens=response.output_tokens if response.output_tokens is not None else 20,
        stop_reason="tool_use" if response.calls else "end_turn",
    )


class Model:
    """Answers requests. It remembers how often each rule matched, and where in a rule's turns it is."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.matches = [0] * len(scenario.rules)
        self.steps: list[Step] = []
        self.ruled = False
        self.pending: str | None = None

    def reply(
        self, messages: list[Json], prompt: str | None, results: str, plan_path: str, chosen: str | None = None
    ) -> Reply:
        """Answer: `prompt` is what was said to it since its last answer (None: only tool results came).

        `chosen` is what a person decided in a dialog of the last call, as JSON: rules may match that too.
        """
        if self.steps:
            if prompt is not None:
                self.pending = prompt
            step = self.steps.pop(0)
            if step.expect.takes(results):
                return self._scripted(step.response, step.failure)
            self.steps = []
            prompt = self.pending if self.pending is not None else results
        elif prompt is None:
            prompt = self.pending
        self.pending = None
        if prompt is not None:
            rule = self._match(prompt)
            if rule is not None:
                self.steps = list(rule.steps)
                self.ruled = True
                return self._scripted(rule.response, rule.failure)
            self.ruled = False
        elif self.ruled:
            rule = self._match(chosen) if chosen is not None else None
            if rule is None:
                return Reply("Done.")
            self.steps = list(rule.steps)
            return self._scripted(rule.response, rule.failure)
        return self._unscripted(messages, plan_path)

    def _match(self, prompt: str) -> Rule | None:
        for i, rule in enumerate(self.scenario.rules):
            spent = rule.max_matches is not None and self.matches[i] >= rule.max_matches
            if not spent and rule.pattern.takes(prompt):
                self.matches[i] += 1
                return rule
        return None

    def _scripted(self, response: Response | None, failure: Failure | None) -> Reply:
        reply = from_response(response or Response(), self.scenario.response_delay_ms)
        return reply._replace(failure=failure) if failure is not None else reply

    def _unscripted(self, messages: list[Json], plan_path: str) -> Reply:
        directive = due(messages)
        if directive is not None:
            return obey(directive[0], directive[1], plan_path)._replace(key=directive[2])
        if self.scenario.default is not None:
            self.ruled = True
            return from_response(self.scenario.default, self.scenario.response_delay_ms)
        return Reply(echo(messages))
