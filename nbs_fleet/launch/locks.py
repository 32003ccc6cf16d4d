"""Locks between processes: flock on a file, freed by the kernel however its holder ends."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from contextlib import suppress
from types import TracebackType
from typing import NoReturn, Self

from nbs_fleet.errors import FleetError, TimedOutError
from nbs_fleet.launch import processes
from nbs_fleet.model import ProcId

_SPINS = 50
"""Tries of one `try_acquire`: a look by `holder` may hold the lock for some microseconds."""


_step_aside = getattr(os, "sched_yield", lambda: None)
"""Lets others run; some systems do not have it."""


class FileLock:
    """An exclusive lock on `path`, not inherited by programs that are started while it is held.

    The file carries the holder's pid and start time for people and for `holder`; it is never removed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._fd is not None

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it. Raises FleetError when the file can't be opened."""
        if self._fd is not None:
            return True
        for _ in range(_SPINS):
            fd = _open(self.path)
            if not _flock(fd, fcntl.LOCK_EX):
                os.close(fd)
                _step_aside()
                continue
            if not _is_still(fd, self.path):
                os.close(fd)
                continue
            self._fd = fd
            self._sign()
            return True
        return False

    def acquire(self, timeout: float) -> None:
        """Take the lock, waiting up to `timeout` seconds. Raises TimedOutError that names the holder."""
        if self.try_acquire():
            return
        import tenacity  # noqa: PLC0415 -- who never waits starts faster without it

        try:
            tenacity.Retrying(
                retry=tenacity.retry_if_result(lambda taken: not taken),
                stop=tenacity.stop_after_delay(timeout),
                wait=tenacity.wait_random(0.01, 0.05),
            )(self.try_acquire)
        except tenacity.RetryError as error:
            raise self._timed_out(timeout) from error

    def wait(self, timeout: float) -> None:
        """Take the lock the moment it is free, asleep until then, and for `timeout` seconds at most.

        For the main thread of a process that does nothing else yet: an alarm ends the wait. Raises TimedOutError.
        """
        if self.try_acquire():
            return

        def ring(_number: int, _frame: object) -> NoReturn:
            raise self._timed_out(timeout)

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, timeout)
        try:
            while not self._awaited():
                pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)

    def _awaited(self) -> bool:
        """Sleep until the lock is free, and take it; False if its file was removed meanwhile."""
        fd = _open(self.path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if _is_still(fd, self.path):
                self._fd = fd
                self._sign()
        finally:
            if self._fd != fd:
                os.close(fd)
        return self._fd is not None

    def release(self) -> None:
        """Give the lock back; nothing happens if it is not held."""
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        with suppress(OSError):
            os.ftruncate(fd, 0)
        os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def _sign(self) -> None:
        me = processes.identify(os.getpid())
        if self._fd is None or me is None:
            return
        # A full disk must not keep anyone from the lock: the text is only a help.
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{me.pid} {me.start}\n".encode(), 0)

    def _timed_out(self, timeout: float) -> TimedOutError:
        who = holder(self.path)
        by = f" by pid {who.pid}" if who and who.pid else ""
        return TimedOutError(f"{self.path} is still held{by} after {timeout:g} s")


def holder(path: str) -> ProcId | None:
    """Who holds the lock at `path` now; None if nobody does.

    The kernel is asked, not the file's text. A holder that can't be named (another pid namespace, a lock that
    outlived the process that took it) is `ProcId(0, 0)`. Raises FleetError when the file can't be read.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FleetError(f"can't look at the lock {path}: {error.strerror}") from error
    try:
        signed = _signed(fd)
        if signed is not None and processes.alive(signed) and _locks(signed.pid, fd):
            return signed
        # The kernel's own list needs no lock taken, so it can't disturb somebody who takes it just now.
        pid = _listed(fd)
        if pid is None and _flock(fd, fcntl.LOCK_SH):
            return None
    finally:
        os.close(fd)
    if signed is not None and pid in (None, 0, signed.pid) and processes.alive(signed):
        return signed
    return (processes.identify(pid) if pid else None) or ProcId(0, 0)


def _locks(pid: int, fd: int) -> bool:
    """Whether the kernel says that this process has the file open and locked; False too where it says nothing.

    Asked first, about the one process that is likely: to read `/proc/locks` stops all locking for 10 ms (measured).
    """
    wanted = os.fstat(fd)
    try:
        for number in sorted(map(int, os.listdir(f"/proc/{pid}/fd"))):
            if os.path.samestat(wanted, os.stat(f"/proc/{pid}/fd/{number}")):
                with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii", errors="replace") as file:
                    if any(line.startswith("lock:") and "FLOCK" in line for line in file):
                        return True
    except OSError:
        return False
    return False


def _listed(fd: int) -> int | None:
    """The pid that `/proc/locks` names for this file, 0 if it can't be seen from here; None if not listed."""
    found = os.fstat(fd)
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            for line in file:
                words = line.split()
                if len(words) >= 6 and words[1] == "FLOCK" and words[5] == wanted:
                    return max(int(words[4]), 0)
    except (OSError, ValueError):
        return None
    return None


def _signed(fd: int) -> ProcId | None:
    words = os.pread(fd, 100, 0).split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return None
    return ProcId(int(words[0]), int(words[1]))


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise FleetError(f"can't open the lock {path}: {error.strerror}") from error


def _flock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
            return False
        raise FleetError(f"this file system has no locks: {error.strerror}") from error
    return True


def _is_still(fd: int, path: str) -> bool:
    """Whether the open file is the one at `path`: somebody may have removed it before the lock was ours."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
