"""Reading and writing small files so that a crash or a full disk loses nothing that was already there."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import NoReturn

from nbs_fleet.errors import FleetError

_HINTS = {
    errno.ENOSPC: "Free some space; what was there before is unharmed.",
    errno.EDQUOT: "The quota is used up; what was there before is unharmed.",
    errno.EACCES: "Check who owns the folder and its mode.",
    errno.EPERM: "Check who owns the folder and its mode.",
    errno.EROFS: "The file system is mounted read-only.",
}

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def write_atomic(path: str, data: bytes | str, mode: int = 0o600, *, durable: bool = False) -> None:
    """Replace `path` by `data` in one step; readers see the old content or the new, never a part.

    The temporary file lies beside it and begins with a dot. `durable` waits for the disk (file and folder).
    `mode` is set whatever the umask says. Raises FleetError; the old content is then still there.
    """
    try:
        put(path, data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data, mode, durable=durable)
    except OSError as error:
        _refuse("write", path, error)


def put(path: str, content: bytes, mode: int, *, durable: bool = False) -> None:
    """The same for callers with words of their own for what goes wrong: raises OSError."""
    folder, temporary = _beside(path)
    try:
        _write_new(temporary, content, mode, durable=durable)
        os.replace(temporary, path)
        if durable:
            _sync_folder(folder)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def write_once(path: str, data: bytes | str, mode: int = 0o600) -> bool:
    """Make a file that must not exist yet, durably and whole or not at all; False if `path` is taken.

    Of several writers at the same time exactly one gets True. Raises FleetError.
    """
    folder, temporary = _beside(path)
    content = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    try:
        _write_new(temporary, content, mode, durable=True)
        made = _name_once(temporary, path)
        _sync_folder(folder)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        _refuse("write", path, error)
    return made


def append_line(path: str, line: bytes, mode: int = 0o600) -> None:
    """Append one record, ended by a newline, in one write.

    When an earlier writer was cut off in the middle of a record, that part is closed with a newline first,
    so it spoils nothing but itself. Raises FleetError.
    """
    record = line if line.endswith(b"\n") else line + b"\n"
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                record = b"\n" + record
            _write_all(fd, record)
        finally:
            os.close(fd)
    except OSError as error:
        _refuse("append to", path, error)


def read_text(path: str, limit: int) -> str | None:
    """The text of a regular file of at most `limit` bytes; None if there is no such file.

    Bytes that are no UTF-8 are replaced. Raises FleetError for anything else than a readable small file.
    """
    try:
        # Without O_NONBLOCK, a named pipe in the place of a file would hang the reader.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _refuse("read", path, error)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise FleetError(f"can't read {path}: it is no regular file")
        if found.st_size > limit:
            raise FleetError(f"can't read {path}: it has {found.st_size} bytes, {limit} are allowed")
        content = _read_up_to(fd, limit + 1)
    except OSError as error:
        _refuse("read", path, error)
    finally:
        os.close(fd)
    if len(content) > limit:
        raise FleetError(f"can't read {path}: it grew over {limit} bytes")
    return content.decode("utf-8", "replace")


def _beside(path: str) -> tuple[str, str]:
    """The folder of a file, and a temporary name in it that nobody else has."""
    folder, name = os.path.split(path)
    return folder, os.path.join(folder, f".{name[:80]}.{os.urandom(6).hex()}.tmp")


def _write_new(path: str, content: bytes, mode: int, *, durable: bool) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        os.fchmod(fd, mode)
        _write_all(fd, content)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def _name_once(temporary: str, path: str) -> bool:
    """Give a finished file its name unless that is taken; the temporary name goes either way."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        made = False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links: the check leaves a gap, but readers never see a part.
        made = not os.path.lexists(path)
        if made:
            os.replace(temporary, path)
            return True
    else:
        made = True
    os.unlink(temporary)
    return made


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _read_up_to(fd: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := os.read(fd, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _sync_folder(folder: str) -> None:
    fd = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _refuse(doing: str, path: str, error: OSError) -> NoReturn:
    raise FleetError(f"can't {doing} {path}: {error.strerror}", hint=_HINTS.get(error.errno or 0)) from error


def stamp(path: str, which: str) -> int:
    """One of the times of a file (`st_mtime_ns`, `st_ctime_ns`); 0 if it is not there."""
    try:
        return int(getattr(os.lstat(path), which))
    except OSError:
        return 0
