"""The screen of GitHub Copilot CLI: an input box between two rules with a footer that tells the state, or a panel."""

from __future__ import annotations

import re

from nbs_fleet.drivers import answers, tui
from nbs_fleet.drivers.answers import Labels
from nbs_fleet.drivers.base import Dialog, Option, Reading, Screen
from nbs_fleet.drivers.claude_errors import read_error
from nbs_fleet.model import AgentState, BlockedKind

_RULE = re.compile(r"^─{8,}$")
_PROMPT = re.compile(r"^[❯!](?: (?P<text>.*))?$")
_MOVING = re.compile(r"^ *[◉○◎●] (?P<what>\S.*?)(?: {3,}|$)")
_BAR = re.compile(r"┃$")
_FAILED = re.compile(r"^ ✗ (?P<text>(Authentication failed|Failed to get response|\d{3} |Request failed|You have ).*)")
_ASKS = " Copilot needs information."
_LINE = re.compile(r"^ (?P<cursor>❯)? +(?P<label>\S.*)$")
_HINT = re.compile(r"^ ↑/↓ select · enter accept")
_LOGIN = "Please use /login to sign in"

YES: Labels = {BlockedKind.TRUST: (r"^Yes$",), BlockedKind.PERMISSION: (r"^Yes$",)}
NO: Labels = {BlockedKind.TRUST: (r"^No\b",), BlockedKind.PERMISSION: (r"^No\b",)}
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
    moving = _MOVING.match(footer)
    if moving and moving["what"].startswith("Loading"):
        return Reading(AgentState.UNKNOWN, detail=moving["what"], draft=text or None)
    if moving:
        return Reading(AgentState.BUSY, detail=moving["what"], draft=text or None)
    if any(row.startswith(_LOGIN) for row in tui.last_paragraph(above)):
        return Reading(AgentState.BLOCKED, detail="not logged in", blocked=BlockedKind.LOGIN, draft=text or None)
    return tui.draft(text) if text else _after_turn(above)


def _after_turn(above: tuple[str, ...]) -> Reading:
    """Idle, unless the last thing that happened was an error that ended the turn and that lasts."""
    rows = tuple(_BAR.sub("", row).rstrip() for row in above[:-1])
    block = tui.last_paragraph(rows)
    failed = _FAILED.match(block[0]) if block else None
    if failed is None:
        return Reading(AgentState.IDLE)
    reading = read_error(tui.fold((failed["text"], *block[1:])))
    lasts = reading.state in (AgentState.BLOCKED, AgentState.LIMITED)
    return reading if lasts else Reading(AgentState.IDLE, detail=reading.detail)


def read_dialog(rows: tuple[str, ...]) -> Dialog | None:
    """The panel that these rows end in, told by its question and its lines; None for one that is not known."""
    question = _question(rows)
    if question is not None:
        return question
    found = tui.panel(rows)
    if found is None or any(row.strip() for row in found[1]):
        return None
    choice = tui.numbered(found[0], keyed=True)
    if choice is None:
        return None
    asked = tui.fold(tui.last_paragraph(choice.above))
    if choice.has("Yes$") and asked == "Do you trust the files in this folder?":
        return choice.dialog(BlockedKind.TRUST)
    if choice.has("Yes$") and choice.has("No, and tell Copilot") and asked.endswith("?"):
        return choice.dialog(BlockedKind.PERMISSION)
    return None


def pick(dialog: Dialog, index: int) -> tuple[str, ...] | None:
    """The keys that choose a line. The one that refuses takes a text besides, and an empty one is none: Escape."""
    if "(Esc to stop)" in dialog.options[index].label:
        return ("Escape",)
    return answers.pick(dialog, index)


def _question(rows: tuple[str, ...]) -> Dialog | None:
    """What an agent asks a person: a form between two rules, its lines without numbers."""
    if len(rows) < 3 or not _RULE.match(rows[-1]) or not _HINT.match(rows[-2]):
        return None
    rule = next((i for i in range(len(rows) - 2, -1, -1) if _RULE.match(rows[i])), None)
    if rule is None or rows[rule + 1] != _ASKS:
        return None
    lines = tui.last_paragraph(rows[rule + 1 : -2])
    head = rows[rule + 2 : -2]
    options: list[Option] = []
    cursor = None
    for row in lines:
        match = _LINE.match(row)
        if match is not None and (match["cursor"] or row.startswith("   ")):
            cursor = len(options) if match["cursor"] else cursor
            options.append(Option(match["label"]))
    chosen = {option.label for option in options}
    text = [row.strip() for row in head if row.strip().removeprefix("❯ ") not in chosen]
    return Dialog(BlockedKind.QUESTION, "\n".join(text).strip(), tuple(options), cursor)


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
