"""Changes in directories by one inotify instance on the loop (asyncinotify)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

import asyncinotify
from asyncinotify import Mask

_MASK = (
    Mask.CREATE
    | Mask.MOVED_FROM
    | Mask.MOVED_TO
    | Mask.CLOSE_WRITE
    | Mask.DELETE
    | Mask.DELETE_SELF
    | Mask.MOVE_SELF
    | Mask.ONLYDIR
    # Two paths to one directory share a watch: none takes from it what the other wants to hear of.
    | Mask.MASK_ADD
)
_GONE = Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.UNMOUNT | Mask.IGNORED


class Inotify:
    """Tells `changed(directory, name)` and `lost(directory)`; lost of "" when the kernel dropped events."""

    needs_parent = False

    def __init__(
        self, loop: asyncio.AbstractEventLoop, changed: Callable[[str, str], None], lost: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._changed = changed
        self._lost = lost
        self._inotify = asyncinotify.Inotify(cache_size=64, sync_timeout=0)
        self._loop.add_reader(self._inotify.fd, self._read)
        self._open = True
        self._paths: dict[int, list[str]] = {}
        """Directories by watch number: two paths to one directory share a number."""
        self._watches: dict[str, asyncinotify.Watch] = {}

    def watch(self, directory: str, *, writes: bool) -> None:
        watch = self._inotify.add_watch(os.fsencode(directory), _MASK | Mask.MODIFY if writes else _MASK)
        self._watches[directory] = watch
        paths = self._paths.setdefault(watch.wd, [])
        if directory not in paths:
            paths.append(directory)

    def unwatch(self, directory: str) -> None:
        watch = self._watches.pop(directory, None)
        if watch is None:
            return
        paths = self._paths.get(watch.wd, [])
        paths.remove(directory)
        if not paths:
            self._paths.pop(watch.wd, None)
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
        while (event := self._inotify.sync_get()) is not None:
            if Mask.Q_OVERFLOW in event.mask:
                lost[""] = None
                continue
            watch = event.watch
            paths = tuple(self._paths.get(watch.wd, ())) if watch is not None else ()
            if event.mask & _GONE:
                lost.update(dict.fromkeys(paths))
            elif event.name is not None:
                changes.update({(path, str(event.name)): None for path in paths})
        for directory, name in changes:
            self._changed(directory, name)
        for directory in lost:
            if directory:
                self.unwatch(directory)
            self._lost(directory)
