"""Virtual time: what is due is done in order, and a clock may jump or a machine boot again."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from nbs_fleet.model import Moment

EPOCH = 1_780_000_000.0


class Timeline:
    """Work that is due at its second of simulated time; `random` is the only source of chance."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # repeatable, not secret
        self.t = 0.0
        self.steps = 0
        self._wall = EPOCH
        self._booted = -1_000.0
        self._boots = 0
        self._due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0

    def now(self) -> Moment:
        """The clocks as a process sees them."""
        return Moment(self._wall + self.t, self.t - self._booted, f"boot-{self._boots}")

    def after(self, delay: float, work: Callable[..., None], *args: Any) -> None:
        """Do `work` this many seconds from now."""
        self._number += 1
        # A microsecond at least, where time is meant to pass: a sum of floats may fall short of what was waited for.
        later = self.t + (max(delay, 1e-6) if delay > 0 else 0.0)
        heapq.heappush(self._due, (later, self._number, work, args))

    def at_mono(self, mono: float, work: Callable[..., None], *args: Any) -> None:
        """Do `work` at this monotonic second of the present boot."""
        self.after(mono - (self.t - self._booted), work, *args)

    def jump(self, seconds: float) -> None:
        """The wall clock is set."""
        self._wall += seconds

    def reboot(self) -> None:
        """The machine boots again: monotonic time begins anew."""
        self._boots += 1
        self._booted = self.t - 20.0

    def run(self, until: float) -> None:
        """Do everything that is due before `until`."""
        due = self._due
        while due and due[0][0] < until:
            self.t, _, work, args = heapq.heappop(due)
            self.steps += 1
            work(*args)
        self.t = max(self.t, until)
