"""What the payload of a hook of the Claude family says of the agent (Claude Code 2.1.197 and claudeless 0.2.2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from nbs_fleet.drivers.base import HookNews, Reading
from nbs_fleet.drivers.claude_failures import read_failure
from nbs_fleet.jsontext import load_object
from nbs_fleet.model import AgentState, BlockedKind

_SILENT = Reading(AgentState.UNKNOWN)
_WORKING = (
    "UserPromptSubmit",
    "UserPromptExpansion",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
)
_SUBJECTS = ("command", "file_path", "path", "pattern", "url", "query", "skill", "description", "prompt")
"""Where a tool's input says what it is about, first come first served."""
DETAIL = 200
"""Most characters of a detail."""
REQUEST = 4_000
"""Most characters of what a dialog asks for."""


def read(text: str, at: float | None = None) -> HookNews | None:
    """Parse one payload; None if it is not one (cut off, other shape).

    `at` is when it was written (wall seconds): without it a reset time that is only a time of day can't be told.
    What our own hook program answered stands below `nbs`: a dialog or a stop that it dealt with blocks nobody.
    """
    data = load_object(text)
    event = data.get("hook_event_name")
    if not isinstance(event, str) or not event:
        return None
    # A dialog stands in everybody's way, whoever asked for it.
    subagent = None if event == "PermissionRequest" else _text(data, "agent_id")
    error, failed = read_failure(data, at) if event == "StopFailure" else (None, _SILENT)
    reading = failed if event == "StopFailure" else _reading(event, data)
    note = data.get("nbs")
    answered = note if isinstance(note, dict) else {}
    ids = answered.get("ids")
    return HookNews(
        event=event,
        reading=_SILENT if subagent else reading,
        session_id=_text(data, "session_id"),
        transcript=_text(data, "transcript_path"),
        prompt=_text(data, "prompt") if event == "UserPromptSubmit" else None,
        tool=_text(data, "tool_name"),
        subagent=subagent,
        error=error,
        last_text=_text(data, "last_assistant_message"),
        stop_active=data.get("stop_hook_active") is True,
        cause=_text(data, "source")
        or _text(data, "reason")
        or _text(data, "notification_type")
        or _text(data, "trigger"),
        answer=_text(answered, "answer"),
        request=_request(data) if event == "PermissionRequest" else "",
        handed=tuple(i for i in ids if isinstance(i, str)) if isinstance(ids, list) else (),
    )


def _reading(event: str, data: dict[str, Any]) -> Reading:
    if event in _WORKING:
        return Reading(AgentState.BUSY, detail=_text(data, "tool_name") or "")
    reader = _READERS.get(event)
    return reader(data) if reader else _SILENT


def _compacting(data: dict[str, Any]) -> Reading:
    return Reading(AgentState.COMPACTING, detail=_text(data, "trigger") or "")


def _compacted(data: dict[str, Any]) -> Reading:
    """A compaction by hand ends here, without a Stop; after one of the client's own the turn goes on."""
    by_hand = data.get("trigger") == "manual"
    return Reading(AgentState.IDLE if by_hand else AgentState.BUSY, detail="compacted")


def _ended(data: dict[str, Any]) -> Reading:
    return Reading(AgentState.UNKNOWN, detail=_text(data, "reason") or "")


def _stopped(data: dict[str, Any]) -> Reading:
    """Idle, unless our hook held the stop back or a background agent works on (its client then counts as busy)."""
    note = data.get("nbs")
    if isinstance(note, dict) and note.get("answer") == "block":
        return Reading(AgentState.BUSY, detail="told to go on")
    tasks = data.get("background_tasks")
    kinds = (
        [t.get("type") for t in tasks if isinstance(t, dict) and t.get("status") == "running"]
        if isinstance(tasks, list)
        else []
    )
    if "subagent" in kinds:
        return Reading(AgentState.BUSY, detail="a background agent runs")
    return Reading(AgentState.IDLE, detail="a background shell runs" if kinds else "")


def _asked(data: dict[str, Any]) -> Reading:
    tool = _text(data, "tool_name") or ""
    note = data.get("nbs")
    if isinstance(note, dict) and note.get("answer"):
        return Reading(AgentState.BUSY, detail=f"{tool}: {note['answer']} by policy")
    given = data.get("tool_input")
    tool_input = given if isinstance(given, dict) else {}
    if tool == "ExitPlanMode":
        return _blocked(BlockedKind.PLAN, _first_line(_text(tool_input, "plan") or "plan"))
    if tool == "AskUserQuestion":
        return _blocked(BlockedKind.QUESTION, _first_question(tool_input))
    subject = next((found for key in _SUBJECTS if (found := _text(tool_input, key))), "")
    return _blocked(BlockedKind.PERMISSION, f"{tool}: {_first_line(subject)}" if subject else tool)


def _request(data: dict[str, Any]) -> str:
    """What is asked for: the plan, the questions with their options, else the tool's input, one field a line."""
    given = data.get("tool_input")
    tool_input = given if isinstance(given, dict) else {}
    tool = _text(data, "tool_name") or ""
    if tool == "ExitPlanMode":
        return (_text(tool_input, "plan") or "")[:REQUEST]
    questions = tool_input.get("questions")
    if tool == "AskUserQuestion" and isinstance(questions, list):
        return "\n".join(_question(q) for q in questions if isinstance(q, dict))[:REQUEST]
    lines = [f"{key}: {value if isinstance(value, str) else json.dumps(value)}" for key, value in tool_input.items()]
    return "\n".join((tool, *lines))[:REQUEST]


def _question(question: dict[str, Any]) -> str:
    options = question.get("options")
    offered = [o for o in options if isinstance(o, dict)] if isinstance(options, list) else []
    labels = [f"  {_text(o, 'label') or ''}: {_text(o, 'description') or ''}".rstrip(": ") for o in offered]
    return "\n".join((_text(question, "question") or "", *labels))


def _notified(data: dict[str, Any]) -> Reading:
    kind, message = _text(data, "notification_type") or "", _text(data, "message") or ""
    if kind == "idle_prompt":
        return Reading(AgentState.IDLE)
    if kind == "permission_prompt":
        return _blocked(BlockedKind.PLAN if "approval for the plan" in message else BlockedKind.PERMISSION, message)
    if kind == "elicitation_dialog":
        return _blocked(BlockedKind.QUESTION, message)
    return _SILENT


_READERS: dict[str, Callable[[dict[str, Any]], Reading]] = {
    "Stop": _stopped,
    "PermissionRequest": _asked,
    "Notification": _notified,
    "PreCompact": _compacting,
    "PostCompact": _compacted,
    "SessionEnd": _ended,
}


def _blocked(kind: BlockedKind, detail: str) -> Reading:
    return Reading(AgentState.BLOCKED, detail=detail[:DETAIL], blocked=kind)


def _first_question(tool_input: dict[str, Any]) -> str:
    questions = tool_input.get("questions")
    first = questions[0] if isinstance(questions, list) and questions else None
    return _first_line((_text(first, "question") or "") if isinstance(first, dict) else "")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _text(data: dict[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) and value else None
