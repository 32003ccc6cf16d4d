"""The screen and title of Codex: an input box with its footer, or a dialog; whether text streams only the title knows."""

from __future__ import annotations

import re

from nbs_fleet.drivers import tui
from nbs_fleet.drivers.answers import Labels
from nbs_fleet.drivers.base import Dialog, Reading, Screen
from nbs_fleet.model import AgentState, BlockedKind

_PROMPT = "› "
_PLACEHOLDER = "Ask Codex to do anything"
_HINT = re.compile(r"^ +(press )?enter (to )?(confirm|continue)\b", re.IGNORECASE)
_EMPTY = "? for shortcuts"
_WORKING = re.compile(r"^[•◦] .*\(((\d+[hms] ?)+) • esc to interrupt\)")
_PAST = re.compile(r"^(  Worked for |■ )")
_SPINNING = re.compile(rf"^{tui.SPINNER} (?P<name>.*)$")
_ACTION = re.compile(r"^\[ . \] Action Required\b")
_NAMED = re.compile(r"(^|\| )codex$")

YES: Labels = {BlockedKind.TRUST: (r"^Trust and continue",), BlockedKind.PERMISSION: (r"^Yes, proceed",)}
NO: Labels = {BlockedKind.TRUST: (r"^(No\b|Back to )",), BlockedKind.PERMISSION: (r"^No\b",)}
"""No line that allows more than was asked; hooks to be reviewed are a person's."""


def read_title(title: str) -> Reading:
    """The title is the best source there is: a moving mark while a turn runs, a word while a dialog waits.

    `<name> | codex` means that no turn runs (Codex 0.171.0, measured).
    """
    text = title.strip()
    spinning = _SPINNING.match(text)
    if spinning:
        return Reading(AgentState.BUSY, detail="working", title=spinning["name"])
    if _ACTION.match(text):
        return Reading(AgentState.BLOCKED, detail="action required")
    if _NAMED.search(text):
        return Reading(AgentState.IDLE, detail="no turn runs", title=text)
    return Reading(AgentState.UNKNOWN)


def read_screen(screen: Screen) -> Reading:
    """What the lowest structure says, the title beside it (Codex 0.171.0, measured at 80 columns).

    While text streams the screen looks idle: then the title decides, and without one the missing line
    `Worked for` below the last reply.
    """
    rows = tui.trim(screen)
    if not rows:
        return Reading(AgentState.UNKNOWN, detail="blank screen")
    if _HINT.match(rows[-1]):
        dialog = read_dialog(rows)
        return tui.blocked(dialog) if dialog else Reading(AgentState.UNKNOWN, detail=f"dialog: {rows[-1].strip()}")
    found = _box(rows)
    if found is None:
        return Reading(AgentState.UNKNOWN, detail=f"neither box nor dialog: {rows[-1].strip()[:60]}")
    text, above = found
    title = read_title(screen.title)
    working = _working(above)
    if working or title.state is AgentState.BUSY:
        return Reading(AgentState.BUSY, detail=working or title.detail, draft=text or None)
    if text:
        return tui.draft(text)
    if title.state is AgentState.BLOCKED:
        return Reading(AgentState.UNKNOWN, detail="the title asks for an action, the screen does not")
    if title.state is AgentState.IDLE or _is_over(above):
        return Reading(AgentState.IDLE)
    return Reading(AgentState.BUSY, detail="the last reply has no end yet")


def read_dialog(rows: tuple[str, ...]) -> Dialog | None:
    """The dialog that these rows end in, told by its question and its lines; None for one that is not known."""
    choice = tui.numbered(rows, keyed=False)
    if choice is None or len([row for row in choice.below if row.strip()]) > 1:
        return None
    text = choice.question
    if choice.has("Trust and continue") and "Trust this folder?" in text:
        return choice.dialog(BlockedKind.TRUST)
    if choice.has("Trust all and continue") and "Hooks need review" in text:
        return choice.dialog(BlockedKind.TRUST)
    if choice.has("Sign in with ChatGPT"):
        return choice.dialog(BlockedKind.LOGIN)
    if choice.has("Yes, proceed") and "Would you like to " in text:
        return _request(choice).dialog(BlockedKind.PERMISSION)
    return None


def _request(choice: tui.Choice) -> tui.Choice:
    """The choice without the conversation above its question."""
    starts = [i for i, row in enumerate(choice.above) if row.startswith("  Would you like to ")]
    return tui.Choice(choice.above[starts[-1] :], choice.options, choice.cursor, choice.below) if starts else choice


def _box(rows: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """What the input box holds and the rows above it; None when something else is the lowest."""
    start = next((i for i in range(len(rows) - 1, -1, -1) if rows[i].startswith(_PROMPT.rstrip())), None)
    if start is None or any(row and not row.startswith("  ") for row in rows[start + 1 :]):
        return None
    below = rows[start + 1 :]
    footer = tui.last_paragraph(below) if "" in below else ()
    inside = below[: len(below) - len(footer)]
    text = "\n".join([rows[start][len(_PROMPT) :], *(row[2:] for row in inside)]).strip()
    is_empty = text == _PLACEHOLDER or any(_EMPTY in row for row in footer)
    return ("" if is_empty else text), rows[:start]


def _working(above: tuple[str, ...]) -> str:
    """The line that shows a running turn, if the last paragraph begins with it."""
    block = tui.last_paragraph(above)
    return block[0][2:] if block and _WORKING.match(block[0]) else ""


def _is_over(above: tuple[str, ...]) -> bool:
    """Whether no turn was begun yet, or the last one has its closing line."""
    block = tui.last_paragraph(above)
    return bool(block and _PAST.match(block[0])) or not any(row.startswith(_PROMPT) for row in above)
