from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.sharing import share_agents, share_parts
from nbs_fleet.plan.types import AgentPlan, Plan
from nbs_fleet.spec.team import Agent, Client, Layout


def agent(handle: str, **more: Any) -> AgentPlan:
    told = Agent(handle, "a", None, "generic", "/root", client=Client(ready="> "), **more)
    return AgentPlan(told, {"driver": "1", "dir": "2"}, None, 0, handle, 0)


def a_plan(*agents: AgentPlan) -> Plan:
    return Plan("t", "/t.yaml", "/root", "s", RunPaths("/run", "/rt", "/s", "/t"), Layout(), agents)


def read(plan: Plan) -> Plan:
    """As it comes from its file: nothing is one with anything else."""
    return msgspec.json.decode(msgspec.json.encode(plan), type=Plan)


def test_equal_parts_of_a_plan_become_one_and_nothing_changes() -> None:
    plan = a_plan(agent("a-1"), agent("a-2"), agent("a-3", settings={"on": True}))
    shared = share_parts(read(plan))
    assert shared == plan
    one, two, three = shared.agents
    assert one.fields is two.fields is three.fields
    assert one.agent.client is two.agent.client is three.agent.client
    assert one.agent.sidecar is three.agent.sidecar


def test_what_is_passed_through_keeps_its_type() -> None:
    plan = a_plan(agent("a-1", settings={"on": True}), agent("a-2", settings={"on": 1}))
    assert share_parts(read(plan)).agents[1].agent.settings["on"] is not True


def test_agents_that_did_not_change_stay_the_same_objects() -> None:
    before = a_plan(agent("a-1"), agent("a-2"))
    assert share_agents(read(before), before) is before
    other = a_plan(agent("a-2"), agent("a-1", model="x"), agent("a-3"))
    shared = share_agents(read(other), before)
    assert shared == other
    assert shared.agents[0] is before.agents[1]
    assert replace(shared, agents=()) == replace(other, agents=())
