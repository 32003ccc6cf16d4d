"""The screen of any client, by patterns that a person gives: what its last rows look like in each state."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from nbs_fleet.drivers import tui
from nbs_fleet.drivers.base import Dialog, Option, Reading, Screen
from nbs_fleet.model import AgentState, BlockedKind

MOST_ROWS = 60
"""How far up a text that a narrow pane broke is followed."""
_EDGE = "│┃|║▌▐"
"""What may close a drawn input at its right."""


class Patterns(Struct, frozen=True):
    """Regular expressions for one row each, looked for in the last `rows` rows that are not blank.

    `blocked`: a pattern for each kind of question. Tried in the order blocked, busy, ready; `ready` matches what
    stands before the input, and what follows it is the draft, unless that is the `placeholder` of an empty one.
    `otherwise` is the state when nothing is found. `options` are the lines of each question, for a person.
    """

    ready: str
    busy: str = ""
    blocked: dict[BlockedKind, str] = {}
    otherwise: AgentState = AgentState.UNKNOWN
    placeholder: str = ""
    rows: int = 1
    options: tuple[Option, ...] = ()


def read_screen(screen: Screen, patterns: Patterns) -> Reading:
    """What the last rows say by these patterns."""
    rows = tuple(row for row in tui.trim(screen) if row.strip())
    if not rows:
        return Reading(AgentState.UNKNOWN, detail="blank screen")
    looked = rows[-patterns.rows :][::-1]
    for kind, pattern in patterns.blocked.items():
        for row in looked:
            if re.search(pattern, row):
                return tui.blocked(Dialog(kind, row.strip(), patterns.options))
    busy = next((row for row in looked if patterns.busy and re.search(patterns.busy, row)), None)
    text = next(_drafts(rows, screen.width, patterns), None)
    if busy is not None:
        return Reading(AgentState.BUSY, detail=busy.strip()[:60], draft=text or None)
    if text is None:
        return Reading(patterns.otherwise, detail=rows[-1].strip()[:60])
    return tui.draft(text) if text else Reading(AgentState.IDLE)


def _drafts(rows: tuple[str, ...], width: int, patterns: Patterns) -> Iterator[str]:
    """The text in the input, empty for none; nothing where there is no input.

    A text that fills its row goes on in the next one.
    """
    for end in range(len(rows), max(0, len(rows) - patterns.rows), -1):
        for start in range(end - 1, max(-1, end - 1 - MOST_ROWS), -1):
            if start < end - 1 and len(rows[start]) < width - 1:
                # A trailing blank of a full row is not captured.
                break
            # The blank before an empty input is not captured either.
            found = re.search(patterns.ready, rows[start]) or re.search(patterns.ready, rows[start] + " ")
            if found:
                yield _typed("".join((rows[start][found.end() :], *rows[start + 1 : end])), patterns.placeholder)


def _typed(text: str, placeholder: str) -> str:
    text = text.strip().rstrip(_EDGE).strip()
    return "" if placeholder and re.search(placeholder, text) else text
