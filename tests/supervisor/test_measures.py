"""A team in numbers: each is what the records, the queue and the archive say."""

from __future__ import annotations

from nbs_fleet.attention.queue import Item, Need
from nbs_fleet.model import AgentState, Delivered, Message, Outcome
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.supervisor.measures import BUCKETS, Measure, Spread, measures
from nbs_fleet.supervisor.status import AgentStatus, FleetStatus, SupervisorStatus

NOW = 1000.0


def row(handle: str, state: AgentState, **more: object) -> AgentStatus:
    record = AgentRecord(handle, state=state, since=NOW - 40, **more)  # type: ignore[arg-type]
    return AgentStatus(handle, None, record, state, "", 0.0, alive=True, sidecar="running")


def ended(seconds: float, outcome: Outcome = Outcome.DELIVERED, rung: str = "mail") -> Delivered:
    return Delivered(Message("d1", "ana", "person", "x", NOW - seconds), outcome, NOW, rung)


def told(fleet: FleetStatus, *items: Item, archive: tuple[Delivered, ...] = ()) -> dict[str, Measure | Spread]:
    return {one.name: one for one in measures(fleet, items, archive, NOW)}


def values(one: Measure | Spread) -> dict[tuple[str, ...], float]:
    assert isinstance(one, Measure)
    return {tuple(value for _, value in sample.labels): sample.value for sample in one.samples}


def fleet(*rows: AgentStatus, state: str = "running") -> FleetStatus:
    return FleetStatus(None, SupervisorStatus(state), tmux=True, file_changed=False, agents=rows)  # type: ignore[arg-type]


def test_each_agent_is_in_exactly_one_state() -> None:
    seen = values(told(fleet(row("ana", AgentState.IDLE), row("bo", AgentState.BLOCKED)))["agent_state"])
    assert {key for key, value in seen.items() if value} == {("ana", "idle"), ("bo", "blocked")}
    assert len(seen) == 2 * len(AgentState)


def test_what_waits_and_how_long_a_state_lasts() -> None:
    ana = row("ana", AgentState.BUSY, queued=2, unread={"live": 3, "review": 1}, events=5, restarts=1)
    seen = told(fleet(ana))
    names = ("agent_queued", "agent_unread", "agent_events", "agent_restarts", "agent_state_seconds")
    assert [values(seen[name])[("ana",)] for name in names] == [2, 4, 5, 1, 40]


def test_the_queue_is_counted_by_reason_and_its_oldest_item_has_an_age() -> None:
    items = [
        Item(f"a{n}", "ana", Need(kind, NOW - age, "t"), NOW - age, 0.0)
        for n, (kind, age) in enumerate([("permission", 9.0), ("permission", 30.0), ("crash", 1.0)])
    ]
    seen = told(fleet(), *items)
    assert values(seen["attention_items"]) == {("permission",): 2, ("crash",): 1}
    assert values(seen["attention_oldest_seconds"]) == {(): 30.0}
    assert values(told(fleet())["attention_oldest_seconds"]) == {(): 0.0}


def test_a_dead_supervisor_shows() -> None:
    assert values(told(fleet(state="dead"))["supervisor_up"]) == {(): 0.0}


def test_only_what_was_delivered_has_a_latency() -> None:
    archive = (ended(0.3), ended(4.0), ended(9999.0), ended(1.0, Outcome.FAILED, "keys"))
    seen = told(fleet(), archive=archive)
    assert values(seen["archived_messages"]) == {("delivered", "mail"): 3, ("failed", "keys"): 1}
    spread = seen["delivery_seconds"]
    assert isinstance(spread, Spread)
    assert dict(zip(BUCKETS, spread.counts, strict=True)) == {
        0.1: 0,
        0.5: 1,
        1.0: 1,
        5.0: 2,
        15.0: 2,
        60.0: 2,
        300.0: 2,
        1800.0: 2,
    }
    assert (spread.number, spread.total) == (3, 0.3 + 4.0 + 9999.0)
