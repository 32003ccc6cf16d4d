"""Calls back when a process ends: at once by pidfd, or by a slow poll where those are missing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from nbs_fleet.errors import FleetError
from nbs_fleet.launch.proctable import LinuxTable, Table, table
from nbs_fleet.model import ProcId

Callback = Callable[[ProcId], None]


class DeathWatch:
    """Watches processes on the running loop. A zombie counts as dead. Each callback is called once, from the loop.

    A process that is gone already is reported as soon as the loop runs. With another table `on` than the one of
    Linux, each `interval` seconds are polled while something is watched.
    """

    def __init__(self, *, on: Table | None = None, interval: float = 0.5) -> None:
        self._loop = asyncio.get_running_loop()
        self._table = on or table()
        self._pidfds = isinstance(self._table, LinuxTable)
        self._interval = interval
        self._watched: dict[ProcId, tuple[int | None, list[Callback]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, proc: ProcId, callback: Callback) -> None:
        """Call `callback(proc)` when `proc` ends. Raises FleetError when the system has no descriptors left."""
        if proc in self._watched:
            self._watched[proc][1].append(callback)
            return
        fd = _open(proc) if self._pidfds else None
        self._watched[proc] = (fd, [callback])
        # Looked at after opening: a number that was taken over in between is then noticed.
        if not self._lives(proc):
            self._loop.call_soon(self._died, proc)
        elif fd is not None:
            self._loop.add_reader(fd, self._died, proc)
        elif self._timer is None:
            self._timer = self._loop.call_later(self._interval, self._look)

    def discard(self, proc: ProcId) -> None:
        """Stop watching `proc`; its callbacks are not called any more."""
        fd, _ = self._watched.pop(proc, (None, []))
        if fd is not None:
            self._loop.remove_reader(fd)
            os.close(fd)

    def close(self) -> None:
        """Stop watching everything."""
        for proc in tuple(self._watched):
            self.discard(proc)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _lives(self, proc: ProcId) -> bool:
        row = self._table.row(proc.pid)
        return row is not None and row.proc == proc and not row.zombie

    def _died(self, proc: ProcId) -> None:
        if proc not in self._watched:
            return
        callbacks = self._watched[proc][1]
        self.discard(proc)
        for callback in callbacks:
            callback(proc)

    def _look(self) -> None:
        self._timer = None
        for proc in tuple(self._watched):
            if not self._lives(proc):
                self._died(proc)
        if self._watched and self._timer is None:
            self._timer = self._loop.call_later(self._interval, self._look)


def _open(proc: ProcId) -> int | None:
    try:
        return os.pidfd_open(proc.pid)
    except ProcessLookupError:
        return None
    except OSError as error:
        raise FleetError(f"can't watch process {proc.pid}: {error.strerror}", hint="See `ulimit -n`.") from error
