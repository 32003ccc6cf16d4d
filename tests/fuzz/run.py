"""Runs a target for a number of inputs or seconds; the shortest input that breaks it is the finding."""

from __future__ import annotations

import os
import tempfile
import time
import traceback
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from tests.fuzz.target import HangError, Target, held, little_memory

ROUND = 500
"""Inputs between two looks at the clock."""


class Found(NamedTuple):
    """An input that broke a target, and what came of it."""

    data: bytes
    trace: str


class Result(NamedTuple):
    """How many inputs were run (those of shrinking left out), in how many seconds, and what was found."""

    target: str
    inputs: int
    seconds: float
    found: Found | None


def run(target: Target, inputs: int, seconds: float, first_seed: int) -> Result:
    """Inputs from `first_seed` on, until there are enough, or the time is over, or one is found."""
    if os.access("/dev/shm", os.W_OK):
        # Each input is a file of its own, and none is to be kept.
        tempfile.tempdir = "/dev/shm"
    begun = time.monotonic()
    done, number = 0, first_seed
    while done < inputs and time.monotonic() - begun < seconds:
        size = min(ROUND, inputs - done)
        ran, found = _round(target, size, number)
        done, number = done + ran, number + 1
        if found is not None:
            return Result(target.name, done, time.monotonic() - begun, found)
    return Result(target.name, done, time.monotonic() - begun, None)


class _EnoughError(BaseException):
    """Ends a round of Hypothesis at once."""


def _round(target: Target, size: int, number: int) -> tuple[int, Found | None]:
    ran = 0
    last = b""

    @seed(number)
    @settings(
        max_examples=size,
        deadline=None,
        database=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
    )
    @given(target.inputs())
    def tried(data: bytes) -> None:
        nonlocal ran, last
        ran, last = ran + 1, data
        try:
            held(target, data)
        except HangError as late:
            # To look for a shorter one would take its time again and again.
            raise _EnoughError from late

    with little_memory():
        try:
            tried()
        except (Exception, _EnoughError) as error:  # noqa: BLE001 - whatever it is, it is the finding
            return min(ran, size), Found(last, "".join(traceback.format_exception(error)))
    return ran, None
