"""Look again whenever a file in some folders changes; at rest it costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from nbs_fleet.launch.watch import Watcher

POLL = 30.0
"""Seconds after which a look is taken anyway: some network file systems tell nothing of changes."""


def refresh(folders: Callable[[], Iterable[str]], look: Callable[[], None]) -> None:
    """Call `look` now and after each change in the folders, which are asked for anew each time.

    Ends with what `look` raises, or with KeyboardInterrupt.
    """
    asyncio.run(_refresh(folders, look))


async def _refresh(folders: Callable[[], Iterable[str]], look: Callable[[], None]) -> None:
    changed = asyncio.Event()
    watcher, watched = Watcher(), set[str]()
    try:
        while True:
            changed.clear()
            for folder in folders():
                if folder not in watched:
                    watched.add(folder)
                    watcher.add(folder, lambda _: changed.set())
            look()
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await changed.wait()
    finally:
        watcher.close()


def await_change(folder: str, seconds: float) -> None:
    """Wait until something in the folder changes, `seconds` at most."""
    asyncio.run(_await_change(folder, seconds))


async def _await_change(folder: str, seconds: float) -> None:
    changed = asyncio.Event()
    watcher = Watcher()
    try:
        watcher.add(folder, lambda _: changed.set())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await changed.wait()
    finally:
        watcher.close()
