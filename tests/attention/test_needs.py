"""What each state of an agent asks of a person."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from nbs_fleet.attention.needs import seen
from nbs_fleet.model import AgentState, Asking, ErrorKind, Evidence, Exit, ExitKind, Failure, Source
from nbs_fleet.plan.types import AgentRecord, Desired

ASKING = Asking(
    "permission",
    "m1",
    "Bash command\ntouch x\nDo you want to proceed?",
    (("1", "Yes"), ("3", "No")),
    "Bash\ncommand: touch x",
)
CRASH = Exit(ExitKind.CRASH, 9.0, code=7, lines=("boom",))
RATE = Failure(ErrorKind.RATE_LIMIT, 5.0, "slow down")
BAD = Failure(ErrorKind.CONTEXT_FULL, 5.0, "too long")


def record(state: AgentState, **more: Any) -> AgentRecord:
    return AgentRecord("ana", state=state, since=10.0, **more)


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (record(AgentState.BUSY), []),
        (record(AgentState.IDLE), []),
        (record(AgentState.BLOCKED, asking=ASKING), ["permission"]),
        (record(AgentState.BLOCKED, asking=replace(ASKING, kind="plan")), ["plan"]),
        (record(AgentState.BLOCKED, asking=replace(ASKING, kind="question")), ["question"]),
        (record(AgentState.BLOCKED, asking=replace(ASKING, kind="trust")), ["trust"]),
        (record(AgentState.BLOCKED, blocked="login"), ["login"]),
        (record(AgentState.BLOCKED, blocked="draft"), []),
        (record(AgentState.LIMITED, failure=RATE), ["limit"]),
        (record(AgentState.LIMITED, failure=RATE, escalated="error", attention="error"), ["limit"]),
        (record(AgentState.IDLE, failure=BAD, escalated="error", attention="error"), ["error"]),
        (record(AgentState.IDLE, escalated="idle", attention="idle"), ["escalation"]),
        (record(AgentState.IDLE, attention="does not read what waits for it"), ["escalation"]),
        (record(AgentState.IDLE, signal="escalate", signal_text="help"), ["escalation"]),
        (record(AgentState.IDLE, signal="complete"), ["idle-done"]),
        (record(AgentState.BUSY, signal="complete"), []),
        (record(AgentState.BACKOFF, last_exit=CRASH), ["crash"]),
        (record(AgentState.FAILED, last_exit=CRASH), ["failed"]),
        (record(AgentState.STOPPED), []),
        (record(AgentState.FAILED, last_exit=CRASH, desired=Desired.STOPPED), []),
    ],
    ids=lambda value: value.state if isinstance(value, AgentRecord) else ",".join(value) or "nothing",
)
def test_what_an_agent_needs_a_person_for(found: AgentRecord, kinds: list[str]) -> None:
    assert [need.kind for need in seen(found, 11.0).needs] == kinds


def test_a_dialog_brings_what_is_asked_the_options_and_the_last_words() -> None:
    told = Evidence(Source.STATE_FILE, "blocked: permission", 8.0)
    found = record(
        AgentState.BLOCKED,
        blocked="permission",
        detail="Bash: touch x",
        asking=ASKING,
        words="I will",
        evidence=(told,),
    )
    (need,) = seen(found, 11.0).needs
    assert (need.title, need.text, need.context) == ("Bash: touch x", "Bash\ncommand: touch x", "I will")
    assert need.options == (("1", "Yes"), ("3", "No"))
    assert need.since == 8.0, "the client's own word on when it began to wait counts"


def test_a_dialog_that_was_not_read_yet_opens_nothing_and_closes_nothing() -> None:
    found = record(AgentState.BLOCKED, blocked="permission")
    early, late = seen(found, 11.0), seen(found, 16.0)
    assert early.needs == ()
    assert early.keeps is not None
    assert {"permission", "question", "plan"} <= early.keeps
    assert [need.kind for need in late.needs] == ["permission"], "what can't be read is shown all the same"


def test_a_crashed_agent_shows_its_last_lines_and_stays_until_it_is_back() -> None:
    (need,) = seen(record(AgentState.BACKOFF, last_exit=CRASH), 11.0).needs
    assert need.context == "boom"
    assert seen(record(AgentState.STARTING), 11.0).keeps == frozenset({"crash"})


def test_where_nothing_is_known_everything_stays() -> None:
    assert seen(record(AgentState.UNKNOWN), 11.0).keeps is None
