"""A process table in memory: what runs is what a test says."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

from msgspec.structs import replace

from nbs_fleet.errors import FleetError
from nbs_fleet.launch.proctable import Row
from nbs_fleet.model import ProcId


class FakeTable:
    """Implements `proctable.Table`. Signals are noted in `sent`; TERM and KILL end a process unless it is stubborn."""

    def __init__(self) -> None:
        self._rows: dict[int, Row] = {}
        self._environs: dict[int, dict[str, str]] = {}
        self._argvs: dict[int, tuple[str, ...]] = {}
        self._stubborn: set[int] = set()
        self._foreign: set[int] = set()
        self.sent: list[tuple[int, str]] = []
        self._clock = 100
        self.add(1, parent=0)
        self.add(os.getpid(), parent=1)

    def add(
        self,
        pid: int,
        parent: int,
        *,
        group: int | None = None,
        session: int | None = None,
        environ: dict[str, str] | None = None,
        argv: tuple[str, ...] = (),
        stubborn: bool = False,
        foreign: bool = False,
    ) -> ProcId:
        """Begin a process; group and session are the parent's unless given."""
        self._clock += 1
        above = self._rows.get(parent)
        self._rows[pid] = Row(
            proc=ProcId(pid, self._clock),
            parent=parent,
            group=group if group is not None else above.group if above else pid,
            session=session if session is not None else above.session if above else pid,
            uid=os.getuid(),
            zombie=False,
        )
        self._environs[pid] = environ or {}
        self._argvs[pid] = argv
        self._stubborn |= {pid} if stubborn else set()
        self._foreign |= {pid} if foreign else set()
        return self._rows[pid].proc

    def zombify(self, pid: int) -> None:
        """The process ended, and its parent has not looked."""
        self._rows[pid] = replace(self._rows[pid], zombie=True)

    def remove(self, pid: int) -> None:
        """The process is gone; its children belong to process 1 now."""
        self._rows.pop(pid, None)
        for row in tuple(self._rows.values()):
            if row.parent == pid:
                self._rows[row.proc.pid] = replace(row, parent=1)

    def row(self, pid: int) -> Row | None:
        return self._rows.get(pid)

    def rows(self) -> Iterator[Row]:
        yield from tuple(self._rows.values())

    def argv(self, pid: int) -> tuple[str, ...]:
        return self._argvs.get(pid, ())

    def environ(self, pid: int) -> dict[str, str]:
        return self._environs.get(pid, {}) if pid in self._rows else {}

    def boot_id(self) -> str:
        return "boot"

    def send(self, proc: ProcId, number: int) -> bool:
        row = self._rows.get(proc.pid)
        if row is None or row.proc != proc or row.zombie:
            return False
        if proc.pid in self._foreign:
            raise FleetError(f"may not signal process {proc.pid}")
        name = signal.Signals(number).name.removeprefix("SIG")
        self.sent.append((proc.pid, name))
        if name == "KILL" or (name == "TERM" and proc.pid not in self._stubborn):
            self.remove(proc.pid)
        return True

    def wait(self, proc: ProcId, timeout: float) -> bool:
        row = self._rows.get(proc.pid)
        return row is None or row.proc != proc or row.zombie
