"""Each mark of a context acts once per crossing; a handover ends in a fresh session or at a person, never in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nbs_fleet.plan.types import Filling
from nbs_fleet.spec.team import ContextRules
from nbs_fleet.supervisor.handover import Sight, Turn, due, let_go, step

RULES = ContextRules(limit=1000, warn=70, handover=85, timeout=300.0)


class Agent:
    """One agent over time."""

    def __init__(self, rules: ContextRules = RULES) -> None:
        self.rules, self.filling, self.now = rules, Filling(), 1000.0

    def see(self, context: int, *, session: str = "s", resting: bool = True, written: float | None = None) -> list[str]:
        self.now += 1.0
        self.filling, turns = step(self.filling, self.rules, Sight(session, context, resting, written), self.now)
        return [turn.value for turn in turns]


def test_each_mark_acts_once_while_the_context_grows() -> None:
    agent = Agent()
    assert [agent.see(c) for c in (100, 699, 700, 750, 849)] == [[], [], ["warn"], [], []]
    assert agent.see(850) == ["ask"]
    assert agent.see(900) == []


def test_a_jump_over_both_marks_asks_and_does_not_warn() -> None:
    assert Agent().see(990) == ["ask"]


def test_after_a_compaction_the_marks_count_again() -> None:
    agent = Agent(replace(RULES, handover=None))
    assert agent.see(800) == ["warn"]
    assert agent.see(0) == []
    assert agent.see(800) == []
    assert agent.see(100) == []
    assert agent.see(800) == ["warn"]


def test_a_handover_that_is_there_begins_a_fresh_session_once_the_agent_rests() -> None:
    agent = Agent()
    agent.see(900)
    assert agent.see(900, written=10.0) == []
    assert agent.see(900, resting=False, written=agent.now) == []
    assert agent.see(900, written=agent.now) == ["begin"]
    assert agent.see(50, session="t") == []
    assert agent.filling == Filling("t")
    assert agent.see(900, session="t") == ["ask"]


def test_one_that_is_not_written_calls_a_person_once_and_may_still_come() -> None:
    agent = Agent()
    agent.see(900)
    at = due(agent.filling, RULES)
    assert at == agent.now + 300.0
    agent.now = at - 1.0
    assert agent.see(900) == ["call"]
    assert agent.filling.late
    assert due(agent.filling, RULES) is None
    assert agent.see(900) == []
    assert agent.see(900, written=agent.now) == ["begin"]


def test_one_that_a_person_lets_go_is_left_alone_until_it_was_below_the_mark() -> None:
    agent = Agent()
    agent.see(900)
    agent.filling = let_go(agent.filling)
    assert agent.see(950) == []
    assert agent.see(100) == []
    assert agent.see(900) == ["ask"]


def test_without_rules_nothing_is_done() -> None:
    agent = Agent(ContextRules())
    assert [agent.see(c) for c in (0, 10**6, 10**9)] == [[], [], []]


sights = st.lists(
    st.tuples(st.integers(0, 1200), st.sampled_from("st"), st.booleans(), st.booleans(), st.floats(0, 400)), max_size=40
)


@given(sights)
def test_nothing_acts_twice_without_a_fall_below_its_mark_or_another_session(
    history: list[tuple[int, str, bool, bool, float]],
) -> None:
    agent = Agent()
    armed = {"warn": True, "ask": True}
    last = ""
    for context, session, resting, wrote, after in history:
        agent.now += after
        if session != last:
            armed, last = {"warn": True, "ask": True}, session
        handing = agent.filling.asked is not None and agent.filling.session == session
        turns = agent.see(context, session=session, resting=resting, written=agent.now + 1.0 if wrote else None)
        assert len(turns) <= 1
        if context and not handing:
            for name, mark in (("warn", 700), ("ask", 850)):
                if context < mark:
                    armed[name] = True
        for turn in turns:
            if turn in armed:
                assert armed[turn]
                armed[turn] = False
                if turn == "ask":
                    armed["warn"] = False
            if turn == Turn.BEGIN:
                assert handing
                assert resting
                assert wrote
