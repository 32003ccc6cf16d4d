"""The supervisor's policy: which agents to start, stop, restart or leave, as one pure function."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from nbs_fleet.model import AgentState, Asking, Exit, ExitKind, Moment
from nbs_fleet.plan.diff import changed, needs_fresh
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Desired
from nbs_fleet.sidecar.actions import Report
from nbs_fleet.supervisor import lives as of
from nbs_fleet.supervisor.advance import advance
from nbs_fleet.supervisor.fleet import (
    STOPPED_STATES,
    Action,
    Alarm,
    Asked,
    Broke,
    Died,
    Ended,
    Event,
    Filled,
    Fleet,
    Found,
    Launched,
    LaunchedAll,
    Life,
    Loaded,
    Metered,
    Reported,
    Rested,
    Save,
    Stop,
    Ticked,
    Watch,
)
from nbs_fleet.supervisor.policy import add, after_exit

MASS_WINDOW = 5.0
"""Seconds within which several deaths are one event."""
MASS_COUNT = 3
PACE_SECONDS = 60.0


def decide(fleet: Fleet, event: Event, now: Moment) -> tuple[Fleet, tuple[Action, ...]]:
    """Return the fleet after `event` and the actions to perform, in order: saves come first."""
    before = fleet.lives
    fleet, first = _take(fleet, event, now)
    fleet, more = advance(fleet, now)
    saves = tuple(Save(life.record) for handle, life in fleet.lives.items() if of.record(before, handle) != life.record)
    gone = tuple(Save(life.record, gone=True) for handle, life in before.items() if handle not in fleet.lives)
    return fleet, (*saves, *gone, *first, *more)


def _take(fleet: Fleet, event: Event, now: Moment) -> tuple[Fleet, tuple[Action, ...]]:
    match event:
        case Loaded():
            return _loaded(fleet, event, now), ()
        case Found():
            return _found(fleet, event, now)
        case LaunchedAll():
            actions: tuple[Action, ...] = ()
            for result in event.results:
                fleet, more = _launched(fleet, result, now)
                actions += more
            return fleet, actions
        case Launched():
            return _launched(fleet, event, now)
        case Died():
            return _died(fleet, event, now)
        case Ended():
            return _ended(fleet, event, now), ()
        case Reported():
            return _reported(fleet, event), ()
        case Metered():
            return _metered(fleet, event), ()
        case Filled():
            return _filled(fleet, event), ()
        case Asked():
            return _asked(fleet, event, now)
        case Broke():
            return _broke(fleet, event), ()
        case Rested():
            return _rested(fleet, event), ()
        case Ticked():
            return fleet, ()
        case _:
            assert_never(event)


def _loaded(fleet: Fleet, event: Loaded, now: Moment) -> Fleet:
    """Take over a plan: new agents appear, those that left lose theirs, changed ones are marked."""
    known = {a.agent.handle: a for a in event.plan.agents}
    lives: dict[str, Life] = {}
    for handle, plan in known.items():
        life = fleet.lives.get(handle) or Life(AgentRecord(handle), None)
        touched = event.only is None or handle in event.only
        life = _changed(replace(life, plan=plan), plan, at_once=event.now and touched)
        lives[handle] = _wanted(life, now) if event.up and touched else life
    for handle, life in fleet.lives.items():
        if handle not in known:
            lives[handle] = replace(life, plan=None)
    return replace(fleet, plan=event.plan, lives=lives)


def _changed(life: Life, plan: AgentPlan, *, at_once: bool) -> Life:
    record = life.record
    if not life.alive or not record.fields:
        return life
    keys = changed(plan.fields, record.fields)
    if not keys:
        # Where both have the same digests, one object is enough to hold.
        fields = plan.fields if plan.fields == record.fields else record.fields
        return replace(life, record=replace(record, pending=None, fields=fields), pending_now=False)
    record = replace(record, pending=f"{', '.join(keys)} changed")
    return replace(life, record=record, fresh=needs_fresh(keys), pending_now=at_once)


def _wanted(life: Life, now: Moment) -> Life:
    """A person wants this agent up: what failed or was stopped starts afresh; what lives is left alone."""
    record = replace(life.record, desired=Desired.UP)
    if life.alive or life.flight:
        return replace(life, record=record)
    record = of.settle(record, AgentState.STARTING, now, starts=(), restarts=0)
    return replace(life, record=record, due=now.mono)


def _found(fleet: Fleet, event: Found, now: Moment) -> tuple[Fleet, tuple[Action, ...]]:
    lives: dict[str, Life] = {}
    watched: list[Action] = []
    for found in event.records:
        record = found if found.boot == now.boot else replace(found, starts=(), boot=now.boot)
        life = Life(record, None, alive=record.proc is not None)
        if record.handle in event.alive:
            watched.append(Watch(record.handle, prompted=not record.ready, died=False))
        elif record.proc is not None:
            life = replace(life, record=replace(record, ready=False))
        elif record.desired is Desired.UP:
            life = replace(life, due=_resumed_wait(record, now))
        lives[record.handle] = life
    return replace(fleet, lives=lives), tuple(watched)


def _resumed_wait(record: AgentRecord, now: Moment) -> float | None:
    """When an agent that was waiting for its start is due, after the supervisor itself came back."""
    if record.state is AgentState.BACKOFF and record.until is not None:
        return now.mono + min(max(0.0, record.until - now.wall), 600.0)
    return now.mono if record.state in (AgentState.STARTING, AgentState.BACKOFF) else None


def _launched(fleet: Fleet, event: Launched, now: Moment) -> tuple[Fleet, tuple[Action, ...]]:
    life = fleet.lives.get(event.handle)
    if life is None:
        return fleet, ()
    life = replace(life, flight="")
    if event.proc is None:
        end = event.end or Exit(ExitKind.CRASH, now.wall, lines=("the start gave no process",))
        return _gone(of.put(fleet, life), life, end, now)
    record = replace(
        life.record,
        proc=event.proc,
        pane=event.pane,
        session_id=event.session_id,
        sessions=event.sessions,
        transcript_from=event.transcript_from,
        fields=event.fields,
    )
    life = replace(life, record=record, alive=True, cause="", fresh=False, due=None)
    if life.plan is not None:
        life = _changed(life, life.plan, at_once=False)
    return of.put(fleet, life), (Watch(event.handle, prompted=event.prompted, died=True),)


def _died(fleet: Fleet, event: Died, now: Moment) -> tuple[Fleet, tuple[Action, ...]]:
    life = fleet.lives.get(event.handle)
    if life is None or not life.alive or life.record.proc != event.proc or life.flight == "stopping":
        return fleet, ()
    return _gone(fleet, life, event.end, now)


def _gone(fleet: Fleet, life: Life, end: Exit, now: Moment) -> tuple[Fleet, tuple[Action, ...]]:
    """Apply the restart policy to a client that ended by itself."""
    plan = life.plan
    record = replace(life.record, proc=None, ready=False, last_exit=end, pending=None)
    life = replace(life, alive=False, pending_now=False)
    if plan is None or record.desired is Desired.STOPPED:
        return of.put(fleet, replace(life, record=of.settle(record, AgentState.STOPPED, now))), ()
    jitter = of.spread(record.handle, len(record.starts))
    verdict = after_exit(plan.agent.restart, end, record.starts, now.mono, jitter)
    if verdict.then == "restart":
        until = now.wall + verdict.delay
        record = of.settle(record, AgentState.BACKOFF, now, until=until, restarts=record.restarts + 1)
        # Claude Code refuses an id it does not know; asking again for the same would fail for ever.
        fresh = life.fresh or end.kind is ExitKind.NO_CONVERSATION
        life = replace(life, record=record, due=now.mono + verdict.delay, cause=end.describe(), fresh=fresh)
        return _count_death(of.put(fleet, life), now)
    if verdict.then == "failed":
        record = of.settle(record, AgentState.FAILED, now, detail=verdict.reason)
    else:
        record = of.settle(record, AgentState.STOPPED, now)
    return of.put(fleet, replace(life, record=record)), ()


def _count_death(fleet: Fleet, now: Moment) -> tuple[Fleet, tuple[Action, ...]]:
    """Several deaths at once are one alarm and one slow recovery, not as many alarms as agents."""
    deaths = (*(at for at in fleet.deaths if at > now.mono - MASS_WINDOW), now.mono)
    fleet = replace(fleet, deaths=deaths)
    if len(deaths) < MASS_COUNT:
        return fleet, ()
    paced = replace(fleet, pace_until=now.mono + PACE_SECONDS)
    if fleet.pace_until > now.mono:
        return paced, ()
    text = f"{len(deaths)} agents died within {MASS_WINDOW:g} s; they come back two at a time"
    return replace(paced, alarm=text), (Alarm(text),)


def _ended(fleet: Fleet, event: Ended, now: Moment) -> Fleet:
    life = fleet.lives.get(event.handle)
    if life is None:
        return fleet
    detail = f"left behind: {', '.join(map(str, event.survivors))}" if event.survivors else ""
    record = replace(life.record, proc=None, ready=False, last_exit=event.end, pending=None)
    life = replace(life, alive=False, flight="", pending_now=False, after="")
    if fleet.lives[event.handle].after == "start" and record.desired is Desired.UP:
        record = of.settle(record, AgentState.STARTING, now, detail=detail)
        return of.put(fleet, replace(life, record=record, due=now.mono))
    record = of.settle(record, AgentState.STOPPED, now, detail=detail)
    return of.put(fleet, replace(life, record=record, due=None))


def _reported(fleet: Fleet, event: Reported) -> Fleet:
    life = fleet.lives.get(event.handle)
    if life is None or not life.alive or life.flight == "stopping":
        return fleet
    return of.put(fleet, replace(life, record=_told(life.record, event.report)))


def _metered(fleet: Fleet, event: Metered) -> Fleet:
    life = fleet.lives.get(event.handle)
    if life is None:
        return fleet
    record = life.record
    tokens = add(record.tokens, event.session, event.spent)
    model = event.model or record.model
    return of.put(fleet, replace(life, record=replace(record, tokens=tokens, context=event.context, model=model)))


def _filled(fleet: Fleet, event: Filled) -> Fleet:
    life = fleet.lives.get(event.handle)
    if life is None:
        return fleet
    return of.put(fleet, replace(life, record=replace(life.record, filling=event.filling)))


def _told(record: AgentRecord, report: Report) -> AgentRecord:
    if report.session_id and record.session_id and report.session_id != record.session_id:
        record = replace(record, session_id=report.session_id, sessions=(*record.sessions, record.session_id)[-20:])
    asking, detail = _asked_for(record, report)
    return replace(
        record,
        queued=report.queued,
        unread=report.unread,
        events=report.events,
        rung=report.rung,
        attention=report.attention,
        signal=report.signal,
        tries=report.tries,
        state=report.state,
        since=report.since or record.since,
        ready=report.ready,
        blocked=report.blocked,
        detail=detail,
        until=report.until,
        evidence=report.evidence,
        signal_text=report.signal_text,
        asking=asking,
        failure=report.failure,
        escalated=report.escalated,
        words=report.words,
    )


def _asked_for(record: AgentRecord, report: Report) -> tuple[Asking | None, str]:
    """The open dialog and what it is about: a supervisor that takes over did not hear the hook that told it."""
    new, old = report.asking, record.asking
    if report.state is not AgentState.BLOCKED or record.state is not AgentState.BLOCKED or old is None:
        return new, report.detail
    if new is None and report.blocked in (None, old.kind):
        # The screen was not read yet.
        return old, record.detail
    if new is None:
        return new, report.detail
    if new.mark == old.mark and not new.request:
        return replace(new, request=old.request), record.detail or report.detail
    return new, report.detail


def _asked(fleet: Fleet, event: Asked, now: Moment) -> tuple[Fleet, tuple[Action, ...]]:
    if event.verb == "yield":
        return replace(fleet, yielding=True), ()
    actions: list[Action] = []
    for handle in event.handles:
        life = fleet.lives.get(handle)
        if life is None:
            continue
        life, more = _asked_one(life, event, now)
        fleet = of.put(fleet, life)
        actions.extend(more)
    return fleet, tuple(actions)


def _asked_one(life: Life, event: Asked, now: Moment) -> tuple[Life, tuple[Action, ...]]:
    handle = life.record.handle
    if event.verb == "stop":
        life = replace(life, record=replace(life.record, desired=Desired.STOPPED), due=None)
        if life.flight == "stopping":
            return replace(life, after="rest"), ()
        if life.alive and not life.flight:
            return replace(life, flight="stopping", after="rest"), (Stop(handle, "stop was asked for"),)
        if not life.flight and life.record.state not in STOPPED_STATES:
            life = replace(life, record=of.settle(life.record, AgentState.STOPPED, now))
        return life, ()
    if event.verb == "restart" and life.alive and not life.flight:
        record = of.settle(
            life.record, AgentState.STARTING, now, detail="restarts: it was asked for", desired=Desired.UP, starts=()
        )
        life = replace(life, record=record, flight="stopping", after="start", fresh=event.fresh)
        return life, (Stop(handle, "restart was asked for"),)
    return replace(_wanted(life, now), fresh=event.fresh), ()


def _rested(fleet: Fleet, event: Rested) -> Fleet:
    fleet = replace(fleet, looking=False)
    for handle, proc in event.clients.items():
        life = fleet.lives.get(handle)
        if life is not None and life.alive and life.record.proc == proc:
            fleet = of.put(fleet, replace(life, rested=True))
    return fleet


def _broke(fleet: Fleet, event: Broke) -> Fleet:
    """An effect failed: nothing is in flight any more, and `ps` shows why."""
    life = fleet.lives.get(event.handle or "")
    if life is None:
        return fleet
    record = replace(life.record, detail=event.what)
    return of.put(fleet, replace(life, record=record, flight=""))
