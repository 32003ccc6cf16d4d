"""Takes a team down: every client ended with its children, the supervisor and tmux gone, and checked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from nbs_fleet.errors import FleetError, TimedOutError
from nbs_fleet.launch import deployment, processes, rundir
from nbs_fleet.launch.locks import FileLock
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.model import AgentState, ProcId
from nbs_fleet.nbs import control, presence
from nbs_fleet.plan.types import AgentRecord, Desired, Plan
from nbs_fleet.plan.wrappers import FAILED
from nbs_fleet.supervisor import lives, store
from nbs_fleet.supervisor.bring_up import QUEUE_SECONDS
from nbs_fleet.supervisor.client import LeavingSupervisorError, connection
from nbs_fleet.supervisor.fleet import Ended
from nbs_fleet.supervisor.panes import Panes
from nbs_fleet.supervisor.protocol import Request
from nbs_fleet.supervisor.stopper import stop
from nbs_fleet.supervisor.telling import tell

YIELD_SECONDS = 40.0


class Down(Struct, frozen=True):
    """What came of it: the agents that were ended, processes that are still there, changes of files that are."""

    ended: tuple[Ended, ...]
    left: tuple[ProcId, ...]
    problems: tuple[str, ...] = ()


def take_down(plan: Plan, *, timeout: float, purge: bool, tell_one: Callable[[Ended], None]) -> Down:
    """End the whole team.

    Raises FleetError if a supervisor that hangs does not let go; also, once all is ended, if that could not be
    written down (a full disk).
    """
    paths = plan.paths
    if not os.path.isdir(paths.run):
        return Down((), ())
    queue = FileLock(paths.up_lock)
    queue.acquire(QUEUE_SECONDS)
    try:
        _take_over(plan)
        owner = FileLock(paths.lock)
        try:
            owner.acquire(10.0)
        except TimedOutError as error:
            raise FleetError(f"the supervisor does not let go: {error.message}") from error
        try:
            ended, unwritten = asyncio.run(_end_all(plan, timeout, tell_one))
            below = _close_tmux(plan)
            _leave_root(plan, tuple(r.handle for r in store.read_records(paths)))
            left = asyncio.run(_end_rest(plan, below, timeout))
            problems = deployment.undo(paths.run)
        finally:
            owner.release()
        if not left:
            rundir.remove_runtime(paths)
    finally:
        queue.release()
    if purge and not left and not problems:
        rundir.purge(paths, plan.root)
    elif unwritten:
        raise FleetError(
            f"{plan.team} is down, but that is not written: {unwritten[0].message}", hint=unwritten[0].hint
        )
    return Down(ended, left, problems)


def _take_over(plan: Plan) -> None:
    """Have a live supervisor let go of the panes."""
    try:
        with connection(plan.paths) as link:
            link.wait(YIELD_SECONDS)
            link.ask(Request("yield"))
    except (OSError, LeavingSupervisorError):
        return


async def _end_all(
    plan: Plan, timeout: float, tell_one: Callable[[Ended], None]
) -> tuple[tuple[Ended, ...], tuple[FleetError, ...]]:
    """End every agent; what could not be written of it stops nobody's end."""
    panes = Panes(Tmux(plan.paths.tmux, plan.paths.tmux_conf), plan.team)
    found = store.read_records(plan.paths)
    unwritten: list[FleetError] = []

    async def one(record: AgentRecord) -> Ended | None:
        ended = None
        if record.proc is not None and processes.alive(record.proc):
            ended = await stop(plan, record, panes, timeout=timeout)
            tell_one(ended)
        try:
            _write_down(plan, record, ended)
        except FleetError as error:
            unwritten.append(error)
        return ended

    results = await asyncio.gather(*(one(record) for record in found))
    return tuple(ended for ended in results if ended is not None), tuple(unwritten)


def _write_down(plan: Plan, record: AgentRecord, ended: Ended | None) -> None:
    now = moment()
    last = ended.end if ended else record.last_exit
    after = lives.settle(
        record, AgentState.STOPPED, now, proc=None, pane=None, desired=Desired.STOPPED, last_exit=last, pending=None
    )
    store.write_record(plan.paths, after)
    tell(store.story(plan.paths, record.handle), record, after, now)


def _leave_root(plan: Plan, handles: tuple[str, ...]) -> None:
    """Remove what marks agents as living for the nbs tools; chats, events and cursors are the team's own."""
    for handle in handles:
        for path in (
            presence.sidecar_path(plan.root, handle),
            presence.pid_path(plan.root, handle),
            presence.session_path(plan.root, handle),
            control.registry_path(plan.root, handle),
        ):
            with suppress(FileNotFoundError):
                os.unlink(path)
    for folder in ("pids", "sessions"):
        with suppress(OSError):
            os.rmdir(os.path.join(plan.root, ".nbs", folder))


def _close_tmux(plan: Plan) -> tuple[ProcId, ...]:
    """End the server with the supervisor's window, and remove what would mark the team as up.

    Returns what ran below the server: the loop around the supervisor bears no mark, and may take a moment to end.
    """
    paths = plan.paths
    tmux = Tmux(paths.tmux, paths.tmux_conf)
    pid = tmux.find_server()
    server = processes.identify(pid) if pid else None
    below = processes.tree(server) if server is not None else ()
    tmux.kill_server()
    for path in (paths.socket, paths.tmux, os.path.join(paths.run, FAILED)):
        with suppress(FileNotFoundError):
            os.unlink(path)
    return below


async def _end_rest(plan: Plan, below: tuple[ProcId, ...], timeout: float) -> tuple[ProcId, ...]:
    """End whatever is left of the tmux server's tree or carries the team's mark; returns what can't be ended."""
    exclude = {p.pid for p in processes.ancestry(os.getpid())} | {os.getpid()}

    def rest() -> tuple[ProcId, ...]:
        still = (proc for proc in below if processes.alive(proc) and proc.pid not in exclude)
        return tuple(dict.fromkeys((*still, *processes.in_run(plan.paths.run, exclude))))

    if found := rest():
        await processes.end(found, ("TERM",), min(timeout, 2.0))
    return rest()
