"""How a test went, as values that reports are made of."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """How one test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    FILE = "bad file"
    ENVIRONMENT = "environment"
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"


CODES = {
    Kind.PASSED: 0,
    Kind.SKIPPED: 0,
    Kind.FAILED: 1,
    Kind.FILE: 2,
    Kind.ENVIRONMENT: 3,
    Kind.TIMED_OUT: 124,
    Kind.INTERRUPTED: 130,
}
"""The exit code of a run in which this is the worst that happened."""
_WORST = (Kind.INTERRUPTED, Kind.FILE, Kind.ENVIRONMENT, Kind.FAILED, Kind.TIMED_OUT)


class Trouble(Struct, frozen=True):
    """What went wrong. `where` is `crash.test.yaml:12` or empty; `wanted` what was expected, `saw` what was there.

    `story` has the last lines of what happened, `screens` (handle, rows) of all agents.
    """

    what: str
    where: str = ""
    wanted: str = ""
    saw: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    screens: tuple[tuple[str, tuple[str, ...]], ...] = ()


class StepDone(Struct, frozen=True):
    """One step that was made: its number from 1, what it was, where it stands, whether it went well, seconds."""

    number: int
    what: str
    where: str
    ok: bool
    seconds: float


class Outcome(Struct, frozen=True):
    """How one run of one test went."""

    name: str
    file: str
    """As it was named on the command line."""
    kind: Kind
    seconds: float
    run: int = 1
    """Which of its repetitions, from 1."""
    steps: tuple[StepDone, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    reason: str = ""
    """Why it was skipped."""
    kept: str | None = None
    """Where its artefacts are."""


def exit_code(outcomes: tuple[Outcome, ...]) -> int:
    """The exit code of the whole run: that of the worst that happened."""
    kinds = {outcome.kind for outcome in outcomes}
    return next((CODES[kind] for kind in _WORST if kind in kinds), 0)
