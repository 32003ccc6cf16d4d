"""What the session file of Qwen Code says: turns begun and ended, and which of our words reached the model."""

from __future__ import annotations

from typing import Any

from nbs_fleet.drivers.base import Reading, Turns
from nbs_fleet.jsontext import load_object
from nbs_fleet.model import AgentState

_SHELL = "run_shell_command"
_SHELL_END = "\nProcess Group PGID: "


def read_transcript(head: str, tail: str) -> Turns:
    """Read whole lines from the start and the end of a session's file; the two may overlap (0.15.10, measured).

    No line marks a turn's end: an answer that calls no tool is one.
    """
    prompts = finished = 0
    reading, last_text = Reading(AgentState.UNKNOWN), None
    seen: set[str] = set()
    for line in (*head.split("\n"), *tail.split("\n")):
        entry = load_object(line)
        ident, kind = entry.get("uuid"), entry.get("type")
        if not isinstance(ident, str) or ident in seen:
            continue
        seen.add(ident)
        parts = _parts(entry)
        if kind == "user":
            prompts += 1
            reading = Reading(AgentState.BUSY)
        elif kind == "tool_result":
            reading = Reading(AgentState.BUSY)
        elif kind == "assistant":
            calls = any("functionCall" in part for part in parts)
            text = "".join(
                part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought")
            )
            last_text = text or last_text
            finished += not calls
            reading = Reading(AgentState.BUSY if calls else AgentState.IDLE)
    return Turns(prompts=prompts, finished=finished, reading=reading, last_text=last_text)


def spoken(entry: dict[str, Any]) -> tuple[str, ...]:
    """The texts of one line that reached the model as input.

    What a hook adds after a tool call stands at the end of the tool's result, and only that of a shell command has
    a last line of its own before it; of other tools, and of a held stop, only the hook itself can tell.
    """
    found: list[str] = []
    for part in _parts(entry):
        text, result = part.get("text"), part.get("functionResponse")
        if entry.get("type") == "user" and isinstance(text, str):
            found.append(text)
        if entry.get("type") == "tool_result" and isinstance(result, dict) and result.get("name") == _SHELL:
            response = result.get("response")
            output = response.get("output") if isinstance(response, dict) else None
            if isinstance(output, str) and _SHELL_END in output:
                found.append(output.rpartition(_SHELL_END)[2].partition("\n")[2])
    return tuple(found)


def _parts(entry: dict[str, Any]) -> list[dict[str, Any]]:
    message = entry.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
