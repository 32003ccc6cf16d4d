"""Processes by identity: who lives, who belongs to whom, and how a whole tree is brought to its end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from nbs_fleet.errors import FleetError
from nbs_fleet.launch.proctable import Table, table
from nbs_fleet.model import Moment, ProcId

if TYPE_CHECKING:
    from nbs_fleet.launch.deathwatch import DeathWatch

_KILL_ROUNDS = 5
_KILL_WAIT = 2.0
"""Seconds that killed processes get to be gone: longer only if one hangs in the kernel."""


class Ended(Struct, frozen=True):
    """What became of the processes that were to end; `killed` needed KILL, `survivors` outlived even that."""

    ended: tuple[ProcId, ...]
    killed: tuple[ProcId, ...] = ()
    survivors: tuple[ProcId, ...] = ()


def identify(pid: int, *, on: Table | None = None) -> ProcId | None:
    """The process with this number, as an identity that no later process can share; None if there is none."""
    row = (on or table()).row(pid)
    return row.proc if row else None


def alive(proc: ProcId, *, on: Table | None = None) -> bool:
    """Whether exactly this process still runs. A zombie is dead."""
    row = (on or table()).row(proc.pid)
    return row is not None and row.proc == proc and not row.zombie


def boot_id(*, on: Table | None = None) -> str:
    """A name for this boot of the machine; monotonic times compare only within one."""
    return (on or table()).boot_id()


def moment(*, on: Table | None = None) -> Moment:
    """Now."""
    return Moment(time.time(), time.monotonic(), boot_id(on=on))


def environ_of(pid: int, *, on: Table | None = None) -> dict[str, str]:
    """The environment a process was started with; empty where it can't be read. Never log it."""
    return (on or table()).environ(pid)


def ancestry(pid: int, *, on: Table | None = None) -> tuple[ProcId, ...]:
    """The process, its parent, and so on up to the first process; empty if there is no such process."""
    source = on or table()
    found: list[ProcId] = []
    row = source.row(pid)
    while row and row.proc not in found:
        found.append(row.proc)
        row = source.row(row.parent) if row.parent > 0 else None
    return tuple(found)


def tree(proc: ProcId, *, on: Table | None = None) -> tuple[ProcId, ...]:
    """`proc` and everything it started, parents first, zombies left out.

    Found by parentage, and by the process groups and sessions that it or its descendants made: children whose
    parent is gone are in it too, also when `proc` itself is gone. This process and its ancestors never are.
    """
    trees = _Trees(on or table(), (proc,))
    return trees.living(sorted(trees.found, key=lambda found: (found != proc, found.start, found.pid)))


def dead_children(parent: ProcId, *, on: Table | None = None) -> tuple[ProcId, ...]:
    """The zombies among the children of a process: dead, and not yet collected by it."""
    rows = (on or table()).rows()
    return tuple(row.proc for row in rows if row.parent == parent.pid and row.zombie)


def in_run(
    run: str, exclude: Collection[int] = (), *, handle: str | None = None, on: Table | None = None
) -> tuple[ProcId, ...]:
    """The processes of this user whose environment names the run directory `run`; without us and `exclude`.

    With `handle`, only those of that agent. Finds also what left its tree for good (setsid and a parent that ended).
    """
    source = on or table()
    spared = {*exclude, os.getpid()}
    uid = os.getuid()
    return tuple(
        row.proc
        for row in source.rows()
        if row.uid == uid
        and not row.zombie
        and row.proc.pid not in spared
        and (environ := source.environ(row.proc.pid)).get("NBS_FLEET_RUN") == run
        and handle in (None, environ.get("NBS_HANDLE"))
    )


def running(program: str, *words: str | tuple[str, ...], on: Table | None = None) -> tuple[ProcId, ...]:
    """The processes of this user whose command line begins with `program` and has these words, or words in a row."""
    source, uid = on or table(), os.getuid()
    wanted = [(word,) if isinstance(word, str) else word for word in words]

    def fits(line: tuple[str, ...]) -> bool:
        rows = (any(line[i : i + len(row)] == row for i in range(len(line))) for row in wanted)
        return bool(line) and os.path.basename(line[0]) == program and all(rows)

    return tuple(r.proc for r in source.rows() if r.uid == uid and not r.zombie and fits(source.argv(r.proc.pid)))


def send_signal(proc: ProcId, name: str, *, on: Table | None = None) -> bool:
    """Send the signal `name` ("TERM") to exactly this process; False if it is gone.

    Raises FleetError for a process of another user.
    """
    return (on or table()).send(proc, signal.Signals[f"SIG{name}"])


def wait_exit(proc: ProcId, timeout: float, *, on: Table | None = None) -> bool:
    """Block until exactly this process is gone; False if it still runs after `timeout` seconds."""
    return (on or table()).wait(proc, timeout)


async def end(
    procs: Iterable[ProcId],
    signals: Sequence[str],
    timeout: float,
    *,
    on: Table | None = None,
) -> Ended:
    """End processes and everything they started.

    The roots get each of `signals` in turn and `timeout` seconds in all to go; then KILL goes to every process
    of their trees that is left. The trees are collected before the first signal and again before each next one,
    so that children who lost their parent on the way are found. This process and its ancestors are spared, and named
    as survivors.
    """
    source = on or table()
    roots = tuple(dict.fromkeys(procs))
    trees = _Trees(source, roots)
    # It takes asyncio, which commands that only look at processes need not wait for.
    from nbs_fleet.launch.deathwatch import DeathWatch  # noqa: PLC0415

    watch = DeathWatch(on=source, interval=0.05)
    try:
        for name in signals:
            living = trees.living(proc for proc in roots if proc not in trees.spared)
            if not living:
                break
            await _gone(_signal_all(living, name, source), timeout / len(signals), watch)
            trees.collect()
        killed: dict[ProcId, None] = {}
        for _ in range(_KILL_ROUNDS):
            trees.collect()
            left = trees.living(trees.found)
            if not left:
                break
            hit = _signal_all(left, "KILL", source)
            if not hit:
                break
            killed.update(dict.fromkeys(hit))
            await _gone(hit, _KILL_WAIT, watch)
    finally:
        watch.close()
    survivors = (*trees.living(trees.found), *trees.spared)
    ended = tuple(proc for proc in trees.found if proc not in survivors)
    return Ended(ended, tuple(proc for proc in killed if proc not in survivors), survivors)


class _Trees:
    """The processes of some roots, gathered over time: once found, a process stays in it."""

    def __init__(self, source: Table, roots: tuple[ProcId, ...]) -> None:
        self._source = source
        self._ours = frozenset(proc.pid for proc in ancestry(os.getpid(), on=source))
        self.spared = tuple(proc for proc in roots if proc.pid in self._ours)
        self.found: dict[ProcId, None] = {proc: None for proc in roots if proc not in self.spared}
        self._members = {proc.pid: proc for proc in self.found}
        # Groups and sessions of descendants were made by descendants; those of a root are its own only if it leads
        # them, else its starter's.
        self._families = set(self._members)
        roots_rows = [row for pid in self._members if (row := source.row(pid))]
        self._foreign = {0, 1, *(n for row in roots_rows for n in (row.group, row.session))} - set(self._members)
        self.collect()

    def collect(self) -> None:
        """Look again, and add what is new."""
        rows = {row.proc.pid: row for row in self._source.rows()}
        strangers = {pid for pid, row in rows.items() if self._members.get(pid) != row.proc}
        # A number stays taken while a group or session of that name has members, so it can't mean a stranger's,
        # unless all are gone and a stranger leads a new one.
        families = self._families - strangers
        members = set(self._members) - strangers
        left = [row for pid, row in rows.items() if pid in strangers and pid not in self._ours]
        while grown := [r for r in left if r.parent in members or r.group in families or r.session in families]:
            for row in grown:
                pid = row.proc.pid
                self._members[pid] = row.proc
                self.found[row.proc] = None
                members.add(pid)
                families |= {pid, row.group, row.session} - self._foreign
            left = [row for row in left if row.proc.pid not in members]
        self._families |= families

    def living(self, procs: Iterable[ProcId]) -> tuple[ProcId, ...]:
        return tuple(proc for proc in procs if alive(proc, on=self._source))


def _signal_all(procs: Iterable[ProcId], name: str, source: Table) -> tuple[ProcId, ...]:
    """Signal each; those that could be."""
    hit: list[ProcId] = []
    for proc in procs:
        try:
            if not send_signal(proc, name, on=source):
                continue
            if name != "KILL":
                # A stopped process would look at the signal only when it goes on.
                send_signal(proc, "CONT", on=source)
        except FleetError:
            # Somebody else's process: it is reported as a survivor.
            continue
        hit.append(proc)
    return tuple(hit)


async def _gone(procs: Iterable[ProcId], seconds: float, watch: DeathWatch) -> None:
    waiting = set(procs)
    import asyncio  # noqa: PLC0415 - as above

    done = asyncio.Event()

    def died(proc: ProcId) -> None:
        waiting.discard(proc)
        if not waiting:
            done.set()

    if not waiting:
        return
    for proc in tuple(waiting):
        watch.add(proc, died)
    try:
        async with asyncio.timeout(seconds):
            await done.wait()
    except TimeoutError:
        for proc in waiting:
            watch.discard(proc)
