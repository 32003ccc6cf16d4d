"""The screen of Qwen Code: an input box between two rules with a moving line above it while a turn runs, or a panel."""

from __future__ import annotations

import re

from nbs_fleet.drivers import tui
from nbs_fleet.drivers.answers import Labels
from nbs_fleet.drivers.base import Dialog, Reading, Screen
from nbs_fleet.drivers.claude_errors import read_error
from nbs_fleet.model import AgentState, BlockedKind

_RULE = re.compile(r"^─{8,}$")
_PROMPT = re.compile(r"^[>*!](?: (?P<text>.*))?$")
_PLACEHOLDER = re.compile(r"^  ?Type your message or @path/to/file$")
_SPINNING = re.compile(rf"^{tui.SPINNER} ?(?P<what>.*)$")
_RUNNING = re.compile(r"\(.*esc to cancel\)")
_QUEUED = "Press ↑ to edit queued messages"
_ERROR = re.compile(r"^✕ \[(?P<text>API Error: .*)\]( \(Press .*)?$")
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
    text, above, footer, is_shell = found
    working = _working(above)
    if working:
        return Reading(AgentState.BUSY, detail=working, draft=text or None)
    if any(_SPINNING.match(row.strip()) for row in footer):
        return Reading(AgentState.UNKNOWN, detail=tui.fold(footer), draft=text or None)
    if is_shell:
        return Reading(AgentState.BLOCKED, detail="shell mode", blocked=BlockedKind.DRAFT, draft=text)
    return tui.draft(text) if text else _after_turn(above)


def _after_turn(above: tuple[str, ...]) -> Reading:
    """Idle, unless the last thing that happened was an error that ended the turn and that lasts."""
    failed = _ERROR.match(tui.fold(tui.last_paragraph(above)))
    if failed is None:
        return Reading(AgentState.IDLE)
    reading = read_error(failed["text"])
    lasts = reading.state in (AgentState.BLOCKED, AgentState.LIMITED)
    return reading if lasts else Reading(AgentState.IDLE, detail=reading.detail)


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


def _box(rows: tuple[str, ...]) -> tuple[str, tuple[str, ...], tuple[str, ...], bool] | None:
    """What the input box holds, the rows above and below it, and whether it is in shell mode; else None.

    Where the cursor stands behind text, a blank of no width is drawn.
    """
    rules = [index for index, row in enumerate(rows) if _RULE.match(row)]
    if len(rules) < 2:
        return None
    upper, lower = rules[-2:]
    inside = tuple(row.replace("\u200b", "").rstrip() for row in rows[upper + 1 : lower])
    first = _PROMPT.match(inside[0]) if inside else None
    if first is None or any(row and not row.startswith("  ") for row in rows[lower + 1 :]):
        return None
    text = first["text"] or ""
    if _PLACEHOLDER.match(text):
        text = ""
    else:
        text = "\n".join([text, *(row.removeprefix("  ") for row in inside[1:])]).strip()
    return text, rows[:upper], rows[lower + 1 :], inside[0].startswith("!")


def _working(above: tuple[str, ...]) -> str:
    """What the moving line says, joined where the pane broke it; empty when no turn runs. Queued texts follow it."""
    block = list(tui.last_paragraph(above))
    if block and block[-1].strip() == _QUEUED:
        return "messages are queued"
    said = _SPINNING.match(tui.fold(tuple(block)))
    return said["what"] if said and _RUNNING.search(said["what"]) else ""
