"""What a benchmark hands over: figures with their spread, their goals, and what they were measured beside. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from msgspec import Struct


class Spread(Struct, frozen=True):
    """One value that stands for `number` measured ones, and the least and the greatest of those."""

    value: float
    low: float
    high: float
    number: int = 1


class Beside(Struct, frozen=True):
    """What a figure is compared with, in the figure's own unit.

    `at_least`: the figure is to be so many times smaller; `at_most`: it may be so many times as great.
    `greater`: it is the one that should be greater, also without a goal.
    """

    name: str
    took: Spread
    at_least: float | None = None
    at_most: float | None = None
    greater: bool = False

    def times(self, own: float) -> float | None:
        """How many times smaller `own` is than this one where it should be, else how many times as great; None: no ratio."""
        turned = self.greater or self.at_least is not None
        above, below = (self.took.value, own) if turned else (own, self.took.value)
        return above / below if below else None

    def met(self, own: float) -> bool | None:
        """Whether the goal is met; None without one. What costs nothing is any number of times smaller."""
        times = self.times(own)
        if self.at_least is not None:
            return times is None or times >= self.at_least
        if self.at_most is not None:
            return times is not None and times <= self.at_most
        return None

    @property
    def goal(self) -> str:
        """The goal in words."""
        if self.at_least is not None:
            return f">= {number(self.at_least)} x less"
        return "" if self.at_most is None else f"<= {number(self.at_most)} x"


class Figure(Struct, frozen=True):
    """One measured value: what it is of, its unit, the most (or least) it should be, what it was measured beside."""

    name: str
    unit: str
    took: Spread
    at_most: float | None = None
    at_least: float | None = None
    beside: tuple[Beside, ...] = ()

    @property
    def goal(self) -> str:
        """Its own goal in words."""
        if self.at_most is not None:
            return f"<= {number(self.at_most)} {self.unit}"
        return "" if self.at_least is None else f">= {number(self.at_least)} {self.unit}"

    @property
    def met_alone(self) -> bool | None:
        """Whether its own goal is met, comparisons aside; None without one."""
        if self.at_most is not None:
            return self.took.value <= self.at_most
        return None if self.at_least is None else self.took.value >= self.at_least

    @property
    def met(self) -> bool | None:
        """Whether all of its goals are met; None without any."""
        words = [self.met_alone, *(other.met(self.took.value) for other in self.beside)]
        said = [word for word in words if word is not None]
        return all(said) if said else None


class Options(Struct, frozen=True):
    """How a run is to be: `quick` means fewer repeats and smaller fleets, to see that all works."""

    quick: bool = False

    def some(self, usual: int, quick: int) -> int:
        """The usual number, or that of a quick run."""
        return quick if self.quick else usual


class Benchmark(Struct, frozen=True):
    """One benchmark: its name on the command line, how its figures are made (for the docs), what makes them."""

    name: str
    about: str
    figures: Callable[[Options], list[Figure]]


def mean(values: Sequence[float]) -> Spread:
    """The mean of these values, where each of them is a part of the whole."""
    return Spread(statistics.fmean(values), min(values), max(values), len(values))


def median(values: Sequence[float]) -> Spread:
    """The median of repeats."""
    return Spread(statistics.median(values), min(values), max(values), len(values))


def quantile(values: Sequence[float], share: float) -> Spread:
    """The smallest value that at least this share of all does not exceed."""
    ranked = sorted(values)
    rank = max(1, math.ceil(share * len(ranked) - 1e-9))
    return Spread(ranked[rank - 1], ranked[0], ranked[-1], len(ranked))


def number(value: float) -> str:
    """A number as people read it: three digits that count, thousands apart."""
    if value == 0:
        return "0"
    whole = math.floor(math.log10(abs(value))) + 1
    if whole >= 3:
        return f"{value:,.0f}"
    digits = f"{value:.{3 - whole}f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
