"""The screen and title of Gemini CLI: a shaded input box below a status line, or a panel; the title tells the state."""

from __future__ import annotations

import re

from nbs_fleet.drivers import tui
from nbs_fleet.drivers.answers import Labels
from nbs_fleet.drivers.base import Dialog, Reading, Screen
from nbs_fleet.model import AgentState, BlockedKind

_UPPER, _LOWER = re.compile(r"^[▄─]{8,}$"), re.compile(r"^[▀─]{8,}$")
"""The edges of the input box: shaded, or rules where the terminal is not said to have all colours (measured)."""
_RULE = re.compile(r"^─{8,}$")
_PROMPT = re.compile(r"^ [>*!](?: (?P<text>.*))?$")
_PLACEHOLDER = re.compile(r"^  ?Type your message or @path/to/file$")
_RUNNING = re.compile(rf"^ *{tui.SPINNER} |\(esc to ca")
_TITLES = {"◇": AgentState.IDLE, "✦": AgentState.BUSY, "✋": AgentState.BLOCKED}

YES: Labels = {BlockedKind.TRUST: (r"^Trust folder\b",), BlockedKind.PERMISSION: (r"^Allow once",)}
NO: Labels = {BlockedKind.TRUST: (r"^Don't trust",), BlockedKind.PERMISSION: (r"^No\b",)}
"""No line that allows more than was asked."""


def read_title(title: str) -> Reading:
    """`◇  Ready (dir)`, `✦  Working… (dir)`, `✋  Action Required (dir)` (Gemini CLI 0.61.0, measured)."""
    mark, _, rest = title.strip().partition("  ")
    state = _TITLES.get(mark, AgentState.UNKNOWN)
    return Reading(state, detail=rest if state is not AgentState.UNKNOWN else "")


def read_screen(screen: Screen) -> Reading:
    """What the lowest structure says, the title beside it (Gemini CLI 0.61.0, measured at 80 columns)."""
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
    title = read_title(screen.title)
    running = next((row.strip() for row in _status(above) if _RUNNING.search(row)), "")
    if running or title.state is AgentState.BUSY:
        return Reading(AgentState.BUSY, detail=running or title.detail, draft=text or None)
    if text:
        return tui.draft(text)
    if title.state is AgentState.BLOCKED:
        return Reading(AgentState.UNKNOWN, detail="the title asks for an action, the screen does not")
    return Reading(AgentState.IDLE)


def read_dialog(rows: tuple[str, ...]) -> Dialog | None:
    """The panel that these rows end in, told by its question and its lines; None for one that is not known."""
    found = tui.panel(rows)
    if found is None or any(row.strip() for row in found[1]):
        return None
    choice = tui.numbered(found[0], keyed=True)
    if choice is None:
        return None
    text = choice.question
    if choice.has("Trust folder") and "Do you trust the files in this folder?" in text:
        return choice.dialog(BlockedKind.TRUST)
    if choice.has("Use Gemini API Key") and "How would you like to authenticate" in text:
        return choice.dialog(BlockedKind.LOGIN)
    if choice.has("Keep loop detection enabled"):
        return choice.dialog(BlockedKind.QUESTION)
    return choice.dialog(BlockedKind.PERMISSION) if choice.has("Allow once") and "?" in text else None


def _box(rows: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """What the input box holds, and the rows above it; None when something else is the lowest.

    A message of the conversation is drawn between the same edges, but nothing follows it that begins with them.
    """
    lower = next((i for i in range(len(rows) - 1, -1, -1) if _LOWER.match(rows[i])), None)
    upper = next((i for i in range((lower or 0) - 1, -1, -1) if _UPPER.match(rows[i])), None)
    if lower is None or upper is None or upper < 2 or not _RULE.match(rows[upper - 2]):
        return None
    inside = rows[upper + 1 : lower]
    first = _PROMPT.match(inside[0]) if inside else None
    if first is None or any(row and not row.startswith(" ") for row in rows[lower + 1 :]):
        return None
    text = first["text"] or ""
    if _PLACEHOLDER.match(text):
        return "", rows[: upper - 2]
    return "\n".join([text, *(row.removeprefix("   ") for row in inside[1:])]).strip(), rows[: upper - 2]


def _status(above: tuple[str, ...]) -> tuple[str, ...]:
    """The rows right above the rule: hints, and what runs."""
    return tui.last_paragraph(above)
