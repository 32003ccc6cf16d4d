"""The screens of claudeless where they differ from Claude Code's: placeholder, status line, frozen turns, own errors."""

from __future__ import annotations

import re

from msgspec import structs

from nbs_fleet.drivers import claude_screen
from nbs_fleet.drivers.base import Reading, Screen
from nbs_fleet.drivers.claude_errors import read_error
from nbs_fleet.drivers.claude_screen import Box
from nbs_fleet.model import AgentState

_PLACEHOLDER = re.compile(r'^Try ".*"$', re.DOTALL)
_STATUS = re.compile(r"\? for shortcuts|shift\+tab to cycle|^\s*(⏸|⏵⏵) |Press Ctrl-|Esc to clear")
_ERROR = re.compile(r"^⏺ Error: (?P<text>.*)")


_RULE = re.compile(r"^─{8,}$")
IN_BOX = "text in the input box: a draft, or a turn that runs"


def read_screen(screen: Screen) -> Reading:
    """As Claude Code's, but idle only with the status line below an empty box (claudeless 0.2.2, measured).

    A turn freezes the screen with the sent text still in the box, as a draft would look: UNKNOWN, with that text
    as `draft`. Questions and plans are not drawn at all: an empty box without status line, UNKNOWN too.
    """
    rows = claude_screen.trim(screen.rows)
    box = claude_screen.find_box(rows)
    if box is None:
        wrapped = _wrapped(rows)
        return Reading(AgentState.UNKNOWN, IN_BOX, draft=wrapped) if wrapped else claude_screen.read_screen(screen)
    if _PLACEHOLDER.match(box.text):
        box = structs.replace(box, text="")
    if box.text:
        return Reading(AgentState.UNKNOWN, detail=IN_BOX, draft=box.text)
    if not any(_STATUS.search(row) for row in box.footer):
        return Reading(AgentState.UNKNOWN, detail="no status line: a turn runs, or a dialog that is not drawn")
    return _after_turn(box)


def _wrapped(rows: tuple[str, ...] | list[str]) -> str:
    """The text of an input box whose text is longer than the pane is wide: it goes on at the left edge (measured)."""
    rules = [index for index, row in enumerate(rows) if _RULE.match(row.strip())]
    if len(rules) < 2 or rules[-1] - rules[-2] < 3 or rules[-1] < len(rows) - 3:
        return ""
    inside = rows[rules[-2] + 1 : rules[-1]]
    return "".join([inside[0][1:].lstrip("\u00a0 "), *inside[1:]]) if inside[0].startswith("❯") else ""


def _after_turn(box: Box) -> Reading:
    block = claude_screen.last_block(box.above)
    found = _ERROR.match(block[0]) if block else None
    if found is None:
        return Reading(AgentState.IDLE)
    return read_error(found["text"])
