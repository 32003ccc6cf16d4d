"""Ends clients and reads how they ended: evidence first, then politely, then surely, the whole tree."""

from __future__ import annotations

import asyncio

from nbs_fleet.errors import FleetError
from nbs_fleet.launch import processes, registry
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.model import Exit, ExitKind, ProcId
from nbs_fleet.plan.types import AgentRecord, Plan
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.exits import HISTORY, read_end, without_pane
from nbs_fleet.supervisor.fleet import Ended
from nbs_fleet.supervisor.panes import Panes

STOP_SECONDS = 10.0


async def stop(
    plan: Plan, record: AgentRecord, panes: Panes, *, remove: bool = False, timeout: float = STOP_SECONDS
) -> Ended:
    """End the client of `record` and all it started; its last screen is kept before the first signal."""
    handle = record.handle
    await keep_screen(plan, record, panes)
    survivors: tuple[int, ...] = ()
    if record.proc is not None:
        agent = plan.find(handle)
        signals = registry.of(agent.agent).stop_signals if agent else ("TERM",)
        ended = await processes.end((record.proc,), signals, timeout)
        # What left the tree for good (a session of its own, and a parent that ended) still carries our mark.
        strays = processes.in_run(plan.paths.run, handle=handle)
        rest = await processes.end(strays, ("TERM",), min(timeout, 2.0)) if strays else ended
        survivors = tuple(p.pid for p in (*ended.survivors, *rest.survivors))
    end = await bury(plan, record, panes, ours=True)
    if remove and record.pane is not None:
        await panes.remove(record.pane)
    return Ended(handle, end, survivors)


async def bury(plan: Plan, record: AgentRecord, panes: Panes, *, ours: bool = False) -> Exit:
    """How the client of `record` ended, from its dead pane, with its last screen kept."""
    now = moment().wall
    pane: Pane | None = None
    rows: tuple[str, ...] = ()
    try:
        pane = await panes.settled(record.pane, record.handle) if record.pane else None
        if pane is not None:
            rows = store.masked(plan.paths, record.handle, await panes.capture(pane.id, HISTORY))
    except FleetError:
        rows = ()
    if pane is None:
        return Exit(ExitKind.STOPPED if ours else without_pane(record.proc, await _server(panes)), now)
    store.keep_capture(plan.paths, record.handle, now, rows)
    agent = plan.find(record.handle)
    driver = registry.of(agent.agent) if agent else registry.get("claude")
    return read_end(driver, pane, rows, now, ours=ours)


async def _server(panes: Panes) -> ProcId | None:
    """The process of the tmux server, if one can be reached."""
    try:
        pid = await asyncio.to_thread(panes.tmux.server_pid)
    except FleetError:
        return None
    return processes.identify(pid) if pid is not None else None


async def keep_screen(plan: Plan, record: AgentRecord, panes: Panes) -> None:
    """Keep the screen as it is; a pane that can't be read any more is no reason to stop."""
    if record.pane is None:
        return
    try:
        rows = await panes.capture(record.pane, HISTORY)
    except FleetError:
        return
    store.keep_capture(plan.paths, record.handle, moment().wall, rows)
