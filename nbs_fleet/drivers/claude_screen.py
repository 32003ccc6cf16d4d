"""The screen of the Claude family, read from the bottom: an input box with its footer, or a dialog in its place."""

from __future__ import annotations

import re

from msgspec import Struct

from nbs_fleet.drivers import claude_dialogs
from nbs_fleet.drivers.base import Dialog, Reading, Screen
from nbs_fleet.model import AgentState, BlockedKind

_RULE = re.compile(r"^─{3,}( [^─]+ ─+)?$|^─+ [^─]+ ─+$")
_PROMPT = re.compile(r"^[❯!](?:\xa0(?P<text>.*))?$")
_QUEUED = "Press up to edit queued messages"
_SPINNER = re.compile(r"^[·✢✳✶✻✽*] (?P<what>\S.*)$")
_STILL = re.compile(r"^● (?P<what>\S[^.…]*…)( \(.*)?$")
_PAST = re.compile(r"^\S+ for (\d+[hms] ?)+( ·.*)?$")
_WORKING = re.compile(r"…|Retrying in |Waiting for \d+ background agent")
_INTERRUPT = re.compile(r"(^|[ ·])esc to (interrupt|…|i\w*…)")
_BESIDE = re.compile(r"^\s+(❯ |⎿|◻|◼|✔|☐|☒|●\s\S+ · /effort|\d+ tasks? \(|\S+ [▰▱])|^\s*[▰▱]+")
"""Rows between the spinner and the box: queued messages, tips, tasks, progress, the effort mark of the fullscreen view."""

_ERRORS: tuple[tuple[re.Pattern[str], AgentState, BlockedKind | None], ...] = (
    (
        re.compile(r"Please run /login|Invalid API key|OAuth (token|session) .*expired|Not logged in"),
        AgentState.BLOCKED,
        BlockedKind.LOGIN,
    ),
    (
        re.compile(r"rate limit|\(429\)|usage limit|hit your .*limit|529|[Oo]verloaded|Credit balance"),
        AgentState.LIMITED,
        None,
    ),
    (re.compile(r""), AgentState.UNKNOWN, None),
)
"""What the text of an error means for the agent; the last line is for all other errors."""

_REPLY_ERROR = re.compile(
    r"^● (API Error\b|Please run /login|Unable to connect to API|Credit balance|.*usage limit reached)"
)
_NOTE_ERROR = re.compile(
    r"^\s+⎿\s+(API Error\b|Invalid API key|Please run /login|Prompt is too long|Context limit reached"
    r"|Credit balance|Not logged in|OAuth |.*usage limit reached|You've hit your )"
)


class Box(Struct, frozen=True):
    """The input box: what it holds, the rows above it and the footer below."""

    text: str
    above: tuple[str, ...]
    footer: tuple[str, ...]
    mode: str = ""


def read_screen(screen: Screen) -> Reading:
    """What the lowest structure on the screen says; UNKNOWN for all that is neither box nor known dialog.

    The client draws its rules at column 0; whatever tools, models and people print is indented, so text that
    only looks like a dialog can't be taken for one while the box stands below it (Claude Code 2.1.197, measured
    at 30 to 120 columns).
    """
    rows = trim(screen.rows)
    if not rows:
        return Reading(AgentState.UNKNOWN, detail="blank screen")
    box = find_box(rows)
    return _read_rest(rows) if box is None else read_box(box)


def find_box(rows: tuple[str, ...]) -> Box | None:
    """The input box between the last two rules, if that is what they enclose."""
    rules = _rules(rows)
    if len(rules) < 2:
        return None
    upper, lower = rules[-2], rules[-1]
    inside = rows[upper + 1 : lower]
    first = _PROMPT.match(inside[0]) if inside else None
    if first is None:
        return None
    lines = (first["text"] or "", *(row.removeprefix("  ") for row in inside[1:]))
    mode = "shell" if inside[0].startswith("!") else ""
    return Box("\n".join(lines).strip(), rows[:upper], rows[lower + 1 :], mode)


def read_box(box: Box) -> Reading:
    """State of a client that shows its input box."""
    if any(row.startswith("Resume this session with:") for row in box.footer):
        return Reading(AgentState.UNKNOWN, detail="the client has ended")
    working = _working(box)
    draft = None if box.text in ("", _QUEUED) else box.text
    if working is not None:
        state = AgentState.COMPACTING if working.startswith("Compacting") else AgentState.BUSY
        return Reading(state, detail=working, draft=draft)
    if box.text == _QUEUED:
        return Reading(AgentState.BUSY, detail="messages are queued")
    footer = claude_dialogs.fold(box.footer)
    if "Not logged in" in footer:
        return Reading(AgentState.BLOCKED, detail="not logged in", blocked=BlockedKind.LOGIN, draft=draft)
    if draft is not None or box.mode:
        return Reading(AgentState.BLOCKED, detail="text in the input box", blocked=BlockedKind.DRAFT, draft=draft or "")
    return _after_turn(box)


def _working(box: Box) -> str | None:
    """What the client is doing, by the line above the box or the footer; None when no turn runs."""
    interrupt = any(_INTERRUPT.search(row) for row in box.footer)
    last = next((row for row in reversed(box.above) if row.strip() and not _BESIDE.match(row)), "")
    spinner = _SPINNER.match(last)
    if spinner and not _PAST.match(spinner["what"]) and _WORKING.search(spinner["what"]):
        return spinner["what"]
    still = _STILL.match(last)
    if still and (interrupt or (still[2] or "").startswith(" (")):
        return last[2:]
    return "esc to interrupt" if interrupt else None


def _after_turn(box: Box) -> Reading:
    """Idle, unless the last thing that happened was an error that ended the turn."""
    block = last_block(box.above)
    if block and _REPLY_ERROR.match(block[0]):
        return error_reading(claude_dialogs.fold(block)[2:])
    if block and block[0].startswith("❯ "):
        for index, row in enumerate(block):
            if _NOTE_ERROR.match(row):
                return error_reading(claude_dialogs.fold(block[index:]).lstrip("⎿ "))
    if any("⎿" in row and "Interrupted ·" in row for row in block):
        return Reading(AgentState.IDLE, detail="interrupted")
    return Reading(AgentState.IDLE)


def last_block(above: tuple[str, ...]) -> tuple[str, ...]:
    """The last paragraph above the box that is not a turn's summary, tasks or hints."""
    rows = list(above)
    while rows:
        row = rows[-1]
        spinner = _SPINNER.match(row)
        done = spinner is not None and _PAST.match(spinner["what"])
        if row.strip() and not done and not (_BESIDE.match(row) and "⎿" not in row):
            break
        rows.pop()
    block: list[str] = []
    while rows and rows[-1].strip():
        block.append(rows.pop())
    return tuple(reversed(block))


def error_reading(text: str) -> Reading:
    for pattern, state, blocked in _ERRORS:
        if pattern.search(text):
            return Reading(state, detail=f"error: {text}", blocked=blocked)
    return Reading(AgentState.UNKNOWN, detail=f"error: {text}")


def _read_rest(rows: tuple[str, ...]) -> Reading:
    """A dialog, a start-up page, or nothing known. A question is cut in two by a rule, so one more is tried."""
    rules = _rules(rows)
    for start in (*(index + 1 for index in reversed(rules[-2:])), 0):
        dialog = claude_dialogs.read_dialog(rows[start:])
        if dialog is not None:
            return blocked(dialog)
        if start == 0 or len(rules) == 0:
            break
    region = rows[rules[-1] + 1 :] if rules else rows
    return _page(region)


def blocked(dialog: Dialog) -> Reading:
    """The reading of an open dialog."""
    return Reading(AgentState.BLOCKED, detail=dialog.kind.value, blocked=dialog.kind, dialog=dialog)


def _page(region: tuple[str, ...]) -> Reading:
    """Full pages without numbered lines."""
    text = claude_dialogs.fold(region)
    last = next((row.strip() for row in reversed(region) if row.strip()), "")
    if last.startswith("Press Enter to continue") and "Security notes:" in text:
        return blocked(Dialog(BlockedKind.SETUP, "\n".join(region).strip()))
    if re.search(r"Paste code here if prompted|Login successful\. Press Enter", text):
        return blocked(Dialog(BlockedKind.LOGIN, "\n".join(region).strip()))
    head = next((row.strip() for row in region if row.strip()), "")
    if head == "Resume session":
        return blocked(Dialog(BlockedKind.RESUME, "\n".join(region).strip()))
    return Reading(AgentState.UNKNOWN, detail=f"neither box nor dialog: {head[:60]}")


def _rules(rows: tuple[str, ...]) -> list[int]:
    return [index for index, row in enumerate(rows) if _RULE.match(row)]


def trim(rows: tuple[str, ...]) -> tuple[str, ...]:
    """The rows without blanks at their ends and blank rows at the bottom; the box's own NBSP stays irrelevant."""
    end = len(rows)
    while end and not rows[end - 1].strip():
        end -= 1
    return tuple(row.rstrip() for row in rows[:end])
