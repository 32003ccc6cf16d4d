"""The stream of one reply: the server-sent events of the Messages API, written block by block."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.claude_api.directives import Body, Directive

Event = tuple[str, dict[str, Any]]
Reply = Iterator[Event | float]
"""Events in order; a number is a pause in seconds."""

PLAN_PATH = re.compile(r"[^\s`\"']*/plans/[\w-]+\.md")
TEXT = {"type": "text", "text": ""}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}


def message_start(model: object, input_tokens: int = 100) -> Event:
    """The event that opens a reply."""
    usage = {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1,
    }
    head = {"id": f"msg_{uuid.uuid4().hex[:20]}", "type": "message", "role": "assistant", "model": model}
    body = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    return "message_start", {"type": "message_start", "message": body}


def message_end(reason: str = "end_turn") -> Iterator[Event]:
    """The two events that close a reply."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}
    yield "message_stop", {"type": "message_stop"}


def block_start(index: int, block: dict[str, Any]) -> Event:
    """The event that opens a content block."""
    return "content_block_start", {"type": "content_block_start", "index": index, "content_block": block}


def block_delta(index: int, delta: dict[str, Any]) -> Event:
    """A piece of a content block."""
    return "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}


def block_stop(index: int) -> Event:
    """The event that closes a content block."""
    return "content_block_stop", {"type": "content_block_stop", "index": index}


def pieces(text: str, *, at_least: int = 1) -> list[str]:
    """A text cut at its words, or finer where there are fewer words than `at_least`."""
    parts = re.findall(r"\S+\s*|\s+", text) or [text]
    if len(parts) < at_least:
        step = max(1, len(text) // at_least)
        parts = [text[j : j + step] for j in range(0, len(text), step)] or [" "]
    return parts


def say(index: int, text: str, seconds: float = 0.0) -> Reply:
    """A text block, streamed over `seconds`."""
    parts = pieces(text, at_least=8 if seconds else 1)
    yield block_start(index, TEXT)
    for part in parts:
        yield block_delta(index, {"type": "text_delta", "text": part})
        if seconds:
            yield seconds / len(parts)
    yield block_stop(index)


def think(index: int, seconds: float) -> Reply:
    """A thinking block, streamed over `seconds`."""
    parts = pieces("Let me think about this one step at a time and then some more.")
    yield block_start(index, THINKING)
    for part in parts:
        yield block_delta(index, {"type": "thinking_delta", "thinking": part})
        yield seconds / len(parts)
    yield block_delta(index, {"type": "signature_delta", "signature": "c2lnbmVk"})
    yield block_stop(index)


def tool(index: int, name: str, given: dict[str, Any]) -> Iterator[Event]:
    """A tool_use block."""
    block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:20]}", "name": name, "input": {}}
    yield block_start(index, block)
    yield block_delta(index, {"type": "input_json_delta", "partial_json": json.dumps(given)})
    yield block_stop(index)


def plan_write(arg: str, body: Body) -> dict[str, Any]:
    """The Write call for the plan file whose path the client named in this conversation."""
    told = json.dumps(body, ensure_ascii=False).replace("\\n", "\n")
    paths = PLAN_PATH.findall(told)
    content = (arg or "# Plan\n\n1. step one\n2. step two").replace("\\n", "\n")
    return {"file_path": paths[-1] if paths else "no-plan-path.md", "content": content}


def plain(words: Directive, body: Body) -> Reply:
    """say, slow, think, hang, wait, stop and usage: text, early or late."""
    head, rest = words.words
    tokens = 100
    reason = "end_turn"
    if words.verb == "wait":
        yield float(head)
    if words.verb == "usage":
        tokens = int(head)
        rest = rest or f"claimed {head} input tokens"
    yield message_start(body.get("model"), tokens)
    if words.verb == "say":
        yield from say(0, words.arg)
    elif words.verb == "slow":
        yield from say(0, rest, float(head))
    elif words.verb == "think":
        yield from think(0, float(head))
        yield from say(1, rest or "thought")
    elif words.verb == "hang":
        yield from silence(float(head))
        yield from say(0, rest or "after the hang")
    else:
        reason = head if words.verb == "stop" and head else reason
        yield from say(0, rest or {"stop": "stopped", "wait": "waited"}.get(words.verb, "done"))
    yield from message_end(reason)


def silence(seconds: float) -> Reply:
    """Nothing but pings for so long."""
    left = seconds
    while left > 0:
        step = min(2.0, left)
        left -= step
        yield step
        yield "ping", {"type": "ping"}


def tools(words: Directive, body: Body) -> Reply:
    """bash, bg, tool, tools, saytool and plan: replies that call tools."""
    head, rest = words.words
    yield message_start(body.get("model"))
    if words.verb in ("bash", "bg"):
        given: dict[str, Any] = {"command": words.arg, "description": "A scripted command"}
        if words.verb == "bg":
            given["run_in_background"] = True
        yield from tool(0, "Bash", given)
    elif words.verb == "tool":
        yield from tool(0, head, json.loads(rest or "{}"))
    elif words.verb == "tools":
        for index, (name, given) in enumerate(json.loads(words.arg)):
            yield from tool(index, name, given)
    elif words.verb == "saytool":
        text, _, call = words.arg.partition("||")
        name, _, given_text = call.strip().partition(" ")
        yield from say(0, text.strip())
        yield from tool(1, name, json.loads(given_text or "{}"))
    else:
        yield from tool(0, "Write", plan_write(words.arg, body))
    yield from message_end("tool_use")


def broken(words: Directive, body: Body) -> Reply:
    """Streamerr and drop: a reply that stops in the middle (the server closes after it)."""
    yield message_start(body.get("model"))
    if words.verb == "streamerr":
        kind = words.words[0] or "overloaded_error"
        yield from say(0, "partial text before the error")
        yield "error", {"type": "error", "error": {"type": kind, "message": f"scripted {kind}"}}
        return
    yield block_start(0, TEXT)
    yield block_delta(0, {"type": "text_delta", "text": "partial "})


STREAMS: dict[str, Callable[[Directive, Body], Reply]] = {
    **dict.fromkeys(("say", "slow", "think", "hang", "wait", "stop", "usage"), plain),
    **dict.fromkeys(("bash", "bg", "tool", "tools", "saytool", "plan"), tools),
    **dict.fromkeys(("streamerr", "drop"), broken),
}
