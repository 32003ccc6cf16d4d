"""One chat of the nbs tools: who said what, what is unread by whom, sending, marking as read, searching."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

from nbs_fleet.nbs import chat_file, chat_format, cursors
from nbs_fleet.nbs.chat_file import ChatFile
from nbs_fleet.nbs.chat_format import ChatMessage, Header
from nbs_fleet.nbs.chat_select import Filters, Unread, matches, narrow, since, waiting
from nbs_fleet.nbs.files import LOCK_TIMEOUT, NbsFileError

EVERYTHING = Filters()


class ChatArgumentError(NbsFileError):
    """What was to be written into a chat could not be read from it again by the nbs tools."""

    exit_code = 4


class Sent(Struct, frozen=True):
    """A message that was written: its index now, and the archive that was made on the way."""

    index: int
    archive: str | None = None


class Selection(Struct, frozen=True):
    """Messages read: the index of the first, the messages, how many lines of the chat were no messages.

    `line` is the raw line of the last one, to find it again after an archiving. `clamped`: the cursor was beyond
    the end of the chat.
    """

    start: int
    messages: tuple[ChatMessage, ...]
    skipped: int
    line: bytes = b""
    clamped: bool = False


class Hit(Struct, frozen=True):
    """One message found: the name of the archive it is in (None: the chat itself), its index there, the message."""

    archive: str | None
    index: int
    message: ChatMessage


def is_archive(path: str) -> bool:
    """Whether this is the name of an archive."""
    return chat_file.ARCHIVE_MARK in os.path.basename(path)


def chat_files(root: str) -> tuple[str, ...]:
    """The chats in the nbs tools' folder below `root`, archives left out, sorted."""
    folder = os.path.join(root, ".nbs", "chat")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ()
    return tuple(os.path.join(folder, name) for name in names if name.endswith(".chat") and not is_archive(name))


class Chat:
    """One chat. Reading takes no lock and costs two `stat` calls while nothing changes.

    One object may serve all watchers of the chat, in several threads. Writing waits for the nbs tools' lock, so it
    does not belong into an event loop. Errors: ChatMissingError, ChatArgumentError, NbsFileError.
    """

    def __init__(self, path: str, *, clock: Callable[[], float] = time.time) -> None:
        self._file = ChatFile(path, clock)
        self._waiting: dict[str, Unread] = {}
        self._waiting_of = -1

    @property
    def path(self) -> str:
        """The absolute path of the chat file."""
        return self._file.path

    def create(self) -> None:
        """Make an empty chat; its folder must exist. An error if the file is there already."""
        self._file.create()

    def messages(self) -> tuple[ChatMessage, ...]:
        """All messages."""
        with self._file.guard:
            self._file.refresh()
            return tuple(self._file.log.messages)

    def count(self) -> int:
        """How many messages there are: the index of the next one."""
        with self._file.guard:
            self._file.refresh()
            return len(self._file.log.messages)

    def skipped(self) -> int:
        """How many lines are no messages; they have no index."""
        with self._file.guard:
            self._file.refresh()
            return self._file.log.skipped

    def participants(self) -> tuple[tuple[str, int], ...]:
        """(handle, messages ever posted) in the order of their first posts."""
        with self._file.guard:
            self._file.refresh()
            return self._file.header.participants

    def archives(self) -> tuple[str, ...]:
        """The archive files of this chat, oldest first."""
        return self._file.archives()

    def cursor(self, handle: str) -> int:
        """The index of the last message `handle` has read; -1 if it has read none."""
        with self._file.guard:
            self._file.refresh()
            return self._cursor(handle)

    def unread(self, handle: str) -> Unread:
        """What waits for `handle`, its own messages included. Never moves a cursor."""
        with self._file.guard:
            self._file.refresh()
            if self._waiting_of != self._file.generation:
                self._waiting.clear()
                self._waiting_of = self._file.generation
            known = self._waiting.get(handle)
            if known is None:
                known = self._waiting[handle] = waiting(
                    self._file.log.messages, self._cursor(handle), self._file.log.gone
                )
            return known

    def read(
        self, *, unread: str | None = None, after_own: str | None = None, filters: Filters = EVERYTHING
    ) -> Selection:
        """Messages after the cursor of `unread`, or else after the last one of `after_own`, or else all; filtered.

        Moves no cursor: `mark_read` does, once the messages have reached their reader.
        """
        with self._file.guard:
            self._file.refresh()
            log = self._file.log
            start, clamped = 0, False
            if unread is not None:
                index = self._file.cursors.get(unread)
                clamped = index is not None and index >= len(log.messages) > 0
                start = self._cursor(unread) + 1
            elif after_own is not None:
                start = since(log.messages, after_own)
            start, end = narrow(log.messages, start, filters)
            line = log.line(end - 1) if end > start else b""
            return Selection(start, tuple(log.messages[start:end]), log.skipped, line, clamped)

    def search(
        self, pattern: str, *, handle: str | None = None, filters: Filters = EVERYTHING, archives: bool = False
    ) -> Iterator[Hit]:
        """Messages that hold `pattern`: the chat's, then, with `archives`, those of its archives, newest file first."""
        for index, message in enumerate(self.messages()):
            if matches(message, pattern, handle, filters):
                yield Hit(None, index, message)
        for path in reversed(self.archives()) if archives else ():
            for index, message in enumerate(Chat(path).messages()):
                if matches(message, pattern, handle, filters):
                    yield Hit(os.path.basename(path), index, message)

    def send(self, handle: str, text: str, *, timeout: float = LOCK_TIMEOUT) -> Sent:
        """Append a message; on an error nothing is written.

        The sender's cursor moves along if it had read everything before (its own messages count as read): moved over
        what it has not read, the cursor would hide that.
        """
        with self._file.locked(timeout):
            return self._append(handle, text, self._file.clock())

    @contextmanager
    def writing(self, *, timeout: float = LOCK_TIMEOUT) -> Iterator[Callable[[str, str, float], Sent]]:
        """Hold the chat's lock for more than one message or file; gives what appends (handle, text, wall second)."""
        with self._file.locked(timeout):
            yield self._append

    def mark_read(self, handle: str, selection: Selection, *, timeout: float = LOCK_TIMEOUT) -> None:
        """Move the cursor of `handle` to the last message of what it has read, never backwards.

        Finds that message again if the chat was archived meanwhile. A cursor beyond the end is set to the end.
        """
        _check_handle(handle)
        if not selection.messages and not selection.clamped:
            return
        with self._file.locked(timeout):
            index = max(self._cursor(handle), self._found_again(selection))
            if index >= 0 and index != self._file.cursors.get(handle):
                self._file.write_cursors(self._file.cursors | {handle: index})

    def set_cursor(self, handle: str, index: int, *, timeout: float = LOCK_TIMEOUT) -> None:
        """Set the cursor of `handle`; `index` is the last message read, at most the last there is."""
        _check_handle(handle)
        if index < 0:
            raise ChatArgumentError("a cursor is 0 or more")
        with self._file.locked(timeout):
            last = max(len(self._file.log.messages) - 1, 0)
            self._file.write_cursors(self._file.cursors | {handle: min(index, last)})

    def _append(self, handle: str, text: str, at: float) -> Sent:
        """Append a message that was said at `at`; the lock is held."""
        file = self._file
        try:
            line = chat_format.encode_line(handle, int(at), text)
        except ValueError as error:
            raise ChatArgumentError(str(error)) from None
        header = file.header.posted(handle, file.written())
        self._check_participants(header)
        index = len(file.log.messages)
        caught_up = all(message.handle == handle for message in file.log.messages[self._cursor(handle) + 1 :])
        archive = file.write(header, line)
        if archive is not None:
            index -= chat_file.ARCHIVE_COUNT
        if caught_up:
            # The message is in: that it stays unread by its sender is no reason to say that it is not.
            with suppress(NbsFileError):
                file.write_cursors(file.cursors | {handle: index})
        return Sent(index, archive)

    def _cursor(self, handle: str) -> int:
        return cursors.effective(self._file.cursors.get(handle), len(self._file.log.messages))

    def _check_participants(self, header: Header) -> None:
        if len(header.participants) > chat_format.PARTICIPANTS:
            raise ChatArgumentError(
                f"{self.path}: {header.writer} would be participant number {len(header.participants)}, and with more "
                f"than {chat_format.PARTICIPANTS} the nbs tools could not write to it any more",
                hint="use a handle that has posted before, or another chat",
            )

    def _found_again(self, selection: Selection) -> int:
        """The index now of the last message of a selection; -1 if it is gone."""
        log = self._file.log
        if not selection.messages:
            return len(log.messages) - 1
        index = selection.start + len(selection.messages) - 1
        while index >= 0:
            if index < len(log.messages) and log.line(index) == selection.line:
                return index
            index -= chat_file.ARCHIVE_COUNT
        return -1


def _check_handle(handle: str) -> None:
    trouble = chat_format.handle_trouble(handle)
    if trouble:
        raise ChatArgumentError(f"the handle {handle!r} {trouble}")
