"""One reply in the words of each API: the events of its stream, or the whole of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.claude_api.replies import pieces
from tests.support.other_api.dialects import Asked, Json

Event = tuple[str | None, Json | str]
"""The event's name, where the API gives it one, and its data."""
Stream = Iterator[Event | float]
"""Events in order; a number is a pause in seconds."""
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@dataclass(frozen=True)
class Reply:
    """What the model does: say `text`, over so many `seconds`, or call a tool; after a pause of `before` seconds."""

    text: str = ""
    call: tuple[str, Json] | None = None
    seconds: float = 0.0
    before: float = 0.0

    def parts(self) -> list[str]:
        """The text in the pieces it is streamed in."""
        return pieces(self.text, at_least=8 if self.seconds else 1)

    def spoken(self) -> Iterator[str | float]:
        """The pieces with the pauses between them."""
        parts = self.parts()
        for part in parts:
            yield part
            if self.seconds:
                yield self.seconds / len(parts)


def stream(reply: Reply, asked: Asked) -> Stream:
    """The events of this reply."""
    if reply.before:
        yield reply.before
    if asked.dialect == "chat":
        yield from _chat(reply, asked)
    elif asked.dialect == "responses":
        yield from _responses(reply, asked)
    else:
        yield from _gemini(reply)


def whole(reply: Reply, asked: Asked) -> Json:
    """The reply in one piece."""
    if asked.dialect == "gemini":
        return _candidate(_parts(reply), last=True)
    if asked.dialect == "responses":
        return {**_response(asked), "status": "completed", "output": [_item(reply)], "usage": _usage()}
    message: Json = {"role": "assistant", "content": None if reply.call else reply.text}
    if reply.call:
        message["tool_calls"] = [_function(reply.call)]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.call else "stop"}
    return {**_head(asked), "object": "chat.completion", "choices": [choice], "usage": USAGE}


def _unique(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:16]}"


def _head(asked: Asked) -> Json:
    return {"id": _unique("chat"), "created": 1_800_000_000, "model": asked.model}


def _function(call: tuple[str, Json]) -> Json:
    function = {"name": call[0], "arguments": json.dumps(call[1])}
    return {"index": 0, "id": _unique("call"), "type": "function", "function": function}


def _chat(reply: Reply, asked: Asked) -> Stream:
    head = {**_head(asked), "object": "chat.completion.chunk"}

    def chunk(delta: Json, reason: str | None = None) -> Event:
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant", "content": ""})
    if reply.call:
        yield chunk({"tool_calls": [_function(reply.call)]})
        yield chunk({}, "tool_calls")
    else:
        for part in reply.spoken():
            yield part if isinstance(part, float) else chunk({"content": part})
        yield chunk({}, "stop")
    yield None, {**head, "choices": [], "usage": USAGE}
    yield None, "[DONE]"


def _response(asked: Asked) -> Json:
    head = {"id": _unique("resp"), "object": "response", "created_at": 1_800_000_000}
    return {**head, "status": "in_progress", "model": asked.model, "output": []}


def _usage() -> Json:
    used = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {**used, **details}


def _item(reply: Reply) -> Json:
    if reply.call:
        call = {"name": reply.call[0], "arguments": json.dumps(reply.call[1])}
        return {"type": "function_call", "id": _unique("fc"), "call_id": _unique("call"), **call, "status": "completed"}
    part = {"type": "output_text", "text": reply.text, "annotations": []}
    head = {"type": "message", "id": _unique("msg"), "role": "assistant", "status": "completed"}
    return {**head, "content": [part]}


def _responses(reply: Reply, asked: Asked) -> Stream:
    number = iter(range(1_000_000))
    response, item = _response(asked), _item(reply)

    def event(kind: str, **more: Any) -> Event:
        return kind, {"type": kind, "sequence_number": next(number), **more}

    yield event("response.created", response=response)
    empty: Json = {"arguments": ""} if reply.call else {"content": []}
    begun = {**item, "status": "in_progress", **empty}
    yield event("response.output_item.added", output_index=0, item=begun)
    place = {"item_id": item["id"], "output_index": 0}
    if reply.call:
        yield event("response.function_call_arguments.delta", **place, delta=item["arguments"])
        yield event("response.function_call_arguments.done", **place, arguments=item["arguments"])
    else:
        part_begun = {"type": "output_text", "text": "", "annotations": []}
        yield event("response.content_part.added", **place, content_index=0, part=part_begun)
        for part in reply.spoken():
            if isinstance(part, float):
                yield part
            else:
                yield event("response.output_text.delta", **place, content_index=0, delta=part)
        yield event("response.output_text.done", **place, content_index=0, text=reply.text)
    yield event("response.output_item.done", output_index=0, item=item)
    done = {**response, "status": "completed", "output": [item], "usage": _usage()}
    yield event("response.completed", response=done)


def _parts(reply: Reply) -> list[Json]:
    if reply.call:
        return [{"functionCall": {"name": reply.call[0], "args": reply.call[1], "id": _unique("fc")}}]
    return [{"text": reply.text}]


def _candidate(parts: list[Json], *, last: bool) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    used = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
    return {"candidates": [candidate], "usageMetadata": used, "modelVersion": "fake"}


def _gemini(reply: Reply) -> Stream:
    if reply.call:
        yield None, _candidate(_parts(reply), last=True)
        return
    for part in reply.spoken():
        yield part if isinstance(part, float) else (None, _candidate([{"text": part}], last=False))
    yield None, _candidate([{"text": ""}], last=True)
