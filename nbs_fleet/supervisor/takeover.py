"""The first look of whoever owns the panes: what is recorded, what lives, and how the rest ended."""

from __future__ import annotations

from msgspec.structs import replace

from nbs_fleet.errors import FleetError
from nbs_fleet.launch import processes, registry
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.model import Exit, ProcId
from nbs_fleet.plan.types import AgentRecord, Plan
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.exits import read_end, without_pane
from nbs_fleet.supervisor.fleet import Died, Event, Found, Loaded
from nbs_fleet.supervisor.starter import settled_pane
from nbs_fleet.supervisor.stopper import HISTORY


def first_events(plan: Plan, tmux: Tmux) -> tuple[Event, ...]:
    """What the policy must know first: records and what lives, the plan, then each death that nobody saw."""
    panes = {p.handle: p for p in tmux.panes() if p.handle}
    records = tuple(_mended(r, panes.get(r.handle)) for r in store.read_records(plan.paths))
    alive = tuple(r.handle for r in records if r.proc is not None and processes.alive(r.proc))
    deaths = tuple(
        Died(r.handle, r.proc, end_of(plan, r, panes.get(r.handle), tmux))
        for r in records
        if r.proc is not None and r.handle not in alive
    )
    return (Found(records, alive, processes.boot_id()), Loaded(plan), *deaths)


def _mended(record: AgentRecord, pane: Pane | None) -> AgentRecord:
    """A record whose start was not written down to the end: the pane knows the process."""
    if pane is None or pane.dead or (record.proc is not None and record.proc.pid == pane.pid):
        return record
    found: ProcId | None = processes.identify(pane.pid)
    if found is None or not processes.alive(found) or (record.proc is not None and processes.alive(record.proc)):
        return record
    return replace(record, proc=found, pane=pane.id, ready=False)


def end_of(plan: Plan, record: AgentRecord, pane: Pane | None, tmux: Tmux) -> Exit:
    """How a client ended while nobody watched; its last screen is kept."""
    now = moment().wall
    if pane is None or pane.id != record.pane:
        server = tmux.server_pid()
        return Exit(without_pane(record.proc, processes.identify(server) if server is not None else None), now)
    rows: tuple[str, ...] = ()
    try:
        pane = settled_pane(tmux, pane.id) or pane
        rows = tmux.capture(pane.id, history=HISTORY)
    except FleetError:
        rows = ()
    store.keep_capture(plan.paths, record.handle, now, rows)
    agent = plan.find(record.handle)
    return read_end(registry.of(agent.agent) if agent else registry.get("claude"), pane, rows, now)
