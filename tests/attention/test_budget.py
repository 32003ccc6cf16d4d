"""Budgets count from where the team came up, are reached once, and call a person only where the file wants it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nbs_fleet.attention.budget import TEAM, Base, Over, fresh, needs, over
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.spec.team import Budget

BASE = Base(1000.0, {"ana": 500})


def record(handle: str = "ana", tokens: int = 0, restarts: int = 0) -> AgentRecord:
    return AgentRecord(handle, tokens={"s1": tokens}, restarts=restarts)


def limits(budget: Budget, *records: AgentRecord, now: float = 1000.0, team: bool = False) -> list[str]:
    agents = {} if team else {"ana": budget}
    return [one.limit for one in over(budget if team else None, agents, records, BASE, now)]


@pytest.mark.parametrize(("tokens", "reached"), [(1499, False), (1500, True), (9999, True)])
def test_tokens_count_from_where_the_team_came_up(tokens: int, *, reached: bool) -> None:
    assert bool(limits(Budget(tokens=1000), record(tokens=tokens))) is reached


@pytest.mark.parametrize(("restarts", "reached"), [(2, False), (3, True)])
def test_as_many_restarts_as_the_file_says_are_allowed(restarts: int, *, reached: bool) -> None:
    assert bool(limits(Budget(restarts=2), record(restarts=restarts))) is reached


@pytest.mark.parametrize(("hours", "reached"), [(1.4, False), (1.5, True)])
def test_hours_count_on_the_wall(hours: float, *, reached: bool) -> None:
    assert bool(limits(Budget(hours=1.5), record(), now=1000.0 + hours * 3600)) is reached


def test_a_team_pays_for_all_its_agents() -> None:
    both = (record("ana", 1000), record("bo", 600))
    assert limits(Budget(tokens=1100), *both, team=True) == ["tokens 1100"]
    assert limits(Budget(tokens=1101), *both, team=True) == []
    assert limits(Budget(tokens=1100), *both) == []


def test_a_limit_is_acted_upon_once_and_again_when_it_was_raised_and_reached() -> None:
    reached = over(None, {"ana": Budget(tokens=10)}, [record(tokens=600)], BASE, 1000.0)
    assert fresh(reached, BASE) == reached
    known = replace(BASE, told=tuple((one.owner, one.limit) for one in reached))
    assert fresh(reached, known) == ()
    raised = over(None, {"ana": Budget(tokens=90)}, [record(tokens=600)], BASE, 1000.0)
    assert fresh(raised, known) == raised


def test_one_need_for_each_owner_and_none_where_a_notice_is_enough() -> None:
    found = needs(
        [
            Over("ana", "tokens 1", "2 tokens of 1 are used", "pause"),
            Over("ana", "hours 1", "up for 2 h of 1 h", "pause"),
            Over("bo", "tokens 1", "2 tokens of 1 are used", "notice"),
            Over(TEAM, "hours 1", "up for 2 h of 1 h", "attention"),
        ]
    )
    assert set(found) == {"ana", TEAM}
    assert found["ana"].title == "2 tokens of 1 are used; up for 2 h of 1 h"
    assert [key for key, _ in found["ana"].options] == ["go-on", "stop"]
