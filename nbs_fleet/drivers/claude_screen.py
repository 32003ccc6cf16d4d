"""The screen of the Claude family, read from the bottom: an input box with its footer, or a dialog in its place."""

from __future__ import annotations

import re

from msgspec import Struct

from nbs_fleet.drivers import claude_dialogs
from nbs_fleet.drivers.base import Dialog, Reading, Screen
from nbs_fleet.drivers.claude_errors import read_error
from nbs_fleet.model import AgentState, BlockedKind

_RULE = re.compile(r"^─+$")
_ANY_RULE = re.compile(r"^─{3,}( .* ─+)?$")
_PROMPT = re.compile(r"^[❯!](?:\xa0(?P<text>.*)| (?P<queued>Press up to edit queued .*))?$")
"""A no-break space follows the mark; a narrow pane pushes it behind the placeholder of a queue."""
_QUEUED = re.compile(r"^Press up to edit queued (mes.*…|messages)$")
_SPINNER = re.compile(r"^[·✢✳✶✻✽*](?: (?P<what>\S.*))?$")
_STILL = re.compile(r"^● (?P<what>\S[^.…]*…)(?P<time> \(\d+[smh].*)?$")
_PAST = re.compile(r"^\S+ for (\d+[hms] ?)+( ·.*)?$")
_WORKING = re.compile(r"…|Retrying in |Waiting for \d+ background agent")
_RETRYING = re.compile(r"Retrying in \d+\w* ·.* attempt \d")
_INTERRUPT = re.compile(r"(^|[ ·])esc to (interrupt|…|i\w*…)")
_BESIDE = re.compile(r"^\s+(❯ |⎿|◻|◼|✔|☐|☒|●\s\S+ · /effort|\d+ tasks? \(|\S+ [▰▱])|^\s*[▰▱]+|^    ")
"""Rows between the spinner and the box: queued messages, tips, tasks, progress, their continuations."""

_REPLY_ERROR = re.compile(
    r"^● (API Error\b|Please run /login|Unable to connect to API|Credit balance|.*usage limit reached)"
)
_NOTE_ERROR = re.compile(
    r"^\s+⎿\s+(API Error\b|Invalid API key|Please run /login|Prompt is too long|Context limit reached"
    r"|Credit balance|Not logged in|OAuth |.*usage limit reached|You've hit your )"
)


class Box(Struct, frozen=True):
    """The input box: what it holds, the rows above it and the footer below; `shell`: what is typed goes to a shell."""

    text: str
    above: tuple[str, ...]
    footer: tuple[str, ...]
    shell: bool = False


def read_screen(screen: Screen) -> Reading:
    """What the lowest structure on the screen says; UNKNOWN for all that is neither box nor known dialog.

    The client draws its rules and its box at column 0; whatever tools, models and people print is indented, so
    text that only looks like a dialog can't be taken for one while the box stands below it (Claude Code 2.1.197,
    measured at 30 to 120 columns).
    """
    rows = trim(screen.rows)
    if not rows:
        return Reading(AgentState.UNKNOWN, detail="blank screen")
    box = find_box(rows)
    return _read_rest(rows) if box is None else read_box(box)


def trim(rows: tuple[str, ...]) -> tuple[str, ...]:
    """The rows without blanks at their ends and without blank rows at the bottom."""
    end = len(rows)
    while end and not rows[end - 1].strip():
        end -= 1
    return tuple(row.rstrip() for row in rows[:end])


def find_box(rows: tuple[str, ...]) -> Box | None:
    """The input box, if one is the lowest structure: its mark at column 0, a rule right above, a rule below.

    The upper rule may end in the session's name; where that does not fit, it is broken over several rows, and a
    rest of it follows the lower rule.
    """
    start = next((i for i in range(len(rows) - 1, 0, -1) if _PROMPT.match(rows[i])), None)
    if start is None or not rows[start - 1].endswith("─"):
        return None
    end = next((i for i in range(start + 1, len(rows)) if _RULE.match(rows[i])), None)
    if end is None or any(row and not row.startswith("  ") for row in rows[start + 1 : end]):
        return None
    upper = start - 1
    if len(rows[upper]) < len(rows[end]):
        while upper > 0 and rows[upper - 1] and not rows[upper - 1].startswith("  "):
            upper -= 1
    below = end + 1
    while below < len(rows) and _RULE.match(rows[below]):
        below += 1
    if any(_ANY_RULE.match(row) for row in rows[below:]):
        return None  # an older frame, with something newer drawn below it
    first = _PROMPT.match(rows[start])
    text = (first["text"] or first["queued"] or "") if first else ""
    lines = (text, *(row.removeprefix("  ") for row in rows[start + 1 : end]))
    return Box("\n".join(lines).strip(), rows[:upper], rows[below:], shell=rows[start].startswith("!"))


def read_box(box: Box) -> Reading:
    """State of a client that shows its input box."""
    if any(row.startswith("Resume this session with:") for row in box.footer):
        return Reading(AgentState.UNKNOWN, detail="the client has ended")
    working = _working(box)
    queued = _QUEUED.match(box.text) is not None
    draft = None if queued or not box.text else box.text
    if working is not None:
        state = AgentState.COMPACTING if working.startswith("Compacting") else AgentState.BUSY
        return Reading(state, detail=working, draft=draft)
    if queued:
        return Reading(AgentState.BUSY, detail="messages are queued")
    if "Not logged in" in claude_dialogs.fold(box.footer):
        return Reading(AgentState.BLOCKED, detail="not logged in", blocked=BlockedKind.LOGIN, draft=draft)
    if draft is not None or box.shell:
        detail = "shell mode" if box.shell else "text in the input box"
        return Reading(AgentState.BLOCKED, detail=detail, blocked=BlockedKind.DRAFT, draft=draft or "")
    return _after_turn(box)


def _working(box: Box) -> str | None:
    """What the client is doing, by the line above the box or the footer; None when no turn runs."""
    interrupt = any(_INTERRUPT.search(row) for row in box.footer)
    block = _paragraph([row for row in box.above if not row.strip() or not _BESIDE.match(row)])
    lone = next((i for i, row in enumerate(block) if len(row) == 1 and _SPINNER.match(row)), None)
    if lone is not None:
        block = (" ".join((block[lone], claude_dialogs.fold(block[lone + 1 :]))),)
    last = block[-1] if block else ""
    if _RETRYING.search(last):
        return last.lstrip("·✢✳✶✻✽*● ")
    spinner = _SPINNER.match(last)
    if spinner and spinner["what"] and not _PAST.match(spinner["what"]) and _WORKING.search(spinner["what"]):
        return spinner["what"]
    still = _STILL.match(last)
    if still and (interrupt or still["time"]):
        return last[2:]
    return "esc to interrupt" if interrupt else None


def _paragraph(rows: list[str]) -> tuple[str, ...]:
    """The last rows without a blank one between them; takes them off `rows`."""
    while rows and not rows[-1].strip():
        rows.pop()
    found: list[str] = []
    while rows and rows[-1].strip():
        found.append(rows.pop())
    return tuple(reversed(found))


def _after_turn(box: Box) -> Reading:
    """Idle, unless the last thing that happened was an error that ended the turn."""
    block = last_block(box.above)
    if block and _REPLY_ERROR.match(block[0]):
        return read_error(claude_dialogs.fold(block)[2:])
    if block and block[0].startswith("❯ "):
        for index, row in enumerate(block):
            if _NOTE_ERROR.match(row):
                return read_error(claude_dialogs.fold(block[index:]).lstrip("⎿ "))
    if any("⎿" in row and "Interrupted ·" in row for row in block):
        return Reading(AgentState.IDLE, detail="interrupted")
    return Reading(AgentState.IDLE)


def last_block(above: tuple[str, ...]) -> tuple[str, ...]:
    """The last paragraph above the box that is not a turn's summary, nor tasks."""
    rows = list(above)
    while rows:
        spinner = _SPINNER.match(rows[-1])
        summary = spinner is not None and _PAST.match(spinner["what"] or "")
        aside = _BESIDE.match(rows[-1]) and "⎿" not in rows[-1] and not rows[-1].startswith("    ")
        if rows[-1].strip() and not summary and not aside:
            break
        rows.pop()
    return _paragraph(rows)


def _read_rest(rows: tuple[str, ...]) -> Reading:
    """A dialog, a page of its own, or nothing known.

    A dialog begins below the last rule; a question is cut in two by one, so the rule before is tried too, and
    the whole screen where the first rule may have scrolled away. A menu of a running session ends in a rule.
    """
    end = len(rows)
    while end and _ANY_RULE.match(rows[end - 1]):
        end -= 1
    rows = rows[:end]
    rules = [index for index, row in enumerate(rows) if _ANY_RULE.match(row)]
    starts = [index + 1 for index in reversed(rules[-2:])]
    for start in starts if len(rules) > 1 else (*starts, 0):
        dialog = claude_dialogs.read_dialog(rows[start:])
        if dialog is not None:
            return blocked(dialog)
    return _page(rows[rules[-1] + 1 :] if rules else rows)


def blocked(dialog: Dialog) -> Reading:
    """The reading of an open dialog."""
    return Reading(AgentState.BLOCKED, detail=dialog.kind.value, blocked=dialog.kind, dialog=dialog)


def _page(region: tuple[str, ...]) -> Reading:
    """Pages without numbered lines."""
    used = [row.strip() for row in region if row.strip()]
    head, last, text = (used[0], used[-1], claude_dialogs.fold(region)) if used else ("", "", "")
    if last.startswith("Press Enter to continue") and "Security notes:" in text:
        return blocked(claude_dialogs.page(BlockedKind.SETUP, region))
    if head == "Login" or re.search(r"Paste code here if prompted|Login successful\. Press Enter", text):
        return blocked(claude_dialogs.page(BlockedKind.LOGIN, region))
    if head == "Resume session":
        return blocked(claude_dialogs.page(BlockedKind.RESUME, region))
    return Reading(AgentState.UNKNOWN, detail=f"neither box nor dialog: {head[:60]}")
