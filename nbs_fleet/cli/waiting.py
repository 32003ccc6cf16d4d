"""Waiting for agents with the supervisor's changes: shared by up, start, stop and restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from msgspec import Struct

from nbs_fleet.model import AgentState
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentRecord, Desired, Plan
from nbs_fleet.supervisor.bring_up import reach
from nbs_fleet.supervisor.protocol import Request

RESTING = (AgentState.STOPPED, AgentState.FAILED, AgentState.BACKOFF)


class Waited(Struct, frozen=True):
    """How a wait ended: records by handle, seconds each took, and who was still on the way."""

    records: dict[str, AgentRecord]
    took: dict[str, float]
    starting: tuple[str, ...]


def follow(
    paths: RunPaths,
    plan: Plan,
    handles: Iterable[str],
    *,
    timeout: float,
    settled: Callable[[AgentRecord, dict[str, AgentRecord], Plan], bool],
    tell: Callable[[str, AgentRecord, float], None],
    began: float | None = None,
) -> Waited:
    """Wait until each of `handles` is settled, or `timeout` seconds are over; `tell` hears of each once.

    Seconds count from `began` (monotonic), by default from now.
    """
    began = time.monotonic() if began is None else began
    wanted = dict.fromkeys(handles)
    records: dict[str, AgentRecord] = {}
    took: dict[str, float] = {}
    link = reach(paths)
    try:
        link.ask(Request("follow"))
        complete = False
        for change in link.changes(0.5):
            passed = time.monotonic() - began
            if change is not None and change.record is not None:
                records[change.record.handle] = change.record
            if change is not None and change.gone is not None:
                records.pop(change.gone, None)
                wanted.pop(change.gone, None)
            complete = complete or (change is not None and change.complete)
            if complete:
                for handle in [h for h in wanted if h not in took]:
                    record = records.get(handle)
                    if record is not None and settled(record, records, plan):
                        took[handle] = passed
                        tell(handle, record, passed)
            if complete and all(h in took for h in wanted):
                break
            if passed > timeout:
                break
    finally:
        link.close()
    return Waited(records, took, tuple(h for h in wanted if h not in took))


def is_up(record: AgentRecord, records: dict[str, AgentRecord], plan: Plan) -> bool:
    """`up` need not wait longer: ready, in need of a person, dead, or waiting for one that is."""
    if record.ready or record.state in (AgentState.BLOCKED, *RESTING):
        return True
    agent = plan.find(record.handle)
    if agent is None or record.proc is not None:
        return False
    needed = [records[h] for h in agent.agent.depends_on if h in records]
    return any(is_up(r, records, plan) and not r.ready for r in needed)


def is_down(record: AgentRecord, _records: dict[str, AgentRecord], _plan: Plan) -> bool:
    """Nothing runs any more, by wish or by fate."""
    return record.proc is None and record.state in RESTING and record.desired is Desired.STOPPED
