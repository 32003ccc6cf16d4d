"""Signals for the processes of a team under test: an agent's client, its supervisor, its tmux server."""

from __future__ import annotations

import asyncio

import psutil

from nbs_fleet.launch import processes
from nbs_fleet.launch.locks import holder
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.model import ProcId
from nbs_fleet.supervisor import store
from nbs_fleet.testing.observe import Eyes
from nbs_fleet.testing.steps import Strike

_LOOK = 0.05
"""Seconds between two looks at a process that is to be there."""
_STOPPED = 0.5
"""Seconds in which tmux would have set a stopped process going again."""


class StrikeError(Exception):
    """The process can't be treated like that; the message says why."""


async def strike(eyes: Eyes, action: Strike) -> None:
    """Send the signal; a process that is killed is gone, one that is frozen stands still, when this returns.

    Waits without end for a process to be there; the caller bounds the time.
    """
    proc = await _find(eyes, action.target)
    processes.send_signal(proc, action.signal)
    if action.signal == "KILL":
        while not await asyncio.to_thread(processes.wait_exit, proc, 1.0):
            pass
    if action.signal == "STOP":
        await _stand_still(proc, action.target)


async def _find(eyes: Eyes, target: str) -> ProcId:
    """The process, once there is one."""
    while True:
        found = await asyncio.to_thread(_look, eyes, target)
        if found is not None and processes.alive(found):
            return found
        await asyncio.sleep(_LOOK)


def _look(eyes: Eyes, target: str) -> ProcId | None:
    if target == "supervisor":
        return holder(eyes.paths.lock)
    if target == "tmux":
        pid = Tmux(eyes.paths.tmux, eyes.paths.tmux_conf).server_pid()
        return processes.identify(pid) if pid is not None else None
    record = store.read_record(eyes.paths, target)
    return record.proc if record is not None else None


async def _stand_still(proc: ProcId, target: str) -> None:
    """Raise StrikeError if the process goes on: tmux (3.3a, measured) wakes the process of a pane."""
    for _ in range(int(_STOPPED / _LOOK)):
        await asyncio.sleep(_LOOK)
        try:
            status = psutil.Process(proc.pid).status()
        except psutil.NoSuchProcess:
            raise StrikeError(f"{target} ended instead") from None
        if status not in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP):
            raise StrikeError(f"tmux set {target} going again: it does so with the process of a pane")
