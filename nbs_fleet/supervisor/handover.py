"""As an agent's context fills up: when it is told, when it hands over to a fresh session, when a person is called. Pure."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.plan.types import Filling
from nbs_fleet.spec.team import ContextRules


class Turn(StrEnum):
    """What is to be done for one agent."""

    WARN = "warn"
    ASK = "ask"
    """Ask it to write its handover."""
    BEGIN = "begin"
    """Its handover is there: begin a fresh session with it."""
    CALL = "call"
    """It does not write it: a person is needed."""


class Sight(Struct, frozen=True):
    """One agent now: session, tokens of its context (0: not known), whether it rests, and when the file was written."""

    session: str
    context: int
    resting: bool
    written: float | None = None


def step(filling: Filling, rules: ContextRules, sight: Sight, now: float) -> tuple[Filling, tuple[Turn, ...]]:
    """What follows at wall second `now`. Each threshold acts once, until the context has been below it again.

    A context that nobody knows (just compacted) changes nothing; another session begins with nothing.
    """
    if sight.session != filling.session:
        filling = Filling(sight.session)
    if filling.asked is not None:
        return _handing_over(filling, rules, sight, now)
    if not sight.context:
        return filling, ()
    share = 100 * sight.context / rules.limit
    reached = [mark for mark in (rules.warn, rules.handover) if mark is not None and share >= mark]
    new = {mark for mark in reached if mark > filling.mark}
    filling = replace(filling, mark=max(reached, default=0))
    if rules.handover in new:
        return replace(filling, asked=now), (Turn.ASK,)
    return filling, ((Turn.WARN,) if new else ())


def _handing_over(filling: Filling, rules: ContextRules, sight: Sight, now: float) -> tuple[Filling, tuple[Turn, ...]]:
    asked = filling.asked or 0.0
    if sight.written is not None and sight.written >= asked and sight.resting:
        return replace(filling, asked=None, late=False), (Turn.BEGIN,)
    if now >= asked + rules.timeout and not filling.late:
        return replace(filling, late=True), (Turn.CALL,)
    return filling, ()


def due(filling: Filling, rules: ContextRules) -> float | None:
    """The wall second at which a handover that was asked for is late."""
    if filling.asked is None or filling.late:
        return None
    return filling.asked + rules.timeout


def let_go(filling: Filling) -> Filling:
    """A person lets it go on as it is: no handover any more, until the context has been below the mark again."""
    return replace(filling, asked=None, late=False)
