"""The supervisor's slow poll: all that could be missed is looked at again, seldom and by turns while a team rests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nbs_fleet.model import AgentState
from nbs_fleet.sidecar.polling import POLL_SECONDS, next_number, seconds_to_next
from nbs_fleet.supervisor.attend import Attention
from nbs_fleet.supervisor.desk import Desk
from nbs_fleet.supervisor.fleet import Fleet
from nbs_fleet.supervisor.hosting import Polled, Sidecars
from nbs_fleet.supervisor.upkeep import Upkeep


class Rounds:
    """Polls until it is closed; while all rests, only when quiet agents have turns.

    `fleet()` is what is known now; `measure(handle)` counts what a busy agent used.
    """

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
        self._number = 0
        self._at = 0.0
        """When the last poll was, by the loop's clock."""
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Poll from now on, for the first time a while later."""
        self._sidecars.stirred = self._upkeep.stirred = self.stir
        self._at = asyncio.get_running_loop().time()
        self._later(POLL_SECONDS)

    def close(self) -> None:
        """Poll no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def stir(self) -> None:
        """Something happened somewhere: the next poll comes as soon as ever."""
        if self._timer is not None and self._timer.when() > asyncio.get_running_loop().time() + POLL_SECONDS:
            self._timer.cancel()
            self._later(POLL_SECONDS)

    def _later(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._next)

    def _next(self) -> None:
        now = asyncio.get_running_loop().time()
        self._number = next_number(self._number, now - self._at)
        self._at = now
        self._later(seconds_to_next(self._number, rests=not self.poll(self._number)))

    def poll(self, number: int) -> bool:
        """One slow poll; whether it was of use.

        Nobody's turn, and nothing that time alone may change: then next to nothing is touched.
        """
        polled = self._sidecars.poll(number)
        if polled is None and not self._attention.waits:
            self._upkeep.glance()
            return False
        fleet = self._fleet()
        looking, others = polled or Polled(frozenset(), frozenset(fleet.lives))
        self._desk.look(others)
        self._attention.look(fleet)
        self._upkeep.look(others)
        for handle in fleet.lives.keys() & looking:
            if fleet.lives[handle].record.state is AgentState.BUSY:
                self._measure(handle)
        return True
