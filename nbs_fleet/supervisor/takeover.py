"""The first look of whoever owns the panes: what is recorded, what lives, and how the rest ended."""

from __future__ import annotations

from msgspec.structs import replace

from nbs_fleet.errors import FleetError
from nbs_fleet.launch import processes, registry
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.model import AgentState, Exit, ProcId
from nbs_fleet.plan.types import AgentRecord, Desired, Plan
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.exits import HISTORY, read_end, without_pane
from nbs_fleet.supervisor.fleet import STOPPED_STATES, Died, Event, Found, Loaded
from nbs_fleet.supervisor.starter import settled_pane
from nbs_fleet.supervisor.story import recall


def first_events(plan: Plan, tmux: Tmux) -> tuple[Event, ...]:
    """What the policy must know first: records and what lives, the plan, then each death that nobody saw."""
    panes = {p.handle: p for p in tmux.panes() if p.handle}
    kept = store.read_records(plan.paths)
    lost = {a.agent.handle for a in plan.agents} - {r.handle for r in kept}
    told = (r for handle in sorted(lost) if (r := _told(plan, handle)) is not None)
    records = tuple(_mended(r, panes.get(r.handle)) for r in (*kept, *told))
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


def _told(plan: Plan, handle: str) -> AgentRecord | None:
    """What the story tells of an agent whose record is gone or damaged; None: it never ran, or has left the team."""
    path = plan.paths.agent(handle).story
    memory = recall(path)
    if memory is None:
        return None
    store.story(plan.paths, handle).tell(
        moment().wall, "record lost", file=f"{handle}/state.json", session=memory.session
    )
    return AgentRecord(
        handle,
        desired=Desired.STOPPED if memory.state in STOPPED_STATES else Desired.UP,
        # One that lives is seen soon, one that does not is due; what rested, rests.
        state=memory.state if memory.state in STOPPED_STATES else AgentState.STARTING,
        session_id=memory.session,
    )


def end_of(plan: Plan, record: AgentRecord, pane: Pane | None, tmux: Tmux) -> Exit:
    """How a client ended while nobody watched; its last screen is kept."""
    now = moment().wall
    if pane is None or pane.id != record.pane:
        server = tmux.server_pid()
        return Exit(without_pane(record.proc, processes.identify(server) if server is not None else None), now)
    rows: tuple[str, ...] = ()
    try:
        pane = settled_pane(tmux, pane.id) or pane
        rows = store.masked(plan.paths, record.handle, tmux.capture(pane.id, history=HISTORY))
    except FleetError:
        rows = ()
    store.keep_capture(plan.paths, record.handle, now, rows)
    agent = plan.find(record.handle)
    return read_end(registry.of(agent.agent) if agent else registry.get("claude"), pane, rows, now)
