"""Where a budget's counting began survives the supervisor, and ends with the team's tmux server."""

from __future__ import annotations

from pathlib import Path

from nbs_fleet.attention.budget import Over
from nbs_fleet.model import ProcId
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.spec.team import Agent, Budget, Layout
from nbs_fleet.supervisor.spending import Spending

SERVER, OTHER = ProcId(1, 1), ProcId(2, 2)


def plan(budget: Budget | None) -> Plan:
    agent = Agent("ana", "ana", None, "sim", "/", budget=budget)
    paths = RunPaths("/run", "/run", "/s", "/t")
    return Plan("crew", "f", "/", "", paths, Layout(), (AgentPlan(agent, {}, None, 0, "ana", 0),))


def look(path: Path, tokens: int, budget: Budget | None, *, server: ProcId = SERVER, now: float = 10.0) -> list[str]:
    acted: list[Over] = []
    spending = Spending(str(path), server, act=acted.append)
    record = AgentRecord("ana", tokens={"s": tokens})
    for _ in range(3):
        spending.look(plan(budget), [record], now)
    return [one.limit for one in acted]


def test_counting_goes_on_under_another_supervisor_and_each_limit_acts_once(tmp_path: Path) -> None:
    path, budget = tmp_path / "budget.json", Budget(tokens=100)
    assert look(path, 1000, budget) == []
    assert look(path, 1099, budget) == []
    assert look(path, 1100, budget) == ["tokens 100"]
    assert look(path, 1200, budget) == []
    assert look(path, 1200, Budget(tokens=150)) == ["tokens 150"]


def test_a_new_tmux_server_begins_anew(tmp_path: Path) -> None:
    path, budget = tmp_path / "budget.json", Budget(tokens=100)
    look(path, 0, budget)
    assert look(path, 5000, budget, server=OTHER) == []
    assert look(path, 5100, budget, server=OTHER) == ["tokens 100"]


def test_a_damaged_file_begins_anew(tmp_path: Path) -> None:
    path, budget = tmp_path / "budget.json", Budget(tokens=100)
    path.write_text("{", encoding="utf-8")
    assert look(path, 5000, budget) == []
    assert look(path, 5100, budget) == ["tokens 100"]


def test_without_budgets_nothing_is_written(tmp_path: Path) -> None:
    assert look(tmp_path / "budget.json", 1, None) == []
    assert list(tmp_path.iterdir()) == []
