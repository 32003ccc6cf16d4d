"""Draws the client's screen as lines of text: welcome box, conversation, spinner, input box and footer. Pure."""

from __future__ import annotations

from typing import NamedTuple

from nbs_fleet.sim.args import VERSION
from nbs_fleet.sim.cells import cut, width, wrap

NBSP = "\u00a0"
EFFORT = "● high · /effort"
QUEUE_HINT = "Press up to edit queued messages"
COMPACT_HINT = "<optional custom summarization instructions>"
_LOGO = ("▐▛███▜▌", "▝▜█████▛▘", "▘▘ ▝▝")
_LOGO_INDENT = (" ", "", "  ")
_GREETING = "Welcome back!"
_TIP = "Run /init to create a CLAUDE.md file with instructions for Claude"
_TIP_FRESH = "Ask Claude to create a new app or clone a repository"
_NEWS = ("What's new", "Check the Claude Code changelog for updates")
_MODE = {
    "plan": "⏸ plan mode on",
    "acceptEdits": "⏵⏵ accept edits on",
    "bypassPermissions": "⏵⏵ bypass permissions on",
    "dontAsk": "⏵⏵ don't ask on",
    "auto": "⏵⏵ auto mode on",
}
_DIM, _INVERSE, _OFF = "\x1b[2m", "\x1b[7m", "\x1b[0m"


class Box(NamedTuple):
    """The input box: the name in its upper rule, the draft and where the cursor is, and what replaces an empty one.

    `hint` stands behind the draft: what a command takes.
    """

    name: str | None = None
    text: str = ""
    cursor: int = 0
    ghost: str = ""
    shell: bool = False
    hint: str = ""


class Footer(NamedTuple):
    """The status line: `left` replaces its left half, `right` is a passing hint at the right."""

    mode: str = "default"
    busy: bool = False
    agents: bool = True
    shells: int = 0
    left: str | None = None
    right: str = ""
    typed: bool = False


def rule(columns: int, name: str | None = None) -> str:
    """A full-width rule; the upper one carries the session's name near its right end."""
    if not name:
        return "─" * columns
    label = f" {cut(name, max(1, columns - 6))} "
    return "─" * max(0, columns - width(label) - 2) + label + "──"


def input_lines(box: Box, columns: int) -> list[str]:
    """The lines between the two rules. The cursor is one inverted cell; an empty box may show a dim hint."""
    mark = ("!" if box.shell else "❯") + NBSP
    if not box.text:
        if box.ghost:
            return [f"{mark}{_DIM}{box.ghost}{_OFF}"]
        return [f"{mark}{_INVERSE} {_OFF}"]
    lines = wrap(box.text, columns - 4)
    before = wrap(box.text[: box.cursor], columns - 4)
    row, column = len(before) - 1, len(before[-1])
    if row < len(lines):
        line = lines[row].ljust(column + 1)
        lines[row] = f"{line[:column]}{_INVERSE}{line[column]}{_OFF}{line[column + 1 :]}"
    if box.hint:
        lines[-1] += f"{_DIM}{box.hint}{_OFF}"
    return [(mark if i == 0 else "  ") + line for i, line in enumerate(lines)]


def _status(footer: Footer) -> tuple[str, str]:
    """The left half of the status line as (mode, rest)."""
    rest = []
    if footer.busy:
        rest.append("esc to interrupt")
    if footer.agents:
        rest.append("← for agents")
    shells = count_shells(footer.shells) if footer.shells else ""
    if shells:
        rest.append("↓ to manage")
    mode = _MODE.get(footer.mode)
    if mode is None:
        head = [] if footer.busy or footer.typed or shells else ["? for shortcuts"]
        words = ([shells] if shells else []) + head + ([] if footer.typed else rest)
        return "", " · ".join(words)
    return f"{mode} · {shells}" if shells else f"{mode} (shift+tab to cycle)", "".join(f" · {word}" for word in rest)


def count_shells(count: int) -> str:
    """1 shell, 2 shells."""
    return f"{count} shell{'' if count == 1 else 's'}"


def footer_lines(footer: Footer, columns: int) -> list[str]:
    """One or two lines under the box; the right half goes to a line of its own when both do not fit."""
    inner = columns - 4
    mode, rest = _status(footer)
    if footer.left is not None:
        mode, rest = "", footer.left
    left = mode + rest
    right = footer.right
    if not left and not right:
        return []
    if not right:
        return ["  " + _squeeze(mode, rest, inner)]
    if width(left) + width(right) + 1 <= inner:
        return ["  " + left + " " * (inner - width(left) - width(right)) + right]
    return ["  " + _squeeze(mode, rest, inner), " " * max(0, columns - 2 - width(right)) + cut(right, inner)]


def _squeeze(mode: str, rest: str, inner: int) -> str:
    """The left half in `inner` cells: its tail is cut, and on very narrow panes the mode itself is."""
    if width(mode + rest) <= inner:
        return mode + rest
    if not mode or inner - width(mode) >= 4:
        return mode + cut(rest, inner - width(mode))
    room = max(1, inner - 3 if rest else inner)
    head = mode.partition(" (")[0]
    first = wrap(mode, room)[0] if width(head) <= room else mode[:room]
    return first + " " * (room - width(first)) + (" ·" if rest else "")


def bottom(box: Box, footer: Footer, columns: int) -> list[str]:
    """Rule, input, rule, footer."""
    return [rule(columns, box.name), *input_lines(box, columns), rule(columns), *footer_lines(footer, columns)]


def user_lines(text: str, columns: int) -> list[str]:
    """An echoed prompt."""
    return [("❯ " if i == 0 else "  ") + line for i, line in enumerate(wrap(text, columns - 3))]


def said_lines(text: str, columns: int, margin: int) -> list[str]:
    """A reply or the head of a tool call (margin 2), or a notice or error of the client's own (margin 10).

    A text that begins with a no-break space has that in place of the blank after the dot.
    """
    mark = "●" if text.startswith(NBSP) else "● "
    text = text.removeprefix(NBSP)
    gap = NBSP if mark == "●" else ""
    rows = wrap(text.strip("\n"), columns - margin)
    return [(mark + gap if i == 0 else "  ") + line for i, line in enumerate(rows)]


def result_lines(text: str, columns: int) -> list[str]:
    """What hangs below a line: the output of a tool or a command."""
    return [(f"  ⎿ {NBSP}" if i == 0 else "     ") + line for i, line in enumerate(wrap(text, columns - 5))]


def clock(seconds: float) -> str:
    """3s, 1m 2s."""
    whole = int(seconds)
    return f"{whole // 60}m {whole % 60}s" if whole >= 60 else f"{whole}s"


_SILENT_SECONDS = 30
"""The time of a turn is shown with its first tokens, or after so long."""


def spinner(glyph: str, verb: str, seconds: float, tokens: int) -> str:
    """The line that shows a turn at work."""
    if not tokens and seconds < _SILENT_SECONDS:
        return f"{glyph} {verb}…"
    return f"{glyph} {verb}… ({clock(seconds)}{f' · ↓ {tokens} tokens' if tokens else ''})"


def _center(text: str, room: int, *, up: bool = False) -> str:
    text = cut(text, room)
    left = (room - width(text) + up) // 2
    return " " * left + text + " " * (room - width(text) - left)


def _panel(rows: list[str], room: int, *, wide: bool) -> list[str]:
    """The left panel: the logo is centred as one block, which rounds the other way than text does."""
    lines = []
    for row in rows:
        if row in _LOGO:
            inner = _LOGO_INDENT[_LOGO.index(row)] + row
            lines.append(" " * ((room - 9 + 1) // 2) + inner)
            lines[-1] += " " * (room - width(lines[-1]))
        else:
            lines.append(_center(row, room, up=wide and row == _GREETING))
    return lines


def _place(path: str, room: int) -> str:
    """A path in so many cells: leading folders give way to an ellipsis."""
    while width(path) > room and path.count("/") > 1:
        path = "/…/" + path.removeprefix("/…").lstrip("/").partition("/")[2]
    return path


def welcome(columns: int, cwd: str, model: str, *, fresh: bool) -> list[str]:
    """The welcome box: two panels from 70 columns on, else one. `fresh`: the project is still empty."""
    head = f"╭─── Claude Code v{VERSION} "
    if columns < 70:
        inner = max(12, columns - 2)
        cwd = _place(cwd, inner - 4)
        top = head + "─" * max(0, inner + 1 - width(head)) + "╮"
        rows = ["", _GREETING, "", *_LOGO, "", model, "API Usage Billing", cwd, ""]
        return [top, *(f"│{row}│" for row in _panel(rows, inner, wide=False)), f"╰{'─' * inner}╯"]
    line = f"{model} · API Usage Billing"
    cwd = _place(cwd, 49)
    left = min(max(width(line), width(cwd)) + 6, 53)
    right = min(54, columns - left - 3)
    rows = _panel(["", _GREETING, "", *_LOGO, "", line, cwd], left, wide=True)
    tip = _TIP_FRESH if fresh else _TIP
    panel = [*wrap("Tips for getting started", right - 2), tip, "─" * (right - 2), *_NEWS]
    panel = (panel + [""] * len(rows))[: len(rows)]
    body = []
    for a, b in zip(rows, panel, strict=True):
        text = cut(b, right - 2)
        body.append(f"│{a}│ {text}{' ' * (right - 2 - width(text))} │")
    total = left + right + 3
    return [head + "─" * (total - width(head) - 1) + "╮", *body, f"╰{'─' * (total - 2)}╯"]
