"""One object for equal parts of plans: the agents of a team differ in little, and a supervisor holds them all the time."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from nbs_fleet.plan.types import AgentPlan, Plan


def share_parts(plan: Plan) -> Plan:
    """The plan itself, just read, in which each agent has its predecessor's parts where they are equal."""
    for before, agent in zip(plan.agents, plan.agents[1:], strict=False):
        _share(agent.agent, before.agent)
        _share(agent, before)
    return plan


def share_agents(plan: Plan, before: Plan) -> Plan:
    """The plan with the agents of the one before, which runs, where they are equal; all of that if nothing changed."""
    if plan == before:
        return before
    known = {old.agent.handle: old for old in before.agents}
    return replace(plan, agents=tuple(_same(agent, known.get(agent.agent.handle)) for agent in plan.agents))


def _same(agent: AgentPlan, old: AgentPlan | None) -> AgentPlan:
    return old if old == agent else agent


def _share(struct: Struct, other: Struct) -> None:
    for name in struct.__struct_fields__:
        value, known = getattr(struct, name), getattr(other, name)
        # Not what the team file passes through as it is: there 1 and true are equal, and yet not the same.
        same = isinstance(value, Struct | str | tuple) or name == "fields" or value == {}
        if same and value == known:
            force_setattr(struct, name, known)
