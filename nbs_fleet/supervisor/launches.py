"""Starts of clients: those that the loop asks for at one moment go in one batch; which of them rest afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from nbs_fleet.launch.rest import wait_rest
from nbs_fleet.supervisor.fleet import AwaitRest, Launched, Rested, StartOne

PAUSES = (0.02, 0.04, 0.08, 0.16)
"""Seconds that a client has to take nothing of a core to be seen at rest; then it is asked anew whether that matters."""


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


def rested(action: AwaitRest, pauses: Sequence[float] = PAUSES) -> Rested:
    """See which clients rest; blocks for as long as `pauses` at most."""
    found = wait_rest(action.clients.values(), pauses)
    return Rested({handle: proc for handle, proc in action.clients.items() if proc in found})
