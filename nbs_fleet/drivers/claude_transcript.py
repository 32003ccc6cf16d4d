"""What a Claude Code transcript says: turns begun and ended, and whether one runs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from nbs_fleet.drivers.base import Reading, Turns
from nbs_fleet.drivers.claude_errors import read_error
from nbs_fleet.jsontext import load_object
from nbs_fleet.model import AgentState

_INTERRUPTED = "[Request interrupted by user"
_UNKNOWN = re.compile(r"Unknown (?:slash )?(?:command|skill): /?([\w:.-]*\w)")
"""Today's words for a typed command that is not there (2.1.197, measured), and those of earlier releases."""
_COMMAND = ("<command-name>", "<local-command-", "<bash-input>", "<bash-stdout>", "<bash-stderr>")


def read_transcript(head: str, tail: str) -> Turns:
    """Read whole lines from the start and the end of a session's file; the two may overlap.

    Lines that are not JSON (cut at either end) are skipped. With a gap between head and tail the counts are
    lower bounds. `turn_duration` ends a turn (Claude Code 2.1.197, measured, like all of the following). A
    permission dialog looks like a running tool here, and so does a prompt that Esc took back before any output:
    BUSY may also mean blocked or idle. The file is written about 0.1 s late, and the first turn's lines
    out of order.
    """
    records = _in_time((*_records(head), *_records(tail)))
    prompts = finished = 0
    reading, last_text = Reading(AgentState.UNKNOWN), None
    refused: tuple[str, float] | None = None
    for record in records:
        prompts += _is_prompt(record)
        finished += _ends_turn(record)
        reading = _after(record, reading)
        last_text = _assistant_text(record) or last_text
        refused = _refused(record) or refused
    name, at = refused or (None, 0.0)
    return Turns(prompts, finished, reading, last_text, refused=name, refused_at=at)


def read_finished(head: str, tail: str) -> Turns:
    """Counts for a client that writes each turn when it is over and marks no end: an answered prompt is a turn."""
    prompts = finished = 0
    open_prompt, last_text = False, None
    for record in _in_time((*_records(head), *_records(tail))):
        if _is_prompt(record):
            prompts, open_prompt = prompts + 1, True
        text = _assistant_text(record)
        if text and open_prompt:
            finished, open_prompt = finished + 1, False
        last_text = text or last_text
    return Turns(prompts=prompts, finished=finished, last_text=last_text)


def _records(text: str) -> Iterable[dict[str, Any]]:
    for line in text.split("\n"):
        if record := load_object(line):
            yield record


def _in_time(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines that bear an id, each once, by their timestamps; one without takes that of the line before."""
    seen: set[str] = set()
    dated: list[tuple[str, dict[str, Any]]] = []
    stamp = ""
    for record in records:
        ident, when = record.get("uuid"), record.get("timestamp")
        if not isinstance(ident, str) or ident in seen:
            continue
        seen.add(ident)
        stamp = when if isinstance(when, str) else stamp
        dated.append((stamp, record))
    return [record for _, record in sorted(dated, key=lambda pair: pair[0])]


def _after(record: dict[str, Any], before: Reading) -> Reading:
    """The reading once this line is written."""
    if record.get("isSidechain"):
        return before
    match record.get("type"):
        case "user":
            return _after_user(record, before)
        case "assistant":
            return _after_assistant(record)
        case "system" if record.get("subtype") == "turn_duration":
            return Reading(AgentState.IDLE) if before.state is AgentState.BUSY else before
        case "system" if record.get("subtype") == "compact_boundary":
            return Reading(AgentState.IDLE, detail="compacted") if before.state is AgentState.UNKNOWN else before
        case _:
            return before


def _after_user(record: dict[str, Any], before: Reading) -> Reading:
    text = _text(record)
    if text.startswith(_INTERRUPTED):
        return Reading(AgentState.IDLE, detail="interrupted")
    if record.get("isMeta") or record.get("isCompactSummary") or text.startswith(_COMMAND):
        return before
    return Reading(AgentState.BUSY, detail="tool result" if _blocks(record, "tool_result") else "prompt")


def _after_assistant(record: dict[str, Any]) -> Reading:
    if record.get("isApiErrorMessage"):
        return read_error(_text(record), str(record.get("error") or ""))
    tools = _blocks(record, "tool_use")
    if tools:
        return Reading(AgentState.BUSY, detail=str(tools[-1].get("name") or "tool"))
    reason = _message(record).get("stop_reason")
    if reason == "tool_use":
        return Reading(AgentState.BUSY, detail="tool")
    return Reading(AgentState.IDLE)


def _refused(record: dict[str, Any]) -> tuple[str, float] | None:
    """The command that the client says it does not know, and when: its own line, which no model can write."""
    if record.get("type") != "system" or record.get("subtype") != "informational":
        return None
    found = _UNKNOWN.match(str(record.get("content") or ""))
    try:
        at = datetime.fromisoformat(str(record.get("timestamp"))).timestamp()
    except ValueError:
        return None
    return (found[1], at) if found else None


def _is_prompt(record: dict[str, Any]) -> bool:
    if record.get("type") != "user" or record.get("isMeta") or record.get("isSidechain"):
        return False
    if record.get("isCompactSummary") or _blocks(record, "tool_result"):
        return False
    text = _text(record)
    return bool(text) and not text.startswith((_INTERRUPTED, *_COMMAND))


def _ends_turn(record: dict[str, Any]) -> bool:
    return record.get("type") == "system" and record.get("subtype") == "turn_duration"


def _assistant_text(record: dict[str, Any]) -> str | None:
    if record.get("type") != "assistant" or record.get("isSidechain"):
        return None
    return _text(record) or None


def _message(record: dict[str, Any]) -> dict[str, Any]:
    message = record.get("message")
    return message if isinstance(message, dict) else {}


def _blocks(record: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = _message(record).get("content")
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and block.get("type") == kind]


def _text(record: dict[str, Any]) -> str:
    content = _message(record).get("content")
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text") or "") for block in _blocks(record, "text"))
