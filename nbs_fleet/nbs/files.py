"""What all nbs files share: whole files written in one step, and the record lock that the nbs tools take."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from nbs_fleet.errors import FleetError

LOCK_TIMEOUT = 10.0
"""Seconds to wait for a lock that the nbs tools hold for milliseconds."""

_HINTS = {
    errno.ENOSPC: "free some space; what was there before is unharmed",
    errno.EDQUOT: "the quota is used up; what was there before is unharmed",
    errno.EACCES: "check who owns the folder and its mode",
    errno.EPERM: "check who owns the folder and its mode",
    errno.EROFS: "the file system is mounted read-only",
}
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_BUSY = (errno.EACCES, errno.EAGAIN)
_mutexes: dict[str, threading.Lock] = {}
_mutexes_guard = threading.Lock()
os.register_at_fork(after_in_child=_mutexes.clear)


class NbsFileError(FleetError):
    """A file of the nbs tools can't be read or written; exit code 1, as theirs."""


def read_bytes(path: str) -> bytes | None:
    """The content of a file; None if there is none. Raises NbsFileError."""
    try:
        # Without O_NONBLOCK, a named pipe in the place of a file would hang the reader.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        refuse("read", path, error)
    try:
        return read_all(fd)
    except OSError as error:
        refuse("read", path, error)
    finally:
        os.close(fd)


def read_all(fd: int) -> bytes:
    """Everything from here to the end of an open file."""
    parts: list[bytes] = []
    size = os.fstat(fd).st_size + 1
    while part := os.read(fd, max(size, 65536)):
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def replace(path: str, *data: bytes | bytearray, temporary: str | None = None, mode: int = 0o600) -> os.stat_result:
    """Replace `path` by all of `data` in one step; returns what the new file is.

    Raises NbsFileError; the old content is then still there.

    `temporary` is the name the nbs tools use where they write under a lock; without a lock the name is our own.
    """
    beside = temporary or f"{path}.{os.getpid()}-{threading.get_native_id()}.tmp"
    try:
        found = write_new(beside, *data, mode=mode)
        os.replace(beside, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(beside)
        refuse("write", path, error)
    return found


def write_new(path: str, *data: bytes | bytearray, mode: int = 0o600) -> os.stat_result:
    """Write a file, whatever was there; raises OSError and may leave a part."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        for part in data:
            _write_all(fd, part)
        return os.fstat(fd)
    finally:
        os.close(fd)


def write_once(path: str, data: bytes) -> None:
    """Make a private file that appears whole or not at all; raises FileExistsError if the name is taken, or OSError."""
    beside = f"{path}.{os.getpid()}-{threading.get_native_id()}.new"
    try:
        write_new(beside, data)
        try:
            os.link(beside, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # Without hard links the check leaves a gap, but a reader never sees a part.
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error
            os.replace(beside, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)


def _write_all(fd: int, part: bytes | bytearray) -> None:
    with memoryview(part) as view:
        place = 0
        while place < len(view):
            place += os.write(fd, view[place:])


def make_folder(path: str, mode: int = 0o777) -> None:
    """Make a folder and its parents, unless they are there. Raises NbsFileError."""
    try:
        os.makedirs(path, mode=mode, exist_ok=True)
    except OSError as error:
        refuse("make", path, error)


def remove(path: str) -> bool:
    """Remove a file; False if it was not there. Raises NbsFileError."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        refuse("remove", path, error)
    return True


@contextmanager
def record_lock(path: str, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold the nbs tools' lock: an `fcntl` record lock over the whole of `path`, which is made if missing.

    Record locks belong to the process and are gone as soon as it closes any descriptor of that file, so a mutex keeps
    the threads of this process apart. Raises NbsFileError that names the holder after `timeout` seconds.
    """
    end = time.monotonic() + timeout
    mutex = _mutex(path)
    if not mutex.acquire(timeout=timeout):
        raise NbsFileError(f"{path} is still held by this process after {timeout:g} s")
    try:
        fd = _locked(path, end, timeout)
        try:
            yield
        finally:
            os.close(fd)
    finally:
        mutex.release()


def _mutex(path: str) -> threading.Lock:
    folder, name = os.path.split(os.path.abspath(path))
    key = os.path.join(os.path.realpath(folder), name)
    with _mutexes_guard:
        return _mutexes.setdefault(key, threading.Lock())


def _locked(path: str, end: float, timeout: float) -> int:
    """A descriptor of the lock file that holds the lock; taken again if somebody removed the file meanwhile."""
    while True:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            refuse("open the lock", path, error)
        held = False
        try:
            _wait(fd, path, end, timeout)
            held = os.path.samestat(os.fstat(fd), os.stat(path))
        except FileNotFoundError:
            pass
        finally:
            if not held:
                os.close(fd)
        if held:
            return fd


def _wait(fd: int, path: str, end: float, timeout: float) -> None:
    if _try(fd, path):
        return
    import tenacity  # noqa: PLC0415 -- a lock that is free, as nearly always, needs none of it

    try:
        tenacity.Retrying(
            retry=tenacity.retry_if_result(lambda taken: not taken),
            stop=tenacity.stop_after_delay(max(end - time.monotonic(), 0.0)),
            wait=tenacity.wait_random(0.0005, 0.004),
        )(_try, fd, path)
    except tenacity.RetryError as error:
        raise NbsFileError(f"{path} is still held{_holder(fd)} after {timeout:g} s") from error


def _try(fd: int, path: str) -> bool:
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        refuse("lock", path, error)
    return True


def _holder(fd: int) -> str:
    """` by pid N`, where the kernel says so."""
    if not sys.platform.startswith("linux"):
        return ""
    form = "hhqqi4x"
    asked = struct.pack(form, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        answer = struct.unpack(form, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    except (OSError, struct.error):
        return ""
    return f" by pid {answer[4]}" if answer[0] != fcntl.F_UNLCK and answer[4] > 0 else ""


def refuse(doing: str, path: str, error: OSError) -> NoReturn:
    """Raise NbsFileError for what the system refused."""
    raise NbsFileError(f"can't {doing} {path}: {error.strerror}", hint=_HINTS.get(error.errno or 0)) from error
