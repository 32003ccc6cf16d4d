"""What runs on this machine: the process table, by /proc and pidfd, or by psutil where those are missing."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Protocol

from msgspec import Struct

from nbs_fleet.errors import FleetError
from nbs_fleet.model import ProcId

_KERNEL_THREAD = 0x00200000
_EXEC_SECONDS = 3.0
# Indexes among the fields after the name: proc(5) counts them as the 26th and 50th, and the state as the third.
_START_CODE, _ENV_START = 23, 47


class Row(Struct, frozen=True):
    """One process: its parent, group and session, owner, and whether it is a zombie (dead, not yet collected)."""

    proc: ProcId
    parent: int
    group: int
    session: int
    uid: int
    zombie: bool


class Table(Protocol):
    """The questions about processes that differ from system to system."""

    def row(self, pid: int) -> Row | None:
        """One process; None if there is none with that number."""
        ...

    def rows(self) -> Iterator[Row]:
        """All processes that can be seen."""
        ...

    def environ(self, pid: int) -> dict[str, str]:
        """The environment a process was started with; empty where it can't be read."""
        ...

    def argv(self, pid: int) -> tuple[str, ...]:
        """The command line of a process; empty where it can't be read."""
        ...

    def boot_id(self) -> str:
        """A name for this boot of the machine."""
        ...

    def send(self, proc: ProcId, number: int) -> bool:
        """Send a signal to exactly this process; False if it is gone. Raises FleetError without the right to."""
        ...

    def wait(self, proc: ProcId, timeout: float) -> bool:
        """Block until this process is gone or a zombie; False if it is not after `timeout` seconds."""
        ...


class LinuxTable:
    """/proc, and pidfds so that a signal can't hit a later process with the same number."""

    def row(self, pid: int) -> Row | None:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                content = file.read()
                uid = os.fstat(file.fileno()).st_uid
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return None
        # The name in parentheses may hold anything, even ") R 1": what counts begins after the last one.
        fields = content[content.rfind(b")") + 2 :].split()
        return Row(
            proc=ProcId(pid, int(fields[19])),
            parent=int(fields[1]),
            group=int(fields[2]),
            session=int(fields[3]),
            uid=uid,
            zombie=fields[0] in (b"Z", b"X", b"x"),
        )

    def rows(self) -> Iterator[Row]:
        for name in os.listdir("/proc"):
            if name.isdigit() and (row := self.row(int(name))):
                yield row

    def environ(self, pid: int) -> dict[str, str]:
        try:
            content = self._environ(pid)
        except OSError:
            return {}
        pairs = (os.fsdecode(entry).partition("=") for entry in content.split(b"\0") if entry)
        return {name: value for name, _, value in pairs}

    def _environ(self, pid: int) -> bytes:
        # In the middle of an exec the environment is empty for a moment (seen in 11 of 300 starts, longer on a
        # loaded machine); it is truly so where the kernel has a place for it, of no length.
        end = time.monotonic() + _EXEC_SECONDS
        while True:
            content = _read(pid, "environ")
            if content or self._has_none(pid) or time.monotonic() > end:
                return content
            os.sched_yield()

    def _has_none(self, pid: int) -> bool:
        """Whether it has an empty one, or is a zombie or one of the kernel's own threads, which have none."""
        fields = _read(pid, "stat").rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X", b"x") or int(fields[6]) & _KERNEL_THREAD:
            return True
        # The place of the code is filled in last; before that both ends of the environment may be its beginning.
        start, stop = fields[_ENV_START], fields[_ENV_START + 1]
        return fields[_START_CODE] != b"0" and start == stop != b"0"

    def argv(self, pid: int) -> tuple[str, ...]:
        try:
            return tuple(os.fsdecode(word) for word in _read(pid, "cmdline").split(b"\0")[:-1])
        except OSError:
            return ()

    def boot_id(self) -> str:
        return _boot_id()

    def send(self, proc: ProcId, number: int) -> bool:
        fd = self._open(proc)
        if fd is None:
            return False
        try:
            signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            return False
        except PermissionError as error:
            raise _forbidden(proc) from error
        finally:
            os.close(fd)
        return True

    def wait(self, proc: ProcId, timeout: float) -> bool:
        fd = self._open(proc)
        if fd is None:
            return True
        try:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            return bool(poll.poll(timeout * 1000))
        finally:
            os.close(fd)

    def _open(self, proc: ProcId) -> int | None:
        """A descriptor that means this process and no other; None if it is gone."""
        try:
            fd = os.pidfd_open(proc.pid)
        except ProcessLookupError:
            return None
        except OSError as error:
            raise FleetError(f"can't open process {proc.pid}: {error.strerror}") from error
        # Checked after opening: a number that was taken over before is noticed, one that is taken over later is not ours.
        row = self.row(proc.pid)
        if row is not None and row.proc == proc and not row.zombie:
            return fd
        os.close(fd)
        return None


class PortableTable:
    """psutil: the same answers, slower, and with a small gap between the check and the signal."""

    def __init__(self) -> None:
        import psutil  # noqa: PLC0415 -- only where /proc and pidfds are missing

        self._psutil = psutil

    def row(self, pid: int) -> Row | None:
        try:
            process = self._psutil.Process(pid)
            with process.oneshot():
                status = process.status()
                parent = process.ppid() or 0
                started = process.create_time()
                uid = process.uids().real
        except (self._psutil.Error, ValueError):
            return None
        group, session = _group_and_session(pid)
        dead = status in (self._psutil.STATUS_ZOMBIE, self._psutil.STATUS_DEAD)
        return Row(ProcId(pid, round(started * 1000)), parent, group, session, uid, dead)

    def rows(self) -> Iterator[Row]:
        for pid in self._psutil.pids():
            if row := self.row(pid):
                yield row

    def environ(self, pid: int) -> dict[str, str]:
        try:
            return dict(self._psutil.Process(pid).environ())
        except (self._psutil.Error, OSError, ValueError):
            return {}

    def argv(self, pid: int) -> tuple[str, ...]:
        try:
            return tuple(self._psutil.Process(pid).cmdline())
        except (self._psutil.Error, OSError, ValueError):
            return ()

    def boot_id(self) -> str:
        return f"boot-{round(self._psutil.boot_time())}"

    def send(self, proc: ProcId, number: int) -> bool:
        row = self.row(proc.pid)
        if row is None or row.proc != proc or row.zombie:
            return False
        try:
            os.kill(proc.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError as error:
            raise _forbidden(proc) from error
        return True

    def wait(self, proc: ProcId, timeout: float) -> bool:
        row = self.row(proc.pid)
        if row is None or row.proc != proc or row.zombie:
            return True
        try:
            self._psutil.Process(proc.pid).wait(timeout)
        except self._psutil.TimeoutExpired:
            return False
        except self._psutil.NoSuchProcess:
            return True
        return True


@cache
def _boot_id() -> str:
    """Asked for with each decision, and the same as long as any process lives."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()


def has_pidfd() -> bool:
    """Whether this system has /proc and pidfds (Linux 5.3 or later)."""
    if not sys.platform.startswith("linux") or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return os.path.exists("/proc/self/stat")


@cache
def table() -> Table:
    """The table that fits this machine."""
    return LinuxTable() if has_pidfd() else PortableTable()


def _group_and_session(pid: int) -> tuple[int, int]:
    group = session = 0
    with suppress(OSError):
        group = os.getpgid(pid)
    with suppress(OSError):
        session = os.getsid(pid)
    return group, session


def _forbidden(proc: ProcId) -> FleetError:
    return FleetError(f"may not signal process {proc.pid}", hint="It belongs to another user.")
