"""Plan against what runs: the steps that `up` will take, complete and in order. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from nbs_fleet.model import AgentState, BlockedKind
from nbs_fleet.plan.types import (
    FRESH_SESSION,
    SAME_SESSION,
    AgentPlan,
    AgentRecord,
    Desired,
    Plan,
    Running,
    Snapshot,
    Step,
    Verb,
)

LEFT = "left the team file"
PANE_GONE = "its pane is gone"
NOT_RUNNING = "not running"
WAS_STOPPED = "was stopped"
HAD_FAILED = "had failed"

_AT_START = frozenset(
    {
        *(BlockedKind.TRUST, BlockedKind.BYPASS, BlockedKind.MCP, BlockedKind.SETUP),
        *(BlockedKind.APIKEY, BlockedKind.LOGIN, BlockedKind.SETTINGS, BlockedKind.RESUME),
    }
)
"""Dialogs before the first turn: no work is lost, and waiting for idle could take for ever."""


def diff(plan: Plan, snapshot: Snapshot, *, only: frozenset[str] | None, now: bool) -> tuple[Step, ...]:
    """The steps from `snapshot` to `plan`: first what ends (by handle), then who starts, by wave and file order.

    `only`: handles (a base handle stands for its copies) that may be touched; nobody else gets a step.
    `now`: restarts do not wait until the agent is idle. Each pane without a record is one ORPHAN step, named in
    its reason; each other handle has one step at most. An agent that left the file and no longer runs has none.
    """
    chosen = _Chosen(plan, only)
    handles = {agent.agent.handle for agent in plan.agents}
    orphans = [
        Step(handle, Verb.ORPHAN, (f"pane {pane} has no record",))
        for handle, pane in snapshot.strays
        if handle in chosen
    ]
    stops = [
        Step(found.record.handle, Verb.STOP, (LEFT,))
        for found in snapshot.agents
        if found.record.handle not in handles and found.record.handle in chosen and (found.alive or found.pane_exists)
    ]
    ends = sorted([*orphans, *stops], key=lambda step: (step.handle, step.verb, step.reasons))
    wanted = sorted((a for a in plan.agents if a.agent.handle in chosen), key=lambda a: a.wave)  # stable: file order
    return (*ends, *(_step(agent, snapshot, now=now) for agent in wanted))


def changed(planned: Mapping[str, str], running: Mapping[str, str]) -> tuple[str, ...]:
    """The keys whose values differ, in the order of the team file's table.

    A key that only one side knows is no change: another version of nbs-fleet wrote the other side, and nobody
    is restarted for an upgrade.
    """
    keys = (*SAME_SESSION, *FRESH_SESSION)
    return tuple(key for key in keys if key in planned and key in running and planned[key] != running[key])


class _Chosen:
    """Which handles may be touched."""

    def __init__(self, plan: Plan, only: frozenset[str] | None) -> None:
        self.only = only
        self.bases = {a.agent.handle: a.agent.base for a in plan.agents}

    def __contains__(self, handle: object) -> bool:
        if self.only is None or handle in self.only:
            return True
        if handle in self.bases:
            return self.bases[str(handle)] in self.only
        # A copy that the file no longer counts: bo-3 of what is now bo-1 and bo-2.
        base, _, number = str(handle).rpartition("-")
        return number.isdigit() and base in self.only and base in self.bases.values() and base not in self.bases


def _step(agent: AgentPlan, snapshot: Snapshot, *, now: bool) -> Step:
    handle = agent.agent.handle
    found = snapshot.find(handle)
    if found is None:
        return Step(handle, Verb.START, fresh=True)
    keys = changed(agent.fields, found.record.fields)
    if not found.alive:
        fresh = needs_fresh(keys) or not agent.agent.restart.resume
        return Step(handle, Verb.START, (_why_dead(found.record), *keys), fresh=fresh)
    broken = _why_broken(found)
    if broken:
        return Step(handle, Verb.RESTART, (broken, *keys), fresh=needs_fresh(keys))
    if keys:
        return Step(
            handle, Verb.RESTART, keys, when_idle=not (now or _idle_never_comes(found.record)), fresh=needs_fresh(keys)
        )
    return Step(handle, Verb.KEEP if snapshot.owned else Verb.ADOPT)


def needs_fresh(keys: tuple[str, ...]) -> bool:
    """Whether these changes need a new session. A session belongs to the client that wrote it, so a driver's does."""
    return any(key in keys for key in (*FRESH_SESSION, "driver"))


def _why_dead(record: AgentRecord) -> str:
    if record.desired is Desired.STOPPED:
        return WAS_STOPPED
    if record.state is AgentState.FAILED:
        return HAD_FAILED
    return f"{NOT_RUNNING}: {record.last_exit.describe()}" if record.last_exit else NOT_RUNNING


def _why_broken(found: Running) -> str | None:
    """Why a living process is of no use to anybody."""
    if not found.pane_exists:
        return PANE_GONE
    if found.record.desired is Desired.STOPPED:
        return WAS_STOPPED
    return HAD_FAILED if found.record.state is AgentState.FAILED else None


def _idle_never_comes(record: AgentRecord) -> bool:
    return record.state is AgentState.BLOCKED and record.blocked in _AT_START
