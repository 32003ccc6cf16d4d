"""Runs the supervisor of one run directory: `python -m nbs_fleet.supervisor RUN`. Started by supervise.sh."""

from __future__ import annotations

from nbs_fleet.launch import lean  # noqa: F401 -- before all that it makes smaller

# isort: split
import asyncio
import os
import resource
import signal
import sys
from contextlib import suppress
from functools import partial

from nbs_fleet.errors import FleetError, TimedOutError
from nbs_fleet.launch.locks import FileLock
from nbs_fleet.launch.memory import hand_back
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.host import Supervisor
from nbs_fleet.supervisor.panes import Panes
from nbs_fleet.supervisor.takeover import first_events

FILES = 16_384
"""Open files a supervisor may have; on many systems a program begins with 1,024, and has to ask for more."""
LOCK_SECONDS = 60.0
"""How long the lock is waited for: a command that sets a team up holds it for a moment."""
STARTED_SECONDS = 20.0
"""When most starts are over, and most of what they needed is free again."""


def main(argv: list[str]) -> int:
    """Own the team until told to yield (exit 0), until tmux is gone (1), or until a signal (128 + its number)."""
    try:
        paths = store.read_paths(argv[1])
        return 0 if paths is None else asyncio.run(supervise(paths, _own(paths)))
    except FleetError as error:
        sys.stderr.write(f"nbs-fleet supervisor: {error.message}\n")
        return error.exit_code


def _own(paths: RunPaths) -> FileLock:
    """The lock, once it is ours."""
    lock = FileLock(paths.lock)
    try:
        lock.wait(LOCK_SECONDS)
    except TimedOutError as error:
        raise FleetError(f"someone else owns this team: {error.message}") from error
    return lock


async def supervise(paths: RunPaths, lock: FileLock) -> int:
    """Take over what runs, and supervise; lets go of the lock in the end."""
    try:
        supervisor = await _take_over(paths)
        if supervisor is None:
            return 0
        loop = asyncio.get_running_loop()
        for name in ("TERM", "INT", "HUP"):
            number = getattr(signal, f"SIG{name}")
            # Not by add_signal_handler, for which asyncio loads Python's own parser.
            signal.signal(number, partial(_end, loop, supervisor))
        loop.call_later(STARTED_SECONDS, hand_back)
        return await supervisor.run()
    finally:
        lock.release()
        with suppress(OSError):
            sys.stderr.flush()


def _end(loop: asyncio.AbstractEventLoop, supervisor: Supervisor, number: int, _frame: object) -> None:
    loop.call_soon_threadsafe(supervisor.end, 128 + number)


def _allow_files() -> None:
    """Room for the open files of a large team, two for each agent."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    if now != resource.RLIM_INFINITY and now < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, most))


async def _take_over(paths: RunPaths) -> Supervisor | None:
    """A supervisor that knows the plan and what runs, and decides on that first; None without a plan."""
    plan = store.read_plan(paths)
    if plan is None:
        return None
    tmux = Tmux(paths.tmux, paths.tmux_conf)
    # Somebody may have removed the socket of the server below which this runs.
    await asyncio.to_thread(tmux.find_server)
    panes = Panes(tmux, plan.team)
    first = await asyncio.to_thread(first_events, plan, tmux)
    await panes.open()
    supervisor = Supervisor(paths, plan, panes)
    for event in first:
        supervisor.loop.post(event)
    return supervisor


if __name__ == "__main__":
    os.umask(0o077)
    _allow_files()
    sys.exit(main(sys.argv))
