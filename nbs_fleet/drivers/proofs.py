"""Finds the ids of our messages in what a client has used: a submitted prompt, or lines of its transcript."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from nbs_fleet.jsontext import load_object

MARK = re.compile(r"\[nbs:([a-z]-[0-9a-z]+(?:-[0-9a-z]+)*)\]")
"""How each message of ours begins. A message that quotes another's id has it broken up, so each match counts."""


def in_prompt(text: str) -> tuple[str, ...]:
    """The ids in a prompt that was submitted."""
    return tuple(dict.fromkeys(MARK.findall(text)))


def in_transcript(lines: str) -> tuple[str, ...]:
    """The ids that whole transcript lines prove to have reached the model (Claude Code 2.1.197, measured).

    A `user` line's own text (a held stop's reason too), an attachment `queued_command`, or one
    `hook_additional_context`. Not tool results (an agent may print an archive),
    not its own words, and not `queue-operation`: what is only queued dies with the client.
    """
    found: dict[str, None] = {}
    for line in lines.split("\n"):
        if "[nbs:" in line:
            for text in _texts(load_object(line)):
                found.update(dict.fromkeys(MARK.findall(text)))
    return tuple(found)


def _texts(entry: dict[str, Any]) -> Iterator[str]:
    if entry.get("type") == "user":
        message = entry.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            yield content
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
                yield block["text"]
    attachment = entry.get("attachment")
    if entry.get("type") == "attachment" and isinstance(attachment, dict):
        yield from _attached(attachment)


def _attached(attachment: dict[str, Any]) -> Iterator[str]:
    """The text of what was queued, or of what a hook added to a prompt or beside a tool."""
    prompt, content = attachment.get("prompt"), attachment.get("content")
    if attachment.get("type") == "queued_command" and prompt is not None:
        yield prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False)
    elif attachment.get("type") == "hook_additional_context" and isinstance(content, list):
        yield from (text for text in content if isinstance(text, str))
