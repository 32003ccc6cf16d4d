"""The files of one chat as they are now: the chat, its cursors, its archives; written under the nbs tools' lock."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from nbs_fleet.nbs import chat_format, cursors
from nbs_fleet.nbs.chat_format import Header
from nbs_fleet.nbs.chat_log import Log
from nbs_fleet.nbs.files import (
    NbsFileError,
    read_all,
    read_bytes,
    record_lock,
    refuse,
    remove,
    replace,
    write_new,
    write_once,
)

ARCHIVE_ABOVE = 2000
"""A chat with more messages than this loses its first ones to an archive file, as with the nbs tools."""
ARCHIVE_COUNT = 1000
ARCHIVE_MARK = "-archive."
"""Stands in the name of every archive, and of nothing else."""
_UNSURE = 0.1
"""Seconds after a change in which a file's times can't tell it from one more change (the kernel's clock ticks)."""

Seen = tuple[int, int, int]
"""Inode, size and time of change: what tells that a file is another one now."""


class ChatMissingError(NbsFileError):
    """There is no such chat file."""

    exit_code = 2


class ChatFile:
    """What is known of a chat's files; `refresh` makes it what they are.

    `guard` keeps threads apart; `locked` keeps processes apart, and with it everything that writes runs.
    """

    def __init__(self, path: str, clock: Callable[[], float]) -> None:
        self.path = os.path.abspath(path)
        self.clock = clock
        self.guard = threading.RLock()
        self.log = Log()
        self.header = Header(chat_format.SYSTEM, "")
        self.cursors: dict[str, int | None] = {}
        self.generation = 0
        """Grows with every change of the messages or cursors."""
        self._seen: Seen | None = None
        self._cursors_seen: Seen | None = None

    @property
    def cursor_path(self) -> str:
        """Where the cursors are."""
        return f"{self.path}.cursors"

    @property
    def _pending(self) -> str:
        """Where new cursors are between the moment a chat is shortened and the moment they take their place."""
        return f"{self.cursor_path}.next"

    def create(self) -> None:
        """Make an empty chat; its folder must exist. Raises NbsFileError, also if the file is there already."""
        data = chat_format.head(Header(chat_format.SYSTEM, self.written()), 0)
        try:
            write_once(self.path, data)
        except FileExistsError:
            raise NbsFileError(f"File already exists: {self.path}") from None
        except OSError as error:
            refuse("create", self.path, error)

    @contextmanager
    def locked(self, timeout: float) -> Iterator[None]:
        """Under the lock of the nbs tools, with everything as it is now and an interrupted archiving finished."""
        if not os.path.exists(self.path):
            # Without the chat, no lock file either.
            raise self._missing()
        with record_lock(f"{self.path}.lock", timeout), self.guard:
            self._finish_archiving()
            self.refresh()
            yield

    def refresh(self) -> None:
        """Read what has changed: two `stat` calls if nothing has. Raises ChatMissingError or NbsFileError."""
        try:
            seen = _seen(os.stat(self.path))
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing() from None
        except OSError as error:
            refuse("read", self.path, error)
        if seen != self._seen:
            self._read_chat()
        try:
            seen = _seen(os.stat(self.cursor_path))
        except OSError:
            seen = (0, 0, 0)
        if seen != self._cursors_seen:
            found = cursors.parse(read_bytes(self.cursor_path) or b"")
            # Written twice within a tick, the same size and a recycled inode would look like no change.
            self._cursors_seen = seen if time.time() - seen[2] / 1e9 > _UNSURE else None
            if found != self.cursors:
                self.cursors = found
                self.generation += 1

    def write(self, header: Header, line: bytes) -> str | None:
        """Write the chat with one line more (without its newline); returns the archive that was made, if any."""
        self._seen = None
        self.generation += 1
        self.log.add(line + b"\n")
        archive = self._archive(header) if len(self.log.messages) > ARCHIVE_ABOVE else None
        if archive is None:
            body = self.log.body
            found = replace(self.path, chat_format.head(header, len(body)), body, temporary=f"{self.path}.tmp")
            self._seen = _seen(found)
        self.header = header
        return archive

    def write_cursors(self, changed: dict[str, int | None]) -> None:
        """Write all cursors. Raises NbsFileError if there are more than the nbs tools can keep."""
        if len(changed) > cursors.MOST:
            raise NbsFileError(f"{self.cursor_path} has {cursors.MOST} entries, and the nbs tools keep no more")
        replace(self.cursor_path, cursors.render(changed), temporary=f"{self.cursor_path}.tmp")
        self._cursors_seen = None
        self.cursors = changed
        self.generation += 1

    def archives(self) -> tuple[str, ...]:
        """The archive files of this chat, oldest first."""
        folder, name = os.path.split(self.path)
        form = re.compile(re.escape(name.removesuffix(".chat")) + rf"-\d{{8}}-\d{{6}}{re.escape(ARCHIVE_MARK)}chat")
        return tuple(os.path.join(folder, found) for found in sorted(os.listdir(folder)) if form.fullmatch(found))

    def written(self) -> str:
        """Now, as a header says it: local time with its offset."""
        return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self.clock()))

    def _read_chat(self) -> None:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise self._missing() from None
        except OSError as error:
            refuse("read", self.path, error)
        try:
            seen = _seen(os.fstat(fd))
            data = read_all(fd)
        except OSError as error:
            refuse("read", self.path, error)
        finally:
            os.close(fd)
        try:
            header, place = chat_format.split(data)
        except ValueError as error:
            raise NbsFileError(f"{self.path} is no chat: {error}") from None
        self.log.follow(data, place)
        self.header = header
        self._seen = seen
        self.generation += 1

    def _missing(self) -> ChatMissingError:
        return ChatMissingError(f"Chat file not found: {self.path}", hint="nbs-fleet chat create makes one")

    def _archive(self, header: Header) -> str | None:
        """Move the first messages into an archive; None if that can't be done now, with nothing changed.

        Killed in between, it is done once more by the next writer, which then uses the archive that is there.
        """
        old, rest = self.log.cut(ARCHIVE_COUNT)
        try:
            path = self._same_archive(old)
            if path is None:
                path = self._free_name()
                head = chat_format.head(Header(chat_format.SYSTEM, self.written()), len(old), archive=True)
                replace(path, head, old, temporary=f"{path}.tmp")
            self._shorten(chat_format.head(header, len(rest)), rest)
        except NbsFileError:
            return None
        self.log.drop(ARCHIVE_COUNT)
        return path

    def _same_archive(self, old: bytes) -> str | None:
        """The archive that holds just this: a writer before us was killed after it had written it."""
        for path in self.archives()[-1:]:
            data = read_bytes(path) or b""
            if data.endswith(b"\n" + old) and data.partition(b"\n---\n")[2] == old:
                return path
        return None

    def _free_name(self) -> str:
        """A name for an archive that is made now; two made within a second don't replace one another."""
        second = int(self.clock())
        while True:
            stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(second))
            path = f"{self.path.removesuffix('.chat')}-{stamp}{ARCHIVE_MARK}chat"
            if not os.path.lexists(path):
                return path
            second += 1

    def _shorten(self, head: bytes, rest: bytes) -> None:
        """Put the shortened chat into its place, and the cursors that fit it right after.

        The new cursors are first written under another name, with the identity of the chat they belong to, so that a
        writer who finds them there knows whether they are to take their place.
        """
        beside = f"{self.path}.tmp"
        moved = cursors.shifted(self.cursors, ARCHIVE_COUNT)
        try:
            found = write_new(beside, head, rest)
            if moved:
                replace(self._pending, b"%d %d\n" % (found.st_ino, found.st_size) + cursors.render(moved))
            os.replace(beside, self.path)
        except (OSError, NbsFileError) as error:
            with suppress(OSError):
                os.unlink(beside)
            if isinstance(error, OSError):
                refuse("write", self.path, error)
            raise
        self._seen = _seen(found)
        if moved:
            # The message is in; cursors that can't be written now are found where they are by the next writer.
            with suppress(NbsFileError):
                self.write_cursors(moved)
                remove(self._pending)

    def _finish_archiving(self) -> None:
        data = read_bytes(self._pending)
        if data is None:
            return
        mark, _, content = data.partition(b"\n")
        found = os.stat(self.path)
        if mark == b"%d %d" % (found.st_ino, found.st_size):
            replace(self.cursor_path, content, temporary=f"{self.cursor_path}.tmp")
        remove(self._pending)


def _seen(found: os.stat_result) -> Seen:
    return found.st_ino, found.st_size, found.st_mtime_ns
