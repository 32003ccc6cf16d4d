"""The screen of any client, by patterns that a person gives: what its last row looks like in each state."""

from __future__ import annotations

import re

from msgspec import Struct

from nbs_fleet.drivers import tui
from nbs_fleet.drivers.base import Dialog, Reading, Screen
from nbs_fleet.model import AgentState, BlockedKind


class Patterns(Struct, frozen=True):
    """Regular expressions for the last row that is not blank; tried in the order blocked, ready, busy.

    `blocked`: a pattern for each kind of question. `busy` may be `.`: whatever else stands there means work.
    """

    ready: str
    busy: str = ""
    blocked: dict[BlockedKind, str] = {}


def read_screen(screen: Screen, patterns: Patterns) -> Reading:
    """What the last row says by these patterns; UNKNOWN when none of them fits."""
    rows = tui.trim(screen)
    last = rows[-1] if rows else ""
    for kind, pattern in patterns.blocked.items():
        if last and re.search(pattern, last):
            return tui.blocked(Dialog(kind, last.strip()))
    if last and re.search(patterns.ready, last):
        return Reading(AgentState.IDLE)
    if last and patterns.busy and re.search(patterns.busy, last):
        return Reading(AgentState.BUSY, detail=last.strip())
    return Reading(AgentState.UNKNOWN, detail=last.strip()[:60] or "blank screen")
