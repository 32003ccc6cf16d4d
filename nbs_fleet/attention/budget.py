"""Budgets: what an agent and its team have used since the team came up, held against their limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from nbs_fleet.attention import remedies
from nbs_fleet.attention.queue import Need
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.spec.team import Budget

KIND = "budget"
TEAM = ""
"""The owner of what the whole team may use."""


class Base(Struct, frozen=True):
    """Where counting began: wall second, tokens of each agent then, and whose limits were reached and acted upon.

    `told` holds (owner, limit as text): a limit that is raised and reached again is another one.
    """

    since: float
    tokens: dict[str, int] = {}
    told: tuple[tuple[str, str], ...] = ()


class Over(Struct, frozen=True):
    """One limit that is reached: whose, which, in words, and what the team file wants then."""

    owner: str
    limit: str
    text: str
    then: str


def over(
    team: Budget | None, agents: Mapping[str, Budget | None], records: Sequence[AgentRecord], base: Base, now: float
) -> tuple[Over, ...]:
    """Every limit that is reached at wall second `now`; `agents` are the budgets by handle."""
    found: list[Over] = []
    for record in records:
        found += _over(record.handle, agents.get(record.handle), (record,), base, now)
    return (*found, *_over(TEAM, team, records, base, now))


def fresh(reached: Sequence[Over], base: Base) -> tuple[Over, ...]:
    """What was not acted upon yet."""
    return tuple(one for one in reached if (one.owner, one.limit) not in base.told)


def needs(reached: Sequence[Over]) -> dict[str, Need]:
    """One need per owner that a person is called for; a limit that only brings a notice calls nobody."""
    found: dict[str, list[str]] = {}
    for one in reached:
        if one.then != "notice":
            found.setdefault(one.owner, []).append(one.text)
    options = remedies.options(KIND)
    return {owner: Need(KIND, 0.0, "; ".join(texts), "", options) for owner, texts in found.items()}


def tokens_of(record: AgentRecord, base: Base) -> int:
    """What it has used since counting began."""
    return max(0, sum(record.tokens.values()) - base.tokens.get(record.handle, 0))


def _over(owner: str, budget: Budget | None, records: Sequence[AgentRecord], base: Base, now: float) -> list[Over]:
    if budget is None:
        return []
    tokens = sum(tokens_of(record, base) for record in records)
    restarts = sum(record.restarts for record in records)
    hours = max(0.0, now - base.since) / 3600.0
    found: list[Over] = []
    if budget.tokens is not None and tokens >= budget.tokens:
        text = f"{tokens:,} tokens of {budget.tokens:,} are used"
        found.append(Over(owner, f"tokens {budget.tokens}", text, budget.then))
    if budget.restarts is not None and restarts > budget.restarts:
        text = f"{restarts} restarts, {budget.restarts} are allowed"
        found.append(Over(owner, f"restarts {budget.restarts}", text, budget.then))
    if budget.hours is not None and hours >= budget.hours:
        found.append(Over(owner, f"hours {budget.hours:g}", f"up for {hours:.3g} h of {budget.hours:g} h", budget.then))
    return found
