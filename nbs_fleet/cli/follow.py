"""Looks again whenever something changes in some folders, until Ctrl-C: the engine of every `-f`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nbs_fleet.launch.watch import Watcher


def follow(folders: Callable[[], list[str]], look: Callable[[], None]) -> None:
    """Call `look` now and after each change in `folders()`, which may grow; ends with KeyboardInterrupt."""
    asyncio.run(_follow(folders, look))


async def _follow(folders: Callable[[], list[str]], look: Callable[[], None]) -> None:
    changed = asyncio.Event()
    watcher = Watcher()
    watched: set[str] = set()
    try:
        while True:
            for folder in folders():
                if folder not in watched:
                    watched.add(folder)
                    watcher.add(folder, lambda _name: changed.set())
            look()
            await changed.wait()
            changed.clear()
    finally:
        watcher.close()
