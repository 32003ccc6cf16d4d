"""Which reply is due by a simulator's scenario, so that one script plays the simulators and the real client. Pure."""

from __future__ import annotations

import json

from nbs_fleet.sim.scenario import Response, Rule, Scenario
from tests.support.claude_api.directives import REMINDER, Body, Directive, text_of

OURS = "[nbs:"
"""Stands in what the fleet hands over: a client wraps it in a reminder of its own."""
STATUS = {"rate_limit": 429, "auth_error": 401, "out_of_credits": 400, "network_unreachable": 500}


def pick(scenario: Scenario, body: Body) -> Directive:
    """The reply for a turn's request.

    The last message to the model with text of its own is the prompt (what comes in mid-turn has the role `system`); the first rule that takes it answers. The tool calls of
    a response come first, its text when their results are there. How often a rule was used is not counted, and what
    follows inside a turn (`turns`) is not played.
    """
    messages = body.get("messages") or []
    for index in range(len(messages) - 1, -1, -1):
        prompt = _prompt(text_of(messages[index])) if messages[index].get("role") in ("user", "system") else ""
        if prompt:
            due = sum(1 for later in messages[index + 1 :] if later.get("role") == "assistant")
            return _reply(scenario, prompt, due)
    return Directive("say", "")


def _prompt(text: str) -> str:
    """The text without the client's own reminders; one that hands over something of the fleet's stays."""
    return REMINDER.sub(lambda found: found[0] if OURS in found[0] else "", text).strip()


def _reply(scenario: Scenario, prompt: str, due: int) -> Directive:
    rule = next((rule for rule in scenario.rules if rule.pattern.takes(prompt)), None)
    if rule is not None and rule.failure is not None:
        return _failure(rule)
    response = (rule.response if rule else scenario.default) or Response("Nothing to say.")
    if response.calls and due == 0:
        return Directive("tools", json.dumps([[call.tool, call.input] for call in response.calls]))
    seconds = response.delay_ms / 1000
    return Directive("wait", f"{seconds} {response.text}") if seconds else Directive("say", response.text)


def _failure(rule: Rule) -> Directive:
    kind = rule.failure.kind if rule.failure else ""
    return Directive("err", f"{STATUS.get(kind, 500)} 99", key=rule.pattern.text)
