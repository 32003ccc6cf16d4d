"""The nbs tools' event bus: a folder of event files, published by rename, acknowledged by a move to `processed/`."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from msgspec import Struct

from nbs_fleet.model import Priority
from nbs_fleet.nbs import bus_format
from nbs_fleet.nbs.bus_format import BusConfig, Event
from nbs_fleet.nbs.files import NbsFileError, read_bytes, refuse, remove, replace, write_new

_EVENT_BYTES = 4 * 1024 * 1024
"""A file larger than this is no event."""
_TEMPORARY = ".tmp-"
_PREPARED = ".prepared"
"""Ends the name of an event that is written but not yet published; no scanner looks at such names."""
_naming = threading.Lock()
"""Held while a thread of this process gives a file its name; names of other processes have another pid."""


class BusMissingError(NbsFileError):
    """There is no such events directory."""

    exit_code = 2


class EventMissingError(NbsFileError):
    """There is no such event among the pending ones."""

    exit_code = 3


class BusArgumentError(NbsFileError):
    """What was to be published is no event."""

    exit_code = 4


class Pending(Struct, frozen=True):
    """The pending events, most urgent first, and which files are no events (each named only once per Bus)."""

    events: tuple[Event, ...]
    problems: tuple[str, ...] = ()


class Status(Struct, frozen=True):
    """How a bus stands: pending events, processed ones and their bytes, and how many wait longer than the limit."""

    events: tuple[Event, ...]
    processed: int
    processed_bytes: int
    stale: int
    ack_timeout: int


class Pruned(Struct, frozen=True):
    """How many processed events were removed, the bytes of those left, and the limit."""

    removed: int
    left: int
    limit: int
    folder: bool = True
    """False: there is no folder of processed events."""


class Bus:
    """One events directory. Errors: BusMissingError, EventMissingError, BusArgumentError, NbsFileError.

    Files once published never change, so each is read once however often `pending` is asked.
    """

    def __init__(self, folder: str, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = os.path.abspath(folder)
        self._clock = clock
        self._guard = threading.Lock()
        self._known: dict[str, Event] = {}
        self._damaged: dict[str, tuple[int, int]] = {}
        self._news: list[str] = []

    @property
    def processed_folder(self) -> str:
        """Where acknowledged events are."""
        return os.path.join(self.folder, "processed")

    def config(self) -> BusConfig:
        """What `config.yaml` says."""
        data = read_bytes(os.path.join(self.folder, "config.yaml"))
        return bus_format.parse_config((data or b"").decode("utf-8", "replace"))

    def publish(
        self, source: str, kind: str, priority: Priority, payload: str = "", *, dedup_window: float | None = None
    ) -> str | None:
        """Publish an event; returns the name of its file, None if the same source and type are pending already.

        `dedup_window` is how far back (seconds) that counts; None takes it from the configuration, 0 never.
        """
        data = self._render(source, kind, priority, payload)
        self._check_folder()
        window = self.config().dedup_window if dedup_window is None else dedup_window
        if window > 0 and self._is_double(f"{source}:{kind}", window):
            return None
        self._make_processed()
        beside = os.path.join(self.folder, f"{_TEMPORARY}{int(self._clock() * 1e6)}-{os.getpid()}{bus_format.SUFFIX}")
        with _naming:
            path = self._free(source, kind)
            try:
                write_new(beside, data, mode=0o666)
                os.rename(beside, path)
            except OSError as error:
                with suppress(OSError):
                    os.unlink(beside)
                refuse("publish", path, error)
        return os.path.basename(path)

    def prepare(self, mark: str, source: str, kind: str, priority: Priority, payload: str) -> None:
        """Write an event that nobody sees until it is released; `mark` (a file name's letters) is to find it again."""
        data = self._render(source, kind, priority, payload)
        self._check_folder()
        path = self._prepared(mark)
        replace(path, data, temporary=f"{path}.tmp", mode=0o666)

    def prepared(self) -> tuple[str, ...]:
        """The marks of the events that are prepared and neither released nor discarded, sorted."""
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            refuse("read", self.folder, error)
        return tuple(sorted(n[1:].removesuffix(_PREPARED) for n in names if n[0] == "." and n.endswith(_PREPARED)))

    def release(self, mark: str, source: str, kind: str) -> str:
        """Publish a prepared event, in one step that can't happen twice; returns its name. Raises NbsFileError."""
        self._make_processed()
        with _naming:
            path = self._free(source, kind)
            try:
                os.rename(self._prepared(mark), path)
            except OSError as error:
                refuse("publish", path, error)
        return os.path.basename(path)

    def discard(self, mark: str) -> None:
        """Forget a prepared event."""
        remove(self._prepared(mark))

    def pending(self) -> Pending:
        """All pending events, and what is new among the files that are none."""
        events = self._scan()
        with self._guard:
            news, self._news = self._news, []
        return Pending(events, tuple(news))

    def read(self, name: str) -> bytes:
        """The content of a pending event, as it is."""
        self._check_folder()
        data = read_bytes(self._path(name))
        if data is None:
            raise EventMissingError(f"event not found: {name}")
        return data

    def event(self, name: str) -> Event:
        """One pending event. Raises NbsFileError if the file is none."""
        try:
            return bus_format.parse(name, self.read(name))
        except ValueError as error:
            raise NbsFileError(f"{name} is no event: {error}") from None

    def ack(self, name: str) -> None:
        """Acknowledge one event: it moves to `processed/`. Of several who try, one succeeds."""
        path = self._path(name)
        self._check_folder()
        self._make_processed()
        try:
            os.rename(path, os.path.join(self.processed_folder, name))
        except FileNotFoundError:
            raise EventMissingError(f"event not found: {name}") from None
        except OSError as error:
            refuse("acknowledge", path, error)

    def prune(self, limit: int | None = None) -> Pruned:
        """Remove the oldest processed events until they have at most `limit` bytes (None: as configured)."""
        self._check_folder()
        most = self.config().retention if limit is None else limit
        if not os.path.isdir(self.processed_folder):
            return Pruned(0, 0, most, folder=False)
        sizes = [(bus_format.stamp(name), name, size) for name, size in self._processed()]
        total = sum(size for at_us, _, size in sizes if at_us is not None)
        removed = 0
        for _, name, size in sorted((at_us, name, size) for at_us, name, size in sizes if at_us is not None):
            if total <= most:
                break
            removed += remove(os.path.join(self.processed_folder, name))
            total -= size
        return Pruned(removed, total, most)

    def status(self) -> Status:
        """How many events are pending and processed, and how many of the pending ones wait too long."""
        events = self._scan()
        sizes = [size for _, size in self._processed()]
        limit = self.config().ack_timeout
        oldest = (self._clock() - limit) * 1e6
        stale = sum(1 for event in events if event.at_us < oldest) if limit else 0
        return Status(events, len(sizes), sum(sizes), stale, limit)

    def _render(self, source: str, kind: str, priority: Priority, payload: str) -> bytes:
        for what, word in (("source", source), ("type", kind)):
            trouble = bus_format.word_trouble(word)
            if trouble:
                raise BusArgumentError(f"{what} {trouble}: {word!r}")
        if "\0" in payload:
            raise BusArgumentError("a payload can't hold NUL characters")
        timestamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock()))
        try:
            return bus_format.render(source, kind, priority, timestamp, payload)
        except UnicodeEncodeError:
            raise BusArgumentError("the event has characters that can't be written as UTF-8") from None

    def _prepared(self, mark: str) -> str:
        return os.path.join(self.folder, f".{mark}{_PREPARED}")

    def _free(self, source: str, kind: str) -> str:
        """The path of an event published now; `_naming` is held."""
        at_us, pid = int(self._clock() * 1e6), os.getpid()
        while self._is_taken(name := self._name(at_us, source, kind, pid)):
            at_us += 1
        return os.path.join(self.folder, name)

    def _name(self, at_us: int, source: str, kind: str, pid: int) -> str:
        try:
            return bus_format.file_name(at_us, source, kind, pid)
        except ValueError as error:
            raise BusArgumentError(str(error)) from None

    def _is_taken(self, name: str) -> bool:
        return any(os.path.lexists(os.path.join(folder, name)) for folder in (self.folder, self.processed_folder))

    def _is_double(self, key: str, window: float) -> bool:
        oldest = (self._clock() - window) * 1e6
        return any(event.at_us >= oldest and event.key == key for event in self._scan())

    def _scan(self) -> tuple[Event, ...]:
        """All pending events, most urgent first."""
        with self._guard:
            names = self._names(self.folder)
            self._damaged = {name: seen for name, seen in self._damaged.items() if name in names}
            self._known = {name: event for name in names if (event := self._known.get(name) or self._look(name))}
            return tuple(sorted(self._known.values(), key=lambda event: event.order))

    def _look(self, name: str) -> Event | None:
        """The event of a file not read yet; None if it is none, or gone by now.

        One that is none is looked at again when it changes: it may have been written by hand, bit by bit.
        """
        try:
            found = os.stat(os.path.join(self.folder, name))
        except OSError:
            return None
        seen = (found.st_size, found.st_mtime_ns)
        if self._damaged.get(name) == seen:
            return None
        try:
            event = self._parse(name, found)
        except (ValueError, NbsFileError) as error:
            if name not in self._damaged:
                self._news.append(f"{name}: {error}")
            self._damaged[name] = seen
            return None
        self._damaged.pop(name, None)
        return event

    def _parse(self, name: str, found: os.stat_result) -> Event | None:
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is no regular file")
        if found.st_size > _EVENT_BYTES:
            raise ValueError(f"it has {found.st_size} bytes")
        data = read_bytes(os.path.join(self.folder, name))
        return None if data is None else bus_format.parse(name, data)

    def _names(self, folder: str) -> set[str]:
        try:
            names = os.listdir(folder)
            return {n for n in names if n.endswith(bus_format.SUFFIX) and not n.startswith(_TEMPORARY)}
        except (FileNotFoundError, NotADirectoryError):
            raise _missing(folder) from None
        except OSError as error:
            refuse("read", folder, error)

    def _processed(self) -> Iterator[tuple[str, int]]:
        """(name, bytes) of each processed event."""
        if not os.path.isdir(self.processed_folder):
            return
        for name in self._names(self.processed_folder):
            with suppress(FileNotFoundError):
                found = os.stat(os.path.join(self.processed_folder, name))
                if stat.S_ISREG(found.st_mode):
                    yield name, found.st_size

    def _path(self, name: str) -> str:
        """The path of a pending event. Raises NbsFileError for what can't be the name of one."""
        if "/" in name or name.startswith("..") or not name.removesuffix(bus_format.SUFFIX) or "\0" in name:
            raise NbsFileError(f"invalid event filename: {name!r}")
        if not name.endswith(bus_format.SUFFIX):
            raise NbsFileError(f"invalid event filename (must end in {bus_format.SUFFIX}): {name!r}")
        return os.path.join(self.folder, name)

    def _check_folder(self) -> None:
        if not os.path.isdir(self.folder):
            raise _missing(self.folder)

    def _make_processed(self) -> None:
        try:
            os.mkdir(self.processed_folder, 0o755)
        except FileExistsError:
            pass
        except OSError as error:
            refuse("make", self.processed_folder, error)


def _missing(folder: str) -> BusMissingError:
    return BusMissingError(f"events directory not found: {folder}", hint="mkdir it; nbs-chat-init makes .nbs/events")
