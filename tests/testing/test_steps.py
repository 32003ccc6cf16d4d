"""Steps: the command each is, what progress calls it, and kept values."""

from __future__ import annotations

from typing import Any

import pytest

from nbs_fleet.testing.schema import StepFile
from nbs_fleet.testing.steps import ITEM, Call, Line, Strike, Up, Watch, action_of, describe, filled


def step(**what: Any) -> StepFile:
    return StepFile.model_validate(what)


CALLS = [
    ({"chat": {"to": "live", "text": "-x"}}, Call(("chat", "send", "live", "tester", "-"), "-x")),
    ({"chat": {"to": "live", "from": "cy", "text": "hi"}}, Call(("chat", "send", "live", "cy", "-"), "hi")),
    ({"event": {"type": "t"}}, Call(("bus", "publish", "events", "tester", "t", "normal"))),
    (
        {"event": {"type": "t", "text": "--x", "priority": "high", "bus": "b"}},
        Call(("bus", "publish", "b", "tester", "t", "high", "--", "--x")),
    ),
    ({"send": {"to": "ana", "text": "Go"}}, Call(("send", "ana", "--stdin", "--priority", "normal"), "Go")),
    ({"signal": {"agent": "ana", "what": "complete"}}, Call(("signal", "complete"), as_agent="ana")),
    ({"answer": {"agent": "ana", "choice": "deny", "text": "no"}}, Call(("deny", ITEM, "-m", "no"))),
    ({"answer": {"agent": "ana", "choice": "2"}}, Call(("answer", ITEM, "2"))),
    ({"pause": "ana"}, Call(("pause", "ana"))),
    ({"resume": "ana"}, Call(("resume", "ana"))),
    ({"kill": "tmux"}, Strike("tmux", "KILL")),
    ({"stop": "ana"}, Strike("ana", "TERM")),
    ({"freeze": "supervisor"}, Strike("supervisor", "STOP")),
    ({"continue": "supervisor"}, Strike("supervisor", "CONT")),
    ({"up": True}, Up()),
    ({"control": {"agent": "ana", "line": "register-chat x"}}, Line("ana", "register-chat x")),
]


@pytest.mark.parametrize(("what", "action"), CALLS)
def test_a_step_is_one_action(what: dict[str, Any], action: object) -> None:
    assert action_of(step(**what), bus="events") == action
    assert describe(step(**what))


def test_to_wait_is_to_expect_a_state() -> None:
    action = action_of(step(wait={"agent": "ana", "state": "idle"}), bus="")
    assert isinstance(action, Watch)
    assert action.expected.agent is not None
    assert (action.expected.agent.handle, action.expected.agent.state) == ("ana", "idle")


def test_a_name_is_what_progress_says() -> None:
    assert describe(step(name="ana dies", kill="ana")) == "ana dies"
    assert describe(step(kill="ana")) == "kill ana"


def test_kept_values_are_put_in_and_mean_themselves_in_a_pattern() -> None:
    kept = {"answer": "3 (of 4)?"}
    sent = filled(step(send={"to": "ana", "text": "got %{answer}"}), kept).send
    assert sent is not None
    assert sent.text == "got 3 (of 4)?"
    seen = filled(step(expect={"messages": {"chat": "live", "order": ["%{answer}", "x"]}}), kept).expect
    assert seen is not None
    assert seen.messages is not None
    assert seen.messages.order == [r"3\ \(of\ 4\)\?", "x"]
