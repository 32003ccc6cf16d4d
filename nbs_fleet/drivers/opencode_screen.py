"""The screen of opencode: an input box beside a thick bar with a last line that tells the state, or a request."""

from __future__ import annotations

import re

from nbs_fleet.drivers import tui
from nbs_fleet.drivers.answers import Labels
from nbs_fleet.drivers.base import Dialog, Option, Reading, Screen
from nbs_fleet.model import AgentState, BlockedKind

_BAR = re.compile(r"^ {1,}┃(?P<text>.*)$")
_EDGE = re.compile(r"^ +╹▀{8,}$")
_PLACEHOLDER = re.compile(r"^Ask anything… ")
_RUNNING = re.compile(r"^ +[⬝■]+ +esc (to )?interrupt")
_ASKS = "△ Permission required"
_CHOICES = re.compile(r"^ *(?P<labels>Allow once +Allow always +Reject)\b")

YES: Labels = {BlockedKind.PERMISSION: (r"^Allow once",)}
NO: Labels = {BlockedKind.PERMISSION: (r"^Reject",)}
"""No line that allows more than was asked; the keys are not known while the screen hides the cursor."""


def read_title(_title: str) -> Reading:
    """It carries no state (1.18.33, measured)."""
    return Reading(AgentState.UNKNOWN)


def read_screen(screen: Screen) -> Reading:
    """What the lowest structure says (opencode 1.18.33, measured at 80 columns)."""
    rows = tui.trim(screen)
    if not rows:
        return Reading(AgentState.UNKNOWN, detail="blank screen")
    edge = next((i for i in range(len(rows) - 1, -1, -1) if _EDGE.match(rows[i])), None)
    if edge is None or any(_BAR.match(row) for row in rows[edge + 1 :]):
        dialog = read_dialog(rows)
        if dialog is not None:
            return tui.blocked(dialog)
        return Reading(AgentState.UNKNOWN, detail=f"neither box nor dialog: {rows[-1].strip()[:60]}")
    # In a wide pane a column of its own stands to the right of the box (200 columns, measured).
    text = _typed(tuple(row[: len(rows[edge])].rstrip() for row in rows[:edge]))
    if any(_RUNNING.match(row) for row in rows[edge + 1 :]):
        return Reading(AgentState.BUSY, detail="esc interrupt", draft=text or None)
    if not any("ctrl+p commands" in row for row in rows[edge + 1 :]):
        return Reading(AgentState.UNKNOWN, detail="no status line below the box", draft=text or None)
    return tui.draft(text) if text else Reading(AgentState.IDLE)


def read_dialog(rows: tuple[str, ...]) -> Dialog | None:
    """The request for a permission that these rows end in; which line is marked only its colour tells."""
    said = _beside(rows)
    asks = next((i for i in range(len(said) - 1, -1, -1) if said[i].strip() == _ASKS), None)
    if asks is None:
        return None
    for index in range(asks + 1, len(said)):
        found = _CHOICES.match(said[index])
        if found:
            options = tuple(Option(label) for label in re.split(r" {2,}", found["labels"]))
            text = "\n".join(row.strip() for row in said[asks + 1 : index]).strip()
            return Dialog(BlockedKind.PERMISSION, re.sub(r"\n{2,}", "\n", text), options)
    return None


def _typed(above: tuple[str, ...]) -> str:
    """The text in the box that ends right here; its last row names the agent and the model."""
    text = "\n".join(row.strip() for row in _beside(above)[:-1]).strip()
    return "" if _PLACEHOLDER.match(text) else text


def _beside(rows: tuple[str, ...]) -> list[str]:
    """What stands beside the bar in the rows at the end."""
    found: list[str] = []
    for row in reversed(rows):
        match = _BAR.match(row)
        if match is None:
            break
        found.append(match["text"])
    return found[::-1]
