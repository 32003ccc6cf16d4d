"""The screen of GitHub Copilot CLI: an input box between two rules with a footer that tells the state, or a panel."""

from __future__ import annotations

import re

from nbs_fleet.drivers import tui
from nbs_fleet.drivers.base import Dialog, Reading, Screen
from nbs_fleet.model import AgentState, BlockedKind

_RULE = re.compile(r"^─{8,}$")
_PROMPT = re.compile(r"^[❯!](?: (?P<text>.*))?$")
_BUSY = re.compile(r"^ *[◉○◎●] (?P<what>Working\b.*?)(?: {3,}|$)")
_LOGIN = "Please use /login to sign in"

LABELS = tui.Labels(
    yes={BlockedKind.TRUST: r"^Yes$", BlockedKind.PERMISSION: r"^Yes$"},
    no={BlockedKind.TRUST: r"^No\b", BlockedKind.PERMISSION: r"^No\b"},
)
"""No line that allows more than was asked."""


def read_title(_title: str) -> Reading:
    """It is `<name> - GitHub Copilot` whatever the client does (1.0.102, measured)."""
    return Reading(AgentState.UNKNOWN)


def read_screen(screen: Screen) -> Reading:
    """What the lowest structure says (Copilot 1.0.102, measured at 80 columns).

    All that agents and tools print is indented, so a rule and a mark at column 0 are the client's own.
    """
    rows = tui.trim(screen)
    if not rows:
        return Reading(AgentState.UNKNOWN, detail="blank screen")
    found = _box(rows)
    if found is None:
        dialog = read_dialog(rows)
        if dialog is not None:
            return tui.blocked(dialog)
        return Reading(AgentState.UNKNOWN, detail=f"neither box nor dialog: {rows[-1].strip()[:60]}")
    text, above, footer = found
    working = _BUSY.match(footer)
    if working:
        return Reading(AgentState.BUSY, detail=working["what"], draft=text or None)
    if any(row.startswith(_LOGIN) for row in tui.last_paragraph(above)):
        return Reading(AgentState.BLOCKED, detail="not logged in", blocked=BlockedKind.LOGIN, draft=text or None)
    return tui.draft(text) if text else Reading(AgentState.IDLE)


def read_dialog(rows: tuple[str, ...]) -> Dialog | None:
    """The panel that these rows end in, told by its question and its lines; None for one that is not known."""
    found = tui.panel(rows)
    if found is None or any(row.strip() for row in found[1]):
        return None
    choice = tui.numbered(found[0], keyed=True)
    if choice is None:
        return None
    question = tui.fold(tui.last_paragraph(choice.above))
    if choice.has("Yes$") and question == "Do you trust the files in this folder?":
        return choice.dialog(BlockedKind.TRUST)
    if choice.has("Yes$") and choice.has("No, and tell Copilot") and question.endswith("?"):
        return choice.dialog(BlockedKind.PERMISSION)
    return None


def _box(rows: tuple[str, ...]) -> tuple[str, tuple[str, ...], str] | None:
    """What the input box holds, the rows above it, and the footer; None when something else is the lowest."""
    rules = [index for index, row in enumerate(rows) if _RULE.match(row)]
    if len(rules) < 2 or len(rows) - rules[-1] > 3:
        return None
    upper, lower = rules[-2:]
    inside = rows[upper + 1 : lower]
    first = _PROMPT.match(inside[0]) if inside else None
    if first is None:
        return None
    text = "\n".join([first["text"] or "", *(row.removeprefix("  ") for row in inside[1:])]).strip()
    return text, rows[:upper], " ".join(rows[lower + 1 :])
