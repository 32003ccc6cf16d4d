"""The supervisor's slow poll: all that could be missed is looked at again, seldom and by turns while a team rests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nbs_fleet.model import AgentState
from nbs_fleet.sidecar.polling import POLL_SECONDS
from nbs_fleet.supervisor.attend import Attention
from nbs_fleet.supervisor.desk import Desk
from nbs_fleet.supervisor.fleet import Fleet
from nbs_fleet.supervisor.hosting import Polled, Sidecars
from nbs_fleet.supervisor.upkeep import Upkeep


class Rounds:
    """Polls until it is closed. `fleet()` is what is known now; `measure(handle)` counts what a busy agent used."""

    def __init__(
        self,
        sidecars: Sidecars,
        desk: Desk,
        attention: Attention,
        upkeep: Upkeep,
        *,
        fleet: Callable[[], Fleet],
        measure: Callable[[str], None],
    ) -> None:
        self._sidecars, self._desk, self._attention, self._upkeep = sidecars, desk, attention, upkeep
        self._fleet, self._measure = fleet, measure
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Poll from now on, for the first time a while later."""
        self._timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._next)

    def close(self) -> None:
        """Poll no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _next(self) -> None:
        self.open()
        self.poll()

    def poll(self) -> None:
        """One slow poll. Nobody's turn, and nothing that time alone may change: then next to nothing is touched."""
        polled = self._sidecars.poll()
        if polled is None and not self._attention.waits:
            self._upkeep.glance()
            return
        fleet = self._fleet()
        looking, others = polled or Polled(frozenset(), frozenset(fleet.lives))
        self._desk.look(others)
        self._attention.look(fleet)
        self._upkeep.look(others)
        for handle in fleet.lives.keys() & looking:
            if fleet.lives[handle].record.state is AgentState.BUSY:
                self._measure(handle)
