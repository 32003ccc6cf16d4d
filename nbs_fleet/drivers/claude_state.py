"""What Claude Code says of itself outside its screen: the state file of each process, and the pane title."""

from __future__ import annotations

from typing import Any

from nbs_fleet.drivers.base import Reading, StateFile
from nbs_fleet.jsontext import load_object
from nbs_fleet.model import AgentState, BlockedKind

_WAITING: dict[str, BlockedKind] = {"sandbox request": BlockedKind.PERMISSION}
"""What `waitingFor` names for certain; `permission prompt` covers permission, plan and question alike."""

_IDLE_MARK = "✳"
DIGITS = 20
"""More digits than any number of a process or a time has."""
LAST_STAMP = 32_503_680_000_000
"""The year 3000, in milliseconds."""
_BRAILLE = range(0x2800, 0x2900)


def read_state_file(text: str) -> StateFile | None:
    """Parse `sessions/<pid>.json` of Claude Code 2.1.197 (undocumented; measured); None if it is not one.

    The caller must compare `pid` and `start` with the living process: the file stays after SIGKILL.
    A waiting client gives BLOCKED without a kind where the file can't tell which dialog is up.
    """
    data = load_object(text)
    pid, session = data.get("pid"), data.get("sessionId")
    if not isinstance(pid, int) or isinstance(pid, bool):
        return None
    stamp = data.get("statusUpdatedAt", data.get("updatedAt"))
    return StateFile(
        pid=pid,
        start=_number(data.get("procStart")),
        session_id=session if isinstance(session, str) else None,
        reading=_reading(data),
        at=_seconds(stamp),
    )


def read_title(title: str) -> Reading:
    """A moving braille mark means busy; `✳` means only "no turn runs", so it is UNKNOWN: a dialog shows it too.

    Other titles are not the client's (Claude Code 2.1.197, measured; none is set while a startup dialog is up).
    """
    mark, _, name = title.strip().partition(" ")
    if len(mark) == 1 and ord(mark) in _BRAILLE:
        return Reading(AgentState.BUSY, detail="working", title=name or None)
    if mark == _IDLE_MARK:
        return Reading(AgentState.UNKNOWN, detail="no turn runs", title=name or None)
    return Reading(AgentState.UNKNOWN)


def _reading(data: dict[str, Any]) -> Reading:
    status, name = data.get("status"), data.get("name")
    title = name if isinstance(name, str) else None
    match status:
        case "idle":
            return Reading(AgentState.IDLE, title=title)
        case "shell":
            return Reading(AgentState.IDLE, detail="a background shell runs", title=title)
        case "busy":
            return Reading(AgentState.BUSY, title=title)
        case "waiting":
            reason = str(data.get("waitingFor") or "")
            return Reading(AgentState.BLOCKED, detail=reason or "waiting", blocked=_WAITING.get(reason), title=title)
        case _:
            return Reading(AgentState.UNKNOWN, detail=f"status {status}" if status else "", title=title)


def _number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < DIGITS:
        return int(value)
    return None


def _seconds(stamp: object) -> float | None:
    """Milliseconds of this millennium as seconds; what is none says nothing."""
    if isinstance(stamp, int | float) and not isinstance(stamp, bool) and 0 <= stamp < LAST_STAMP:
        return stamp / 1000
    return None
