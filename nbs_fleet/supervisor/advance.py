"""What is due now: stops of agents that left or changed, starts in waves with a bound. Pure, level-triggered."""

from __future__ import annotations

from msgspec.structs import replace

from nbs_fleet.model import AgentState, Moment, ProcId
from nbs_fleet.plan.types import Desired
from nbs_fleet.supervisor import lives as of
from nbs_fleet.supervisor.fleet import Action, AwaitRest, Fleet, Life, Start, StartOne, Stop
from nbs_fleet.supervisor.policy import within

PARALLEL = 16
"""Agents that may be starting at the same time and want a core for it: more would keep each other from getting ready."""
PARALLEL_PACED = 2
"""The same after a mass death, where to rest makes no room: whoever rests may be about to die again."""
SLOT_SECONDS = 20.0
"""After so long a start that is not ready gives its place to the next."""


def advance(fleet: Fleet, now: Moment) -> tuple[Fleet, tuple[Action, ...]]:
    """Return the fleet with everything that is due set in motion, and the actions that do it."""
    if fleet.yielding:
        return replace(fleet, wake_at=None), ()
    actions: list[Action] = []
    if fleet.alarm and now.mono >= fleet.pace_until:
        fleet = replace(fleet, alarm="")
    for life in list(fleet.lives.values()):
        fleet, more = _stops(fleet, life, now)
        actions.extend(more)
    fleet, starts, crowded = _starts(fleet, now)
    if starts:
        actions.append(Start(starts))
    if crowded and not fleet.looking and (clients := _rousing(fleet, now)):
        actions.append(AwaitRest(clients))
        fleet = replace(fleet, looking=True)
    return replace(fleet, wake_at=_wake(fleet, now)), tuple(actions)


def _stops(fleet: Fleet, life: Life, now: Moment) -> tuple[Fleet, tuple[Action, ...]]:
    handle = life.record.handle
    if life.flight:
        return fleet, ()
    if life.plan is None and fleet.plan is not None:
        if life.alive:
            return of.put(fleet, replace(life, flight="stopping", after="forget")), (
                Stop(handle, "it left the team file", remove=True),
            )
        rest = {h: other for h, other in fleet.lives.items() if h != handle}
        return replace(fleet, lives=rest), ()
    if life.alive and life.record.desired is Desired.STOPPED:
        return of.put(fleet, replace(life, flight="stopping", after="rest")), (Stop(handle, "stop was asked for"),)
    resting = life.record.state is AgentState.IDLE or life.pending_now
    if life.alive and life.record.pending and resting and life.plan is not None:
        why = life.record.pending
        record = of.settle(life.record, AgentState.STARTING, now, detail=f"restarts: {why}")
        return of.put(fleet, replace(life, record=record, flight="stopping", after="start")), (Stop(handle, why),)
    return fleet, ()


def _starts(fleet: Fleet, now: Moment) -> tuple[Fleet, tuple[StartOne, ...], bool]:
    """The starts that are due and have room, and whether others are due that have none."""
    free = (PARALLEL_PACED if _paced(fleet, now) else PARALLEL) - _starting(fleet, now)
    chosen: list[StartOne] = []
    crowded = False
    for life in sorted(fleet.lives.values(), key=_order):
        if life.due is None or life.due > now.mono or life.flight or life.alive or life.plan is None:
            continue
        waits = waits_for(fleet, life)
        if waits or free <= 0:
            crowded = crowded or not waits
            fleet = of.put(fleet, _waiting(life, now, f"waits for {', '.join(waits)}" if waits else "waits its turn"))
            continue
        free -= 1
        chosen.append(StartOne(life.record.handle, life.fresh, life.cause))
        fleet = of.put(fleet, _begun(life, now))
    return fleet, tuple(chosen), crowded


def _paced(fleet: Fleet, now: Moment) -> bool:
    return now.mono < fleet.pace_until


def _order(life: Life) -> tuple[int, str]:
    return (life.plan.wave if life.plan else 0, life.record.handle)


def _starting(fleet: Fleet, now: Moment) -> int:
    paced = _paced(fleet, now)
    return sum(1 for life in fleet.lives.values() if _holds_slot(life, now) and (paced or not life.rested))


def _rousing(fleet: Fleet, now: Moment) -> dict[str, ProcId]:
    """The clients whose rest would make room."""
    if _paced(fleet, now):
        return {}
    lives = (life for life in fleet.lives.values() if life.alive and not life.rested and _holds_slot(life, now))
    return {life.record.handle: life.record.proc for life in lives if life.record.proc is not None}


def _holds_slot(life: Life, now: Moment) -> bool:
    if life.flight == "starting":
        return True
    fresh = life.alive and not life.record.ready and life.record.state is AgentState.STARTING
    return fresh and now.mono < life.started + SLOT_SECONDS


def waits_for(fleet: Fleet, life: Life) -> tuple[str, ...]:
    """The handles this agent depends on that are not ready."""
    if life.plan is None:
        return ()
    needed = life.plan.agent.depends_on
    return tuple(h for h in needed if h in fleet.lives and not fleet.lives[h].record.ready)


def _waiting(life: Life, now: Moment, why: str) -> Life:
    if life.record.state is AgentState.STARTING:
        return replace(life, record=replace(life.record, detail=why))
    return replace(life, record=of.settle(life.record, AgentState.STARTING, now, detail=why))


def _begun(life: Life, now: Moment) -> Life:
    policy = life.plan.agent.restart if life.plan else None
    kept = within(life.record.starts, now.mono, policy.within) if policy else ()
    record = of.settle(
        life.record, AgentState.STARTING, now, starts=(*kept, now.mono), boot=now.boot, desired=Desired.UP, pending=None
    )
    return replace(life, record=record, flight="starting", started=now.mono, due=None, rested=False)


def _wake(fleet: Fleet, now: Moment) -> float | None:
    """The next time at which something becomes due without an event."""
    times = [life.due for life in fleet.lives.values() if life.due is not None and not life.flight]
    waiting = any(at <= now.mono for at in times)
    if waiting or fleet.alarm:
        times.append(fleet.pace_until)
    if waiting:
        times.extend(life.started + SLOT_SECONDS for life in fleet.lives.values() if _holds_slot(life, now))
    future = [at for at in times if at > now.mono]
    return min(future) if future else None
