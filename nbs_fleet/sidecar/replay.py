"""Replays a story: the recorded events through the deciding code of today, compared with what was decided then. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from nbs_fleet.jsontext import seconds
from nbs_fleet.model import Moment
from nbs_fleet.sidecar.actions import Event
from nbs_fleet.sidecar.decide import decide
from nbs_fleet.sidecar.mind import Mind

MIND, DECIDED, SEEN = "mind", "decided", "seen"
"""What a line holds: all that a sidecar knew then; an event with the actions it led to; one that led to none."""


class Difference(Struct, frozen=True):
    """A line (counted from 1) that comes out otherwise. `now`: why not, where it can't be replayed at all."""

    line: int
    at: float
    event: str
    then: tuple[Any, ...]
    now: tuple[Any, ...] | str


class Replayed(Struct, frozen=True):
    """How many decisions were replayed, how many have no beginning to start from, and what came out otherwise."""

    decisions: int
    headless: int
    differences: tuple[Difference, ...]


def replay(story: Iterable[dict[str, Any]]) -> Replayed:
    """Decide on everything in the lines of an agent's story once more.

    The lines before the first `mind` can't be replayed: what was known then went with an older segment.
    """
    mind: Mind | None = None
    decisions = headless = 0
    differences: list[Difference] = []
    for number, line in enumerate(story, 1):
        what = line.get("what")
        if what == MIND:
            mind = _mind(line)
        elif what in (DECIDED, SEEN) and mind is None:
            headless += 1
        elif what in (DECIDED, SEEN) and mind is not None:
            then = _actions(line)
            try:
                event = msgspec.convert(line["event"], Event)
                moment = Moment(float(line["wall"]), float(line["mono"]))
            except (msgspec.ValidationError, KeyError, TypeError, ValueError, OverflowError) as error:
                differences.append(Difference(number, _at(line), _name(line), then, f"can't be read: {error}"))
                # Whatever follows rests on it.
                mind = None
                continue
            decisions += 1
            mind, actions = decide(mind, event, moment)
            # As a story has them: what was a tuple is a list there.
            now = tuple(msgspec.json.decode(msgspec.json.encode(actions)))
            if now != then:
                differences.append(Difference(number, _at(line), _name(line), then, now))
    return Replayed(decisions, headless, tuple(differences))


def _mind(line: dict[str, Any]) -> Mind | None:
    try:
        return msgspec.convert(line.get("mind"), Mind)
    except msgspec.ValidationError:
        # Of a version with other words: what follows has no beginning.
        return None


def _actions(line: dict[str, Any]) -> tuple[Any, ...]:
    given = line.get("actions")
    return tuple(given) if isinstance(given, list | tuple) else ()


def _at(line: dict[str, Any]) -> float:
    return seconds(line.get("at"))


def _name(line: dict[str, Any]) -> str:
    event = line.get("event")
    return str(event.get("type", "?")) if isinstance(event, dict) else "?"
