"""What runs now: records on disk held against processes and panes. Reads only."""

from __future__ import annotations

from nbs_fleet.errors import TmuxError
from nbs_fleet.launch import processes
from nbs_fleet.launch.locks import holder
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import Running, Snapshot
from nbs_fleet.supervisor import store


def panes_of(paths: RunPaths) -> tuple[Pane, ...] | None:
    """All panes of the team's server; None if no server runs."""
    tmux = Tmux(paths.tmux, paths.tmux_conf)
    if tmux.server_pid() is None:
        return None
    try:
        return tmux.panes()
    except TmuxError:
        return None if tmux.server_pid() is None else ()


def take(paths: RunPaths) -> Snapshot:
    """The snapshot that a plan is compared with."""
    panes = panes_of(paths)
    by_id = {pane.id: pane for pane in panes or ()}
    running = []
    for record in store.read_records(paths):
        alive = record.proc is not None and processes.alive(record.proc)
        running.append(Running(record, alive, record.pane in by_id))
    known = {r.record.pane for r in running}
    strays = tuple((p.handle, p.id) for p in by_id.values() if p.handle and p.id not in known and not p.dead)
    return Snapshot(panes is not None, tuple(running), strays, owned=holder(paths.lock) is not None)
