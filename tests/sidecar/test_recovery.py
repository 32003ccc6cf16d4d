"""Stuck agents: the grace rule, retries with a bound, escalations that close themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nbs_fleet.model import AgentState, ErrorKind
from nbs_fleet.sidecar.recovery import (
    NUDGE_ECHO,
    TEXTS,
    Escalate,
    Nudge,
    Remedy,
    Restart,
    Rules,
    Scene,
    Settle,
    Stuck,
    recover,
)
from nbs_fleet.spec.team import Recovery

IDLE = Scene(AgentState.IDLE, ready=True, size=100)
BUSY = Scene(AgentState.BUSY, ready=True, size=100)
NUDGING = Rules(on_idle=Recovery("nudge", attempts=2, cooldown=5.0))


class Agent:
    """One agent's recovery over time."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.stuck, self.now = rules, Stuck(), 1000.0

    def see(self, scene: Scene, after: float = 0.0) -> tuple[Remedy, ...]:
        self.now += after
        self.stuck, remedies = recover(self.stuck, scene, self.rules, self.now)
        return remedies


def test_an_idle_agent_of_a_free_team_is_done_and_left_alone() -> None:
    agent = Agent(Rules())
    assert agent.see(IDLE) == ()
    assert agent.see(IDLE, after=10_000) == ()
    assert agent.stuck.due is None


def test_the_grace_is_waited_for_once_and_a_second_signal_changes_nothing() -> None:
    agent = Agent(NUDGING)
    agent.see(IDLE)
    due = agent.stuck.due
    agent.see(IDLE, after=30)
    assert agent.stuck.due == due
    assert agent.see(IDLE, after=29) == ()
    assert agent.see(IDLE, after=1) == (Nudge(TEXTS["idle"]),)


def test_work_ends_the_grace() -> None:
    agent = Agent(NUDGING)
    agent.see(IDLE)
    agent.see(BUSY, after=59)
    assert agent.stuck.due is None
    assert agent.see(IDLE, after=2) == ()


def test_a_transcript_that_grew_begins_the_grace_again() -> None:
    agent = Agent(NUDGING)
    agent.see(IDLE)
    assert agent.see(replace(IDLE, size=120), after=60) == ()
    assert agent.see(replace(IDLE, size=120), after=60) == (Nudge(TEXTS["idle"]),)


def test_nobody_is_nudged_while_a_message_is_on_its_way() -> None:
    agent = Agent(NUDGING)
    agent.see(replace(IDLE, waiting=True))
    assert agent.see(replace(IDLE, waiting=True), after=60) == ()


def test_attempts_are_counted_and_then_a_person_is_asked_once() -> None:
    agent = Agent(NUDGING)
    seen: list[Remedy] = []
    for _ in range(40):
        seen.extend(agent.see(IDLE, after=30))
    assert [type(r) for r in seen] == [Nudge, Nudge, Escalate]


def test_the_echo_of_our_own_nudge_is_no_progress() -> None:
    agent = Agent(NUDGING)
    agent.see(IDLE)
    agent.see(IDLE, after=60)
    assert agent.stuck.tries == {"idle": 1}
    agent.see(BUSY, after=5)
    assert agent.stuck.tries == {"idle": 1}
    agent.see(BUSY, after=NUDGE_ECHO)
    agent.see(IDLE, after=1)
    agent.see(BUSY, after=1)
    assert agent.stuck.tries == {}


def test_an_escalation_closes_itself_when_the_agent_moves_on() -> None:
    agent = Agent(Rules(must_signal=True))
    agent.see(IDLE)
    (remedy,) = agent.see(IDLE, after=60)
    assert isinstance(remedy, Escalate)
    assert agent.see(BUSY, after=1) == (Settle(),)
    assert agent.stuck.escalated == ""


def test_a_signal_says_that_idle_is_right() -> None:
    agent = Agent(Rules(must_signal=True))
    agent.see(replace(IDLE, signalled=True))
    assert agent.see(replace(IDLE, signalled=True), after=1000) == ()


@pytest.mark.parametrize(
    "kind", [ErrorKind.AUTHENTICATION, ErrorKind.BILLING, ErrorKind.CONTEXT_FULL, ErrorKind.REFUSAL]
)
def test_what_waiting_can_not_mend_goes_to_a_person(kind: ErrorKind) -> None:
    agent = Agent(Rules(on_error=Recovery("nudge", attempts=5)))
    remedies = agent.see(replace(IDLE, error=kind, detail="why"))
    assert remedies == (Escalate("error", "why"),)


def test_an_overload_is_tried_again_after_a_wait_that_grows() -> None:
    agent = Agent(Rules(on_error=Recovery("nudge", attempts=3)))
    scene = replace(IDLE, error=ErrorKind.OVERLOAD)
    assert agent.see(scene) == ()
    assert agent.see(scene, after=15) == (Nudge(TEXTS["error"]),)
    first = agent.stuck.due
    assert first is not None
    assert first - agent.now >= NUDGE_ECHO


def test_a_limit_is_waited_for_until_the_time_that_was_shown() -> None:
    agent = Agent(Rules(on_error=Recovery("nudge", attempts=3)))
    scene = Scene(AgentState.LIMITED, ready=True, size=1, error=ErrorKind.RATE_LIMIT, until_mono=agent.now + 3600)
    assert agent.see(scene) == ()
    assert agent.see(scene, after=3600) == ()
    assert agent.see(scene, after=1) == (Nudge(TEXTS["error"]),)


def test_restart_and_resume_are_asked_of_the_supervisor() -> None:
    agent = Agent(Rules(on_error=Recovery("restart", attempts=1)))
    scene = replace(IDLE, error=ErrorKind.NETWORK)
    agent.see(scene)
    assert agent.see(scene, after=15) == (Restart("on_error: restart", resume=False),)


def test_counters_survive_a_restart_of_the_agent() -> None:
    agent = Agent(NUDGING)
    agent.stuck = Stuck(tries={"idle": 2})
    agent.see(IDLE)
    (remedy,) = agent.see(IDLE, after=60)
    assert isinstance(remedy, Escalate)


SCENES = st.builds(
    Scene,
    state=st.sampled_from(list(AgentState)),
    ready=st.booleans(),
    size=st.integers(0, 3),
    error=st.sampled_from([None, *ErrorKind]),
    signalled=st.booleans(),
    waiting=st.booleans(),
)
RECOVERIES = st.builds(
    Recovery, do=st.sampled_from(["nudge", "resume", "restart", "escalate", "ignore"]), attempts=st.integers(0, 3)
)


@given(
    st.lists(st.tuples(SCENES, st.floats(0, 120)), max_size=50),
    st.builds(Rules, on_idle=RECOVERIES, on_error=RECOVERIES, on_prompt=RECOVERIES, must_signal=st.booleans()),
)
def test_over_any_history_tries_stay_within_their_limits_and_nothing_is_done_to_a_client_that_is_not_ready(
    history: list[tuple[Scene, float]], rules: Rules
) -> None:
    agent = Agent(rules)
    limits = {"idle": rules.on_idle.attempts, "error": rules.on_error.attempts, "prompt": rules.on_prompt.attempts}
    open_escalation = False
    for scene, gap in history:
        for remedy in agent.see(scene, after=gap):
            if isinstance(remedy, (Nudge, Restart)):
                assert scene.ready
            if isinstance(remedy, Escalate):
                open_escalation = True
            if isinstance(remedy, Settle):
                assert open_escalation, "closed what was never opened"
                open_escalation = False
        assert all(agent.stuck.tries.get(t, 0) <= limit for t, limit in limits.items())
