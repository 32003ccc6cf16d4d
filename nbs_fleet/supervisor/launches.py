"""Starts of clients from the loop: those asked for at one moment go in one batch, whose calls of tmux they share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nbs_fleet.supervisor.fleet import Launched, StartOne


class Launches:
    """Gathers starts; `start` blocks and starts one batch, in a thread."""

    def __init__(self, start: Callable[[tuple[StartOne, ...]], tuple[Launched, ...]]) -> None:
        self._start = start
        self._wanted: list[StartOne] = []
        self._batch: asyncio.Task[tuple[Launched, ...]] | None = None

    async def start(self, starts: tuple[StartOne, ...]) -> tuple[Launched, ...]:
        """Start these, with whatever else is asked for in this moment; the results of these. Raises what `start` raises."""
        self._wanted.extend(starts)
        if self._batch is None:
            self._batch = asyncio.create_task(self._all(), name="starts")
        # Others wait for the same batch: who is cancelled leaves it alone.
        results = await asyncio.shield(self._batch)
        handles = {one.handle for one in starts}
        return tuple(result for result in results if result.handle in handles)

    async def _all(self) -> tuple[Launched, ...]:
        wanted, self._wanted = tuple(self._wanted), []
        self._batch = None
        return await asyncio.to_thread(self._start, wanted)
