"""The example teams and packaged templates: each one loads, plans and renders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nbs_fleet.plan.build import build
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.prompts import PACKAGED, collect, find, variables
from nbs_fleet.plan.templates import Renderer, Template
from nbs_fleet.plan.types import Plan
from nbs_fleet.resources import data_dir
from nbs_fleet.sim import scenario
from nbs_fleet.spec.load import load_team
from nbs_fleet.spec.team import Agent, Chat, Team

TEAMS = Path(data_dir("teams"))
TEMPLATES = Path(data_dir("templates"))
FILES = sorted(path.name for path in TEAMS.glob("*.yaml"))
NAMES = sorted(path.name for path in TEMPLATES.glob("*.j2"))
PATHS = RunPaths("/run", "/rt", "/rt/s", "/rt/t")


def read(key: str) -> str | None:
    """The text behind a key of `prompts`, newlines untouched."""
    path = TEMPLATES / key.removeprefix(PACKAGED) if key.startswith(PACKAGED) else Path(key)
    return path.read_bytes().decode() if path.is_file() else None


def planned(name: str, environ: dict[str, str] | None = None) -> Plan:
    team = load_team(str(TEAMS / name), environ or {"HOME": os.environ["HOME"]}).team
    return build(team, paths=PATHS, source="s", prompts=collect(team, read), versions={}, env_digests={})


@pytest.mark.parametrize("name", FILES)
def test_each_example_team_loads_and_plans(name: str) -> None:
    plan = planned(name)
    assert plan.team == name.removesuffix(".yaml")
    assert all(agent.prompt for agent in plan.agents)


def test_the_demo_is_three_simulated_agents_that_need_nothing() -> None:
    plan = planned("demo.yaml")
    assert [(a.agent.handle, a.agent.driver, a.wave) for a in plan.agents] == [
        ("ana", "sim", 0),
        ("bo", "sim", 0),
        ("cy", "sim", 1),
    ]
    assert plan.agents[0].prompt == "You are ana. Say good morning and look around."
    assert {a.agent.restart.backoff.first for a in plan.agents} == {0.2}


def test_each_demo_agent_has_a_scenario_that_answers_its_prompt_with_work_and_anything_else_too() -> None:
    plan = planned("demo.yaml")
    for agent in plan.agents:
        flag, path = agent.agent.args
        made = scenario.load(os.path.join(plan.root, path))
        rule = next(rule for rule in made.rules if rule.pattern.takes(agent.prompt or ""))
        assert flag == "--scenario"
        assert rule.response is not None
        assert [call.tool for call in rule.response.calls] == ["Bash"] * len(rule.response.calls) != []
        assert made.tool("Bash").auto_approve
        assert made.default is not None


def test_the_review_team_is_the_reviewer_first_and_then_the_testers() -> None:
    plan = planned("review.yaml")
    assert [(a.agent.handle, a.wave) for a in plan.agents] == [
        ("ana", 0),
        ("bo-1", 1),
        ("bo-2", 1),
        ("bo-3", 1),
        ("oracle", 0),
    ]
    ana = plan.agents[0]
    assert (ana.agent.model, ana.agent.permission_mode) == ("opus", "bypassPermissions")
    assert "in Widget" in (ana.prompt or "")


def test_the_pair_takes_its_goal_from_the_environment() -> None:
    goals = [planned("pair.yaml", {"HOME": "/h", **more}).agents[0].prompt for more in ({}, {"GOAL": "Win."})]
    assert ["Win." in str(goal) for goal in goals] == [False, True]
    assert {(a.window, a.slot) for a in planned("pair.yaml").agents} == {("agents-1", 0), ("agents-1", 1)}


@pytest.mark.parametrize("role", [None, "reviewer"])
@pytest.mark.parametrize("chats", [(), ("live",), ("live", "review")])
@pytest.mark.parametrize("values", [{}, {"project": "Widget"}, {"goal": "Win."}])
@pytest.mark.parametrize("name", NAMES)
def test_each_template_renders_for_any_team(
    name: str, values: dict[str, str], chats: tuple[str, ...], role: str | None
) -> None:
    agent = Agent("ana", "ana", role, "sim", "/project", prompt=PACKAGED + name, chats=chats)
    known = tuple(Chat(chat, f"/project/.nbs/chat/{chat}.chat", ("ana",)) for chat in ("live", "review"))
    team = Team(name="t", file="/t.yaml", root="/project", agents=(agent,), vars=values, chats=known)
    prompts = collect(team, read)
    template = find(team, agent, prompts)
    assert isinstance(template, Template)
    text = Renderer(prompts).render(template, variables(team, agent))
    assert isinstance(text, str), text
    assert text.startswith("#")
    assert text.endswith(".\n")
    assert "\n\n\n" not in text
    assert "  " not in text
    assert all(f"`{chat}`" in text for chat in chats)
    assert ("Win." in text) is ("goal" in values and not name.startswith("_"))


def test_each_template_is_in_the_readme() -> None:
    readme = (TEMPLATES / "README.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in readme] == []
    readme = (TEAMS / "README.md").read_text()
    assert [name for name in FILES if f"`{name}`" not in readme] == []
