"""What the session file of GitHub Copilot CLI says: turns begun and ended, and which of our words reached the model."""

from __future__ import annotations

from typing import Any

from nbs_fleet.drivers.base import Reading, Turns
from nbs_fleet.jsontext import load_object
from nbs_fleet.model import AgentState

_WORKING = ("user.message", "assistant.turn_start", "tool.execution_start", "tool.execution_complete")


def read_transcript(head: str, tail: str) -> Turns:
    """Read whole lines from the start and the end of `events.jsonl`; the two may overlap (1.0.102, measured).

    Each request to the model is a turn of its own there; the agent's turn ends with one that calls no tool.
    """
    prompts = finished = 0
    reading, last_text, calls = Reading(AgentState.UNKNOWN), None, False
    seen: set[str] = set()
    for line in (*head.split("\n"), *tail.split("\n")):
        entry = load_object(line)
        ident, data, kind = entry.get("id"), entry.get("data"), entry.get("type")
        if not isinstance(ident, str) or ident in seen or not isinstance(data, dict):
            continue
        seen.add(ident)
        if kind == "assistant.message":
            calls = bool(data.get("toolRequests"))
            last_text = data["content"] if isinstance(data.get("content"), str) and data["content"] else last_text
        if kind in _WORKING:
            prompts += kind == "user.message"
            reading = Reading(AgentState.BUSY)
        elif kind == "assistant.turn_end" and not calls:
            finished += 1
            reading = Reading(AgentState.IDLE)
        elif kind == "session.error":
            reading = Reading(AgentState.IDLE, detail=f"error: {data.get('message')}")
    return Turns(prompts=prompts, finished=finished, reading=reading, last_text=last_text)


def spoken(entry: dict[str, Any]) -> tuple[str, ...]:
    """The texts of one line that reached the model as input.

    A user's message, with what a hook added to it, and what a hook added to a tool's result; the result itself is
    told apart by `detailedContent`, which is the result alone (1.0.102, measured). What a hook says before a tool
    call leaves no trace there.
    """
    data = entry.get("data")
    if not isinstance(data, dict):
        return ()
    if entry.get("type") == "user.message":
        text = data.get("transformedContent") or data.get("content")
        return (text,) if isinstance(text, str) else ()
    result = data.get("result")
    if entry.get("type") == "tool.execution_complete" and isinstance(result, dict):
        whole, alone = result.get("content"), result.get("detailedContent")
        if isinstance(whole, str) and isinstance(alone, str) and whole.startswith(alone):
            return (whole[len(alone) :],)
    return ()
