"""What the session file of Codex (a rollout, JSON lines) says of turns, and which of its lines reached the model."""

from __future__ import annotations

from typing import Any

from nbs_fleet.drivers.base import Reading, Turns
from nbs_fleet.jsontext import load_object
from nbs_fleet.model import AgentState

_SPOKEN = ("user", "developer")


def read_transcript(head: str, tail: str) -> Turns:
    """Count prompts and ended turns; the last of a turn's begin and end says whether one runs (0.171.0, measured)."""
    first = head.split("\n")
    known = frozenset(first)
    lines = [*first, *(line for line in tail.split("\n") if line not in known)]
    prompts = finished = 0
    last_text: str | None = None
    reading = Reading(AgentState.UNKNOWN)
    for line in lines:
        entry = _event(line)
        kind = entry.get("type")
        if kind == "user_message" or (kind == "item_completed" and _is_prompt(entry.get("item"))):
            prompts += 1
        elif kind == "task_started":
            reading = Reading(AgentState.BUSY)
        elif kind in ("task_complete", "turn_aborted"):
            finished += 1
            reading = Reading(AgentState.IDLE)
            said = entry.get("last_agent_message")
            last_text = said if isinstance(said, str) else last_text
    return Turns(prompts=prompts, finished=finished, reading=reading, last_text=last_text)


def _is_prompt(item: object) -> bool:
    """Whether a finished item is a user's message: since 0.171 that is all that is kept of it (measured)."""
    return isinstance(item, dict) and item.get("type") == "UserMessage"


def spoken(entry: dict[str, Any]) -> tuple[str, ...]:
    """The texts of one line that the model was given as input: prompts, and what hooks added."""
    payload = entry.get("payload")
    if entry.get("type") != "response_item" or not isinstance(payload, dict) or payload.get("role") not in _SPOKEN:
        return ()
    content = payload.get("content")
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return tuple(text for text in texts if isinstance(text, str))


def _event(line: str) -> dict[str, Any]:
    """The payload of an `event_msg` line, else nothing."""
    if '"event_msg"' not in line:
        return {}
    entry = load_object(line)
    payload = entry.get("payload") if entry.get("type") == "event_msg" else None
    return payload if isinstance(payload, dict) else {}
