"""Dialogs of the Claude family, recognised by their shape at any width, whatever text they carry inside."""

from __future__ import annotations

import re

from msgspec import Struct

from nbs_fleet.drivers.base import Dialog, Option
from nbs_fleet.model import BlockedKind

_OPTION = re.compile(r"^(?P<lead>\s*(?P<cursor>❯\s+)?)(?P<key>\d{1,2})\.\s*(?P<label>\S.*)$")
_CHECK = re.compile(r"^\s*(?P<cursor>❯ )?\s*\[[ ✔x]\] (?P<label>\S.*)$")
_RULER = re.compile(r"^\s*[─╌]{8,}")
_FOREIGN = re.compile(r"^(❯|!)\xa0|^[●⏺] |^Resume this session|^\[exit ")
"""Rows that never stand below a dialog's last line: an input box, a reply, the words of an ended client."""
_TORN = re.compile(r"^([│╭╰]|[●⏺] |❯ (?!\d{1,2}\.))")
"""Rows of the client's other screens: one above a dialog's lines, no rule between, is a repaint seen half-way."""
_TAIL = 12
"""Most rows below the last line: the longest known tail is the sample of a theme in a narrow pane."""


class Shape(Struct, frozen=True):
    """One dialog: a pattern for the question just above its lines or for all its text, and one for a line's label."""

    kind: BlockedKind
    label: re.Pattern[str]
    question: re.Pattern[str] | None = None
    text: re.Pattern[str] | None = None

    def fits(self, question: str, text: str, options: tuple[Option, ...]) -> bool:
        """Whether a dialog with these words and lines is of this kind; all given patterns must be found."""
        if self.question and not self.question.search(question):
            return False
        if self.text and not self.text.search(text):
            return False
        return any(self.label.search(option.label) for option in options)


def _shape(kind: BlockedKind, label: str, *, question: str = "", text: str = "") -> Shape:
    ask, anywhere = (re.compile(pattern) if pattern else None for pattern in (question, text))
    return Shape(kind, re.compile(label), ask, anywhere)


SHAPES: tuple[Shape, ...] = (
    _shape(BlockedKind.TRUST, r"^Yes, (I trust this folder|proceed)", text=r"Accessing workspace|Do you trust|trust"),
    _shape(BlockedKind.TRUST, r"^Yes, allow external", text=r"External imports|external"),
    _shape(BlockedKind.BYPASS, r"^Yes, I accept", text=r"Bypass Permissions mode"),
    _shape(BlockedKind.MCP, r"^Use this MCP server"),
    _shape(BlockedKind.APIKEY, r"^No \(recommended\)", question=r"Do you want to use this API key"),
    _shape(BlockedKind.SETUP, r"^Dark mode"),
    _shape(BlockedKind.SETUP, r"^No, maybe later with /terminal-setup"),
    _shape(BlockedKind.LOGIN, r"account", question=r"Select login method"),
    _shape(BlockedKind.SETTINGS, r"^Fix with Claude"),
    _shape(BlockedKind.RESUME, r"^Resume full session"),
    _shape(BlockedKind.PLAN, r"^(Yes, |Tell Claude)", question=r"Would you like to proceed\?$"),
    _shape(BlockedKind.PLAN, r"^Yes", question=r"exit plan mode\??$"),
    _shape(BlockedKind.QUESTION, r"^(Chat about this|Submit answers)"),
    _shape(BlockedKind.PERMISSION, r"^Yes", question=r"^(Do you want to .*\?|Claude wants to .*|Enter plan mode\?)$"),
)
"""Tried in this order (Claude Code 2.1.197 and claudeless 0.2.2; all but RESUME captured).

The text of a dialog may hold anything, a file that is to be written for one; so a kind is told by the labels of
its lines and by the question right above them. In a low pane the title is scrolled away.
"""


def read_dialog(rows: tuple[str, ...]) -> Dialog | None:
    """The dialog that fills the end of these rows, or None.

    It has lines numbered 1, 2, .. with the cursor on one of them, and only hints below.
    """
    found = _numbered(rows)
    if found is None:
        return _checklist(rows)
    picked, cursor = found
    first = picked[0][0]
    if any(_TORN.match(row) for row in rows[:first]):
        return None
    question, text = fold(_question(rows[:first])), fold(rows[:first])
    heads = tuple(Option(_clean(match["label"]), match["key"]) for _, match in picked)
    for shape in SHAPES:
        if shape.fits(question, text, heads):
            options = heads if shape.kind is BlockedKind.QUESTION else _unwrapped(rows, picked)
            return Dialog(shape.kind, _text(rows[:first]), options, cursor)
    return None


def fold(rows: tuple[str, ...]) -> str:
    """The rows as one line, runs of blanks folded to one."""
    return " ".join(" ".join(rows).split())


def page(kind: BlockedKind, rows: tuple[str, ...]) -> Dialog:
    """A dialog without lines to choose from."""
    return Dialog(kind, _text(rows))


def _numbered(rows: tuple[str, ...]) -> tuple[list[tuple[int, re.Match[str]]], int] | None:
    """The last numbered list, as (row, match) of each line, and which of them the cursor is on."""
    picked: list[tuple[int, re.Match[str]]] = []
    for index in range(len(rows) - 1, -1, -1):
        match = _OPTION.match(rows[index])
        if match is None:
            continue
        if picked and int(match["key"]) != int(picked[-1][1]["key"]) - 1:
            break
        picked.append((index, match))
        if match["key"] == "1":
            break
    picked.reverse()
    if not picked or picked[0][1]["key"] != "1" or not _is_end(rows[picked[-1][0] + 1 :]):
        return None
    marked = [number for number, (_, match) in enumerate(picked) if match["cursor"]]
    return (picked, marked[0]) if len(marked) == 1 else None


def _checklist(rows: tuple[str, ...]) -> Dialog | None:
    """The choice among several MCP servers: boxes to tick, all of them ticked at first."""
    matches = [(index, match) for index, row in enumerate(rows) if (match := _CHECK.match(row))]
    marked = [number for number, (_, match) in enumerate(matches) if match["cursor"]]
    if len(marked) != 1 or "MCP servers found in this project" not in fold(rows[: matches[0][0]]):
        return None
    if not _is_end(rows[matches[-1][0] + 1 :]):
        return None
    options = tuple(Option(match["label"].strip()) for _, match in matches)
    return Dialog(BlockedKind.MCP, _text(rows[: matches[0][0]]), options, marked[0])


def _is_end(tail: tuple[str, ...]) -> bool:
    """Whether these rows can be what follows a dialog's last line."""
    used = [row for row in tail if row.strip()]
    return len(used) <= _TAIL and not any(_FOREIGN.match(row) for row in used)


def _question(above: tuple[str, ...]) -> tuple[str, ...]:
    """The paragraph just above the lines; it ends at a blank row or a ruler."""
    rows = list(above)
    while rows and not rows[-1].strip():
        rows.pop()
    found: list[str] = []
    while rows and rows[-1].strip() and not _RULER.match(rows[-1]):
        found.append(rows.pop())
    return tuple(reversed(found))


def _unwrapped(rows: tuple[str, ...], picked: list[tuple[int, re.Match[str]]]) -> tuple[Option, ...]:
    """The lines with labels that a narrow pane broke put together again."""
    options: list[Option] = []
    for index, match in picked:
        label, column = match["label"], len(match["lead"]) + 2
        for row in rows[index + 1 :]:
            bare = row.strip()
            indent = len(row) - len(row.lstrip())
            if not bare or indent < column or _OPTION.match(row) or bare.startswith("shift+tab to "):
                break
            label = f"{label.rstrip()} {bare}"
        options.append(Option(_clean(label), match["key"]))
    return tuple(options)


def _clean(label: str) -> str:
    return label.replace("✔", "").strip()


def _text(rows: tuple[str, ...]) -> str:
    return "\n".join(row.strip() for row in rows).strip()
