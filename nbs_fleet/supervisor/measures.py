"""A team in numbers, for machines that watch it: states, restarts, what waits, deliveries. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from nbs_fleet.attention.queue import Item
from nbs_fleet.model import AgentState, Delivered, Outcome
from nbs_fleet.supervisor.status import AgentStatus, FleetStatus

BUCKETS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)
"""Seconds from a message's acceptance to its acknowledgement."""

Labels = tuple[tuple[str, str], ...]


class Sample(Struct, frozen=True):
    """One number and what it is about: (label, value) pairs."""

    value: float
    labels: Labels = ()


class Measure(Struct, frozen=True):
    """One gauge; `help` is one line."""

    name: str
    help: str
    samples: tuple[Sample, ...]


class Spread(Struct, frozen=True):
    """How many values were at most as large as each bound, their number and their sum."""

    name: str
    help: str
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    number: int
    total: float


def measures(
    fleet: FleetStatus, waiting: Sequence[Item], archived: Iterable[Delivered], now: float
) -> tuple[Measure | Spread, ...]:
    """All numbers of one team at wall second `now`; `waiting` is what a person is shown, `archived` ended messages."""
    ended = tuple(archived)
    return (
        _one("supervisor_up", "1 while the supervisor runs", float(fleet.supervisor.state == "running")),
        _one("team_file_changed", "1 if the team file is another than at up", float(fleet.file_changed)),
        Measure("agent_state", "1 for the state that an agent is in", _states(fleet.agents)),
        _of_agents("agent_state_seconds", "how long it has been in that state", fleet.agents, lambda a: _age(a, now)),
        _of_agents("agent_restarts", "restarts since it was last asked for", fleet.agents, lambda a: a.record.restarts),
        _of_agents("agent_queued", "messages that wait to get in", fleet.agents, lambda a: a.record.queued),
        _of_agents("agent_unread", "unread chat messages", fleet.agents, lambda a: sum(a.record.unread.values())),
        _of_agents("agent_events", "bus events that wait for it", fleet.agents, lambda a: a.record.events),
        _of_agents(
            "agent_tokens", "tokens used in all its sessions", fleet.agents, lambda a: sum(a.record.tokens.values())
        ),
        _of_agents(
            "agent_context_tokens", "tokens in its conversation; 0: not known", fleet.agents, lambda a: a.record.context
        ),
        Measure("attention_items", "what waits for a person, by reason", _reasons(waiting)),
        _one("attention_oldest_seconds", "age of the oldest item", max((now - i.since for i in waiting), default=0.0)),
        Measure("archived_messages", "ended messages that are still kept", _outcomes(ended)),
        _latencies(ended),
    )


def _one(name: str, text: str, value: float) -> Measure:
    return Measure(name, text, (Sample(value),))


def _states(agents: Sequence[AgentStatus]) -> tuple[Sample, ...]:
    return tuple(
        Sample(float(row.state is state), (("handle", row.handle), ("state", state.value)))
        for row in agents
        for state in AgentState
    )


def _of_agents(name: str, text: str, agents: Sequence[AgentStatus], value: Callable[[AgentStatus], float]) -> Measure:
    return Measure(name, text, tuple(Sample(float(value(row)), (("handle", row.handle),)) for row in agents))


def _age(row: AgentStatus, now: float) -> float:
    return max(0.0, now - row.record.since) if row.record.since else 0.0


def _reasons(waiting: Sequence[Item]) -> tuple[Sample, ...]:
    counted = Counter(item.need.kind for item in waiting)
    return tuple(Sample(float(number), (("reason", kind),)) for kind, number in sorted(counted.items()))


def _outcomes(ended: Sequence[Delivered]) -> tuple[Sample, ...]:
    counted = Counter((one.outcome.value, one.rung) for one in ended)
    return tuple(
        Sample(float(number), (("outcome", outcome), ("rung", rung)))
        for (outcome, rung), number in sorted(counted.items())
    )


def _latencies(ended: Sequence[Delivered]) -> Spread:
    took = [max(0.0, one.at - one.message.created) for one in ended if one.outcome is Outcome.DELIVERED]
    counts = tuple(sum(1 for seconds in took if seconds <= bound) for bound in BUCKETS)
    return Spread(
        "delivery_seconds", "acceptance to acknowledgement of kept messages", BUCKETS, counts, len(took), sum(took)
    )
