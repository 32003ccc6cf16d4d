"""The screen of Qwen Code: an input box between two rules with a moving line above it while a turn runs, or a panel."""

from __future__ import annotations

import re

from nbs_fleet.drivers import tui
from nbs_fleet.drivers.answers import Labels
from nbs_fleet.drivers.base import Dialog, Reading, Screen
from nbs_fleet.model import AgentState, BlockedKind

_RULE = re.compile(r"^─{8,}$")
_PROMPT = re.compile(r"^[>*!](?: (?P<text>.*))?$")
_PLACEHOLDER = re.compile(r"^  ?Type your message or @path/to/file$")
_SPINNING = re.compile(rf"^{tui.SPINNER} ?(?P<what>.*)$")
_RUNNING = re.compile(r"\(.*esc to cancel\)")
_WAITING = re.compile(rf"^{tui.SPINNER} Waiting for user confirmation")

YES: Labels = {BlockedKind.PERMISSION: (r"^Yes, allow once",)}
NO: Labels = {BlockedKind.PERMISSION: (r"^No\b",)}
"""No line that allows more than was asked."""


def read_title(_title: str) -> Reading:
    """It stays the same whatever the client does (0.15.10, measured)."""
    return Reading(AgentState.UNKNOWN)


def read_screen(screen: Screen) -> Reading:
    """What the lowest structure says (Qwen Code 0.15.10, measured at 80 columns)."""
    rows = tui.trim(screen)
    if not rows:
        return Reading(AgentState.UNKNOWN, detail="blank screen")
    found = _box(rows)
    if found is None:
        dialog = read_dialog(rows)
        if dialog is not None:
            return tui.blocked(dialog)
        return Reading(AgentState.UNKNOWN, detail=f"neither box nor dialog: {rows[-1].strip()[:60]}")
    text, above = found
    working = _working(above)
    if working:
        return Reading(AgentState.BUSY, detail=working, draft=text or None)
    return tui.draft(text) if text else Reading(AgentState.IDLE)


def read_dialog(rows: tuple[str, ...]) -> Dialog | None:
    """The panel that asks, told by its question and its lines; None for one that is not known."""
    found = tui.panel(rows)
    if found is None:
        return None
    inside, below = found
    rest = [row.strip() for row in below if row.strip()]
    if not all(_WAITING.match(row) for row in rest):
        return None
    choice = tui.numbered(inside, keyed=True)
    if choice is None or not tui.fold(tui.last_paragraph(choice.above)).endswith("?"):
        return None
    return choice.dialog(BlockedKind.PERMISSION) if choice.has("Yes, allow once") else None


def _box(rows: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """What the input box holds, and the rows above it; None when something else is the lowest."""
    rules = [index for index, row in enumerate(rows) if _RULE.match(row)]
    if len(rules) < 2:
        return None
    upper, lower = rules[-2:]
    inside = rows[upper + 1 : lower]
    first = _PROMPT.match(inside[0]) if inside else None
    if first is None or any(row and not row.startswith("  ") for row in rows[lower + 1 :]):
        return None
    text = first["text"] or ""
    if _PLACEHOLDER.match(text):
        return "", rows[:upper]
    return "\n".join([text, *(row.removeprefix("  ") for row in inside[1:])]).strip(), rows[:upper]


def _working(above: tuple[str, ...]) -> str:
    """What the moving line says, joined where the pane broke it; empty when no turn runs."""
    said = _SPINNING.match(tui.fold(tui.last_paragraph(above)))
    return said["what"] if said and _RUNNING.search(said["what"]) else ""
