"""Changes in directories by one inotify instance on the loop (inotify_simple)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from inotify_simple import INotify, flags

_MASK = int(
    flags.CREATE
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.CLOSE_WRITE
    | flags.DELETE
    | flags.DELETE_SELF
    | flags.MOVE_SELF
    | flags.ONLYDIR
    # Two paths to one directory share a watch: none takes from it what the other wants to hear of.
    | flags.MASK_ADD
)
_WRITES = int(flags.MODIFY)
_GONE = int(flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT | flags.IGNORED)
_LOST = int(flags.Q_OVERFLOW)


class Inotify:
    """Tells `changed(directory, name)` and `lost(directory)`; lost of "" when the kernel dropped events."""

    needs_parent = False

    def __init__(
        self, loop: asyncio.AbstractEventLoop, changed: Callable[[str, str], None], lost: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._changed = changed
        self._lost = lost
        self._inotify = INotify(nonblocking=True)
        self._loop.add_reader(self._inotify.fd, self._read)
        self._open = True
        self._paths: dict[int, tuple[str, ...]] = {}
        """Directories by watch number: two paths to one directory share a number."""
        self._watches: dict[str, int] = {}

    def watch(self, directory: str, *, writes: bool) -> None:
        watch = self._inotify.add_watch(directory, _MASK | _WRITES if writes else _MASK)
        self._watches[directory] = watch
        paths = self._paths.get(watch, ())
        if directory not in paths:
            self._paths[watch] = (*paths, directory)

    def unwatch(self, directory: str) -> None:
        watch = self._watches.pop(directory, None)
        if watch is None:
            return
        self._paths[watch] = tuple(path for path in self._paths.get(watch, ()) if path != directory)
        if not self._paths[watch]:
            self._paths.pop(watch, None)
            # The directory may be gone, and the watch with it.
            with suppress(OSError):
                self._inotify.rm_watch(watch)

    def close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._inotify.fd)
            self._inotify.close()

    def _read(self) -> None:
        # A write is told twice (modified, closed), a burst many times: one call for each name is enough.
        changes: dict[tuple[str, str], None] = {}
        lost: dict[str, None] = {}
        for watch, mask, _, name in self._inotify.read(timeout=0):
            paths = self._paths.get(watch, ())
            if mask & _LOST:
                lost[""] = None
            elif mask & _GONE:
                lost.update(dict.fromkeys(paths))
            elif name:
                changes.update({(path, name): None for path in paths})
        for directory, name in changes:
            self._changed(directory, name)
        for directory in lost:
            if directory:
                self.unwatch(directory)
            self._lost(directory)
