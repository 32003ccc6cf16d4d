"""Dialogs of the Claude family: recognised by their shape, and answered by the label of a line, never by its place."""

from __future__ import annotations

import re

from msgspec import Struct

from nbs_fleet.drivers.base import Dialog, Option
from nbs_fleet.model import BlockedKind
from nbs_fleet.spec.team import Dialogs

CURSOR = "❯"
_OPTION = re.compile(r"^\s*(?P<cursor>❯\s+)?(?P<key>\d{1,2})\.\s+(?P<label>\S.*)$")
_HINT = re.compile(r"\b(Enter|Esc|Tab|Space|ctrl\+\w|shift\+tab|to (confirm|cancel|select|navigate|edit|continue))\b")


class Shape(Struct, frozen=True):
    """One dialog: words that stand in its text, and a label that at least one of its lines bears."""

    kind: BlockedKind
    text: re.Pattern[str]
    label: re.Pattern[str]


def _shape(kind: BlockedKind, text: str, label: str = "") -> Shape:
    return Shape(kind, re.compile(text), re.compile(label))


SHAPES: tuple[Shape, ...] = (
    _shape(BlockedKind.TRUST, r"Accessing workspace|Do you trust the files in this folder", r"^Yes, (I trust|proceed)"),
    _shape(BlockedKind.TRUST, r"external (CLAUDE\.md )?(file )?imports", r"external imports"),
    _shape(BlockedKind.BYPASS, r"Bypass Permissions mode", r"^Yes, I accept"),
    _shape(BlockedKind.MCP, r"MCP servers? (found|in)", r"MCP server"),
    _shape(BlockedKind.APIKEY, r"Do you want to use this API key", r"^Yes"),
    _shape(BlockedKind.SETUP, r"Choose the text style that looks best", r"mode"),
    _shape(BlockedKind.SETUP, r"terminal setup|/terminal-setup", r"recommended settings|terminal-setup"),
    _shape(BlockedKind.LOGIN, r"Select login method", r"account"),
    _shape(BlockedKind.SETTINGS, r"Settings (Error|Warning)", r"^(Continue|Fix with Claude)"),
    _shape(BlockedKind.RESUME, r"This session is .* old", r"^Resume "),
    _shape(BlockedKind.PLAN, r"Would you like to proceed\?", r"^(Yes|Tell Claude)"),
    _shape(BlockedKind.PLAN, r"Exit plan mode\?", r"^Yes"),
    _shape(BlockedKind.QUESTION, r"", r"^(Chat about this|Type something|Submit answers)"),
    _shape(BlockedKind.PERMISSION, r"Do you want (to|me to) |needs your permission|wants to ", r"^Yes"),
)
"""Tried in this order on the text of the dialog with its blanks folded, so that a narrow pane's line breaks don't matter."""


def read_dialog(rows: tuple[str, ...]) -> Dialog | None:
    """The dialog that fills the end of these rows, or None.

    It has numbered lines 1, 2, .. with the cursor on one of them, and below them nothing but hints.
    """
    found = _options(rows)
    if found is None:
        return None
    start, options, cursor = found
    text = fold(rows)
    for shape in SHAPES:
        if shape.text.search(text) and any(shape.label.search(option.label) for option in options):
            above = tuple(row.strip() for row in rows[:start])
            return Dialog(shape.kind, "\n".join(above).strip(), options, cursor)
    return None


def fold(rows: tuple[str, ...]) -> str:
    """The rows as one line, runs of blanks folded to one."""
    return " ".join(" ".join(rows).split())


def _options(rows: tuple[str, ...]) -> tuple[int, tuple[Option, ...], int] | None:
    """The last numbered list: index of its first row, its lines, and which one the cursor is on."""
    last = next((i for i in range(len(rows) - 1, -1, -1) if _OPTION.match(rows[i])), None)
    if last is None or not _only_hints(rows, last):
        return None
    picked: list[tuple[int, re.Match[str]]] = []
    for index in range(last, -1, -1):
        match = _OPTION.match(rows[index])
        if match is None:
            continue
        expected = int(picked[-1][1]["key"]) - 1 if picked else int(match["key"])
        if int(match["key"]) != expected:
            break
        picked.append((index, match))
        if expected == 1:
            break
    picked.reverse()
    marked = [i for i, (_, match) in enumerate(picked) if match["cursor"]]
    if int(picked[0][1]["key"]) != 1 or len(marked) != 1:
        return None
    options = tuple(Option(_clean(match["label"]), match["key"]) for _, match in picked)
    return picked[0][0], options, marked[0]


def _only_hints(rows: tuple[str, ...], last: int) -> bool:
    """Whether what follows the last line belongs to a dialog: its continuation, hints, or a sample of a theme."""
    indent = len(rows[last]) - len(rows[last].lstrip(f" {CURSOR}"))
    for row in rows[last + 1 :]:
        bare = row.strip()
        if not bare or _HINT.search(bare) or bare.startswith("╌"):
            continue
        if len(row) - len(row.lstrip()) < min(indent, 2):
            return False
    return True


def _clean(label: str) -> str:
    return label.replace("✔", "").strip()


_ACCEPT: dict[BlockedKind, tuple[str, ...]] = {
    BlockedKind.TRUST: (r"^Yes, (I trust|proceed)",),
    BlockedKind.BYPASS: (r"^Yes, I accept",),
    BlockedKind.MCP: (r"^Use this MCP server",),
    BlockedKind.APIKEY: (r"^Yes",),
    BlockedKind.SETTINGS: (r"^Continue",),
    BlockedKind.RESUME: (r"^Resume full session",),
    BlockedKind.PLAN: (
        r"^Yes, and bypass permissions",
        r"^Yes, and (auto-accept|use auto)",
        r"^Yes, manually approve",
        r"^Yes",
    ),
    BlockedKind.PERMISSION: (r"^Yes$", r"^Yes\b(?!.*(always|don't ask|allow all))"),
}
"""Labels that carry out `accept` or `approve`, the wished ones first. Never a line that allows more than was asked."""

_DENY: dict[BlockedKind, tuple[str, ...]] = {
    BlockedKind.TRUST: (r"^No, exit",),
    BlockedKind.BYPASS: (r"^No, exit",),
    BlockedKind.MCP: (r"^Continue without",),
    BlockedKind.APIKEY: (r"^No\b",),
    BlockedKind.PERMISSION: (r"^No(?!t |w )",),
}


def choose(dialog: Dialog, policy: Dialogs) -> int | None:
    """The index of the line that the policy asks for; None when a person must choose."""
    wish = getattr(policy, dialog.kind.value, "ask")
    if dialog.kind is BlockedKind.QUESTION or wish == "ask":
        return None
    table = _DENY if wish == "deny" else _ACCEPT
    for pattern in table.get(dialog.kind, ()):
        for index, option in enumerate(dialog.options):
            if re.search(pattern, option.label):
                return index
    return None


def answer(dialog: Dialog, policy: Dialogs) -> tuple[str, ...] | None:
    """Keys for a client that takes a digit at once (Claude Code 2.1.197, measured on every dialog)."""
    if dialog.kind is BlockedKind.SETUP:
        return ("Enter",) if policy.setup == "accept" else None
    index = choose(dialog, policy)
    if index is None:
        return None
    key = dialog.options[index].key
    return (key,) if key else walk(dialog, index)


def walk(dialog: Dialog, index: int) -> tuple[str, ...] | None:
    """Arrow keys from the cursor to a line, then Enter; None when the cursor is not known."""
    if dialog.cursor is None:
        return None
    steps = index - dialog.cursor
    return (*(("Down",) if steps > 0 else ("Up",)) * abs(steps), "Enter")
