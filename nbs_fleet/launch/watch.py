"""File notification: callbacks with the names that changed in directories, also in ones that are yet to appear."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from nbs_fleet.errors import FleetError
from nbs_fleet.launch.mounts import NETWORK, file_system

if TYPE_CHECKING:
    from watchdog.observers.api import ObservedWatch

Callback = Callable[[str], None]


class _Source(Protocol):
    """One way of being told about changes in single directories."""

    needs_parent: bool
    """Whether the end of a directory is only seen from the one above it."""

    def watch(self, directory: str, *, writes: bool) -> None:
        """Begin, or tell of each write as well; OSError if there is no such directory or no more can be watched."""
        ...

    def unwatch(self, directory: str) -> None: ...

    def close(self) -> None: ...


class Watcher:
    """Watches directories on the running loop; costs nothing while nothing changes.

    A callback gets the name of an entry that was created, moved, written or deleted, or "" when names may have
    been missed: the directory appeared, vanished, was replaced, or events were lost. Look at everything then.
    Notification is silent on some network file systems: a slow poll has to stay, which may be seldom where
    `tells` says so. `portable` forces watchdog.
    """

    def __init__(self, *, portable: bool | None = None) -> None:
        loop = self._loop = asyncio.get_running_loop()
        if portable is None:
            portable = not sys.platform.startswith("linux")
        self._source: _Source = _Watchdog(loop, self._changed, self._lost) if portable else _make_inotify(loop, self)
        self._callbacks: dict[str, tuple[Callback, ...]] = {}
        self._ways: Counter[str] = Counter()
        """How many of the directories that are asked for lie at or below a path."""
        self._untidy = False
        self._silent = portable
        self._devices: set[int] = set()
        """The file systems of what is watched, as far as their kinds are known."""
        self._there: set[str] = set()
        """Directories among the asked-for that exist and are watched."""
        self._written: set[str] = set()
        """Directories among the asked-for of which each write is told."""
        self._watched: set[str] = set()
        """All directories that are watched: those above, and parents of missing ones."""

    @property
    def tells(self) -> bool:
        """Whether each change is told, as far as one can know: local files, the system's own way, within its limits."""
        return not self._silent

    def add(self, directory: str, callback: Callback, *, writes: bool = True) -> None:
        """Call `callback` for changes in `directory` (not below), which need not exist yet.

        With `writes` False only whole changes have to be told: of a file that somebody writes to, once it is closed.
        Raises FleetError when the system's limit of watches is reached.
        """
        path = _absolute(directory)
        if path not in self._callbacks:
            self._ways.update(_way_to(path))
        self._callbacks[path] = (*self._callbacks.get(path, ()), callback)
        if writes and path not in self._written:
            self._written.add(path)
            self._watched.discard(path)
        try:
            self._arrange(only=path)
        except FleetError:
            self.remove(path, callback)
            raise

    def remove(self, directory: str, callback: Callback | None = None) -> None:
        """Stop one callback of a directory, or all of them."""
        path = _absolute(directory)
        kept = tuple(known for known in self._callbacks.get(path, ()) if callback is not None and known != callback)
        if kept:
            self._callbacks[path] = kept
            return
        if self._callbacks.pop(path, None) is None:
            return
        for above in _way_to(path):
            self._ways[above] -= 1
            if not self._ways[above]:
                del self._ways[above]
        self._there.discard(path)
        self._written.discard(path)
        # Many are removed at once where an agent ends: one look serves them all.
        if not self._untidy:
            self._untidy = True
            self._loop.call_soon(self._tidy)

    def close(self) -> None:
        """Stop everything."""
        self._callbacks.clear()
        self._ways.clear()
        self._there.clear()
        self._watched.clear()
        self._source.close()

    def _changed(self, directory: str, name: str) -> None:
        for callback in self._callbacks.get(directory, ()):
            callback(name)
        if os.path.join(directory, name) in self._ways:
            self._rearrange()

    def _lost(self, directory: str) -> None:
        """The directory went away, or (empty) events were lost: nothing that was known holds."""
        if directory:
            self._watched.discard(directory)
        if directory in self._there:
            self._there.discard(directory)
            self._tell(directory)
        elif not directory:
            for path in tuple(self._callbacks):
                self._tell(path)
        self._rearrange()

    def _tell(self, directory: str) -> None:
        for callback in self._callbacks.get(directory, ()):
            callback("")

    def _rearrange(self) -> None:
        # In the middle of an event nobody can be told of a limit; what is not watched is left to the poll.
        with suppress(FleetError):
            self._arrange()

    def _tidy(self) -> None:
        self._untidy = False
        self._rearrange()

    def _arrange(self, only: str | None = None) -> None:
        """Watch what is to be watched now, tell of directories that appeared or vanished.

        `only`: see to this directory alone, and tell nobody; all the others are as they were.
        """
        told: list[str] = []
        # Again and again, as a directory may appear between the look and the watch on its parent.
        while True:
            paths = self._callbacks.keys() if only is None else {only}
            there = {path for path in paths if os.path.isdir(path)}
            needed = set(there)
            for path in paths:
                if path not in there or self._source.needs_parent:
                    needed.add(_nearest(os.path.dirname(path)))
            if only is None:
                for path in self._watched - needed:
                    self._source.unwatch(path)
                self._watched &= needed
            missing = needed - self._watched
            for path in missing:
                self._begin(path)
            found = (self._there - paths) | (there & self._watched)
            told += sorted(self._there ^ found) if only is None else ()
            self._there = found
            if not missing:
                break
        for path in told:
            self._tell(path)

    def _begin(self, path: str) -> None:
        try:
            self._source.watch(path, writes=path in self._written)
            self._watched.add(path)
            self._judge(path)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENFILE):
                self._silent = True
                raise _limit(path) from error
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise FleetError(f"can't watch {path}: {error.strerror}") from error

    def _judge(self, path: str) -> None:
        """Whether changes made elsewhere are told there depends on the file system; each one is asked for once."""
        device = os.stat(path).st_dev
        if device not in self._devices:
            self._devices.add(device)
            self._silent = self._silent or file_system(os.path.realpath(path)) in NETWORK


class _Watchdog:
    """watchdog's observer thread, heard on the loop."""

    needs_parent = True

    def __init__(
        self, loop: asyncio.AbstractEventLoop, changed: Callable[[str, str], None], lost: Callable[[str], None]
    ) -> None:
        from watchdog.events import FileSystemEvent, FileSystemEventHandler  # noqa: PLC0415 -- not needed on Linux
        from watchdog.observers import Observer  # noqa: PLC0415

        self._loop = loop
        self._changed = changed
        self._lost = lost
        self._watches: dict[str, ObservedWatch] = {}
        self._paths: dict[str, list[str]] = {}
        """Directories by their real path: the observer does not tell two paths to one directory apart."""
        self._observer = Observer()
        self._observer.start()
        outer = self

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                if event.event_type not in ("opened", "closed_no_write"):
                    paths = tuple(os.fsdecode(path) for path in (event.src_path, event.dest_path) if path)
                    with suppress(RuntimeError):  # the loop is closed already
                        outer._loop.call_soon_threadsafe(outer._heard, paths)

        self._handler = Handler()

    def watch(self, directory: str, *, writes: bool) -> None:  # noqa: ARG002 -- it tells of each write anyway
        if not os.path.isdir(directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), directory)
        real = os.path.realpath(directory)
        if real not in self._watches:
            self._watches[real] = self._observer.schedule(self._handler, real, recursive=False)
        paths = self._paths.setdefault(real, [])
        if directory not in paths:
            paths.append(directory)

    def unwatch(self, directory: str) -> None:
        for real, paths in tuple(self._paths.items()):
            if directory in paths:
                paths.remove(directory)
            if not paths:
                del self._paths[real]
                with suppress(KeyError, OSError):
                    self._observer.unschedule(self._watches.pop(real))

    def close(self) -> None:
        self._watches.clear()
        self._observer.stop()
        self._observer.join(5.0)

    def _heard(self, paths: tuple[str, ...]) -> None:
        for path in paths:
            if path in self._paths and not os.path.isdir(path):
                for directory in tuple(self._paths[path]):
                    self.unwatch(directory)
                    self._lost(directory)
            for directory in tuple(self._paths.get(os.path.dirname(path), ())):
                self._changed(directory, os.path.basename(path))


def _make_inotify(loop: asyncio.AbstractEventLoop, watcher: Watcher) -> _Source:
    from nbs_fleet.launch.inotify import Inotify  # noqa: PLC0415 -- there is no inotify elsewhere

    try:
        return Inotify(loop, watcher._changed, watcher._lost)  # noqa: SLF001 -- one thing in two modules
    except OSError as error:
        raise _limit("more") from error


def _limit(path: str) -> FleetError:
    return FleetError(
        f"can't watch {path}: the system's limit is reached",
        hint="Raise fs.inotify.max_user_watches and max_user_instances (sysctl).",
    )


def _absolute(directory: str) -> str:
    """The absolute path; where it is one, this very object, which its owner has as well."""
    path = os.path.abspath(directory)
    return directory if path == directory else path


def _nearest(path: str) -> str:
    """The nearest directory upwards that exists."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def _way_to(path: str) -> list[str]:
    """The path and all directories above it."""
    way = [path]
    while (above := os.path.dirname(way[-1])) != way[-1]:
        way.append(above)
    return way
