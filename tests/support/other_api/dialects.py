"""What a request asks, whatever API it is written for: messages in one form, the tools on offer, a wanted JSON shape."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.claude_api.directives import text_of

Dialect = Literal["chat", "responses", "gemini"]
Json = dict[str, Any]
SHELLS = ("bash", "run_shell_command", "exec_command", "shell_command", "shell", "local_shell")
"""What the clients call the tool that runs a shell command."""
OUTSIDE = "outside: "


@dataclass(frozen=True)
class Asked:
    """One request. `messages` have the roles user, assistant and system; a tool's result is a user message without text."""

    dialect: Dialect
    messages: list[Json]
    tools: dict[str, Json] = field(default_factory=dict)
    stream: bool = True
    wanted: Json | None = None
    """The JSON schema that the answer must have."""
    model: str = "fake-model"

    @property
    def is_turn(self) -> bool:
        """Whether it belongs to the agent's conversation, not to a title, a summary or a choice of the client's own."""
        return bool(self.tools) and self.wanted is None

    @property
    def user_texts(self) -> list[str]:
        """What the user's messages say, tool results aside."""
        said = [text_of(message) for message in self.messages if message["role"] == "user"]
        return [text for text in said if text.strip()]

    @property
    def texts(self) -> list[str]:
        """What all messages say, the results of tools too."""
        return [json.dumps(message["content"], ensure_ascii=False) for message in self.messages]

    def shell(self, command: str) -> tuple[str, Json]:
        """The call that runs this command: the tool's name and its arguments.

        `outside: COMMAND` asks to run it outside the client's sandbox, where the tool knows one.
        """
        outside, command = command.startswith(OUTSIDE), command.removeprefix(OUTSIDE)
        name = next((known for known in SHELLS if known in self.tools), None)
        if name is None:
            raise LookupError(f"no shell tool among {sorted(self.tools)}")
        schema = self.tools[name]
        properties = schema.get("properties") or {}
        given: Json = {"cmd": command} if "cmd" in properties else {"command": command}
        if (properties.get("command") or {}).get("type") == "array":
            given = {"command": ["bash", "-lc", command]}
        for key in schema.get("required") or ():
            given.setdefault(key, sample(properties.get(key) or {}, "A scripted command"))
        if outside and "sandbox_permissions" in properties:
            given |= {"sandbox_permissions": "require_escalated", "justification": "A scripted reason"}
        return name, given


def sample(schema: Json, text: str = "x") -> Any:
    """The smallest value that a JSON schema allows."""
    kind = schema.get("type")
    kind = str(kind[0] if isinstance(kind, list) and kind else kind or "object").lower()
    if schema.get("enum"):
        return schema["enum"][0]
    if kind == "object":
        return {key: sample(below) for key, below in (schema.get("properties") or {}).items()}
    return {"string": text, "integer": 10, "number": 10, "boolean": False, "array": []}.get(kind, text)


def read(path: str, body: Json) -> Asked | None:
    """The request in a body sent to this path; None for a path of no known API."""
    bare = path.partition("?")[0]
    if bare.endswith("/chat/completions"):
        return _chat(body)
    if bare.endswith("/responses"):
        return _responses(body)
    if "enerateContent" in bare:
        return _gemini(bare, body)
    return None


def _message(role: str, text: str) -> Json:
    return {"role": {"developer": "system", "model": "assistant"}.get(role, role), "content": text}


def _result(output: object) -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "content": output}]}


def _text(content: object) -> str:
    """The text of a message's content: a string, or parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))


def _chat(body: Json) -> Asked:
    messages = [
        _result(m.get("content")) if m.get("role") == "tool" else _message(m["role"], _text(m.get("content")))
        for m in body.get("messages") or ()
    ]
    functions = [tool["function"] for tool in body.get("tools") or () if tool.get("type") == "function"]
    tools = {function["name"]: function.get("parameters") or {} for function in functions}
    shape = (body.get("response_format") or {}).get("json_schema") or {}
    return Asked("chat", messages, tools, bool(body.get("stream")), shape.get("schema"), _model(body))


def _responses(body: Json) -> Asked:
    items = body.get("input") or []
    messages: list[Json] = [_message("user", items)] if isinstance(items, str) else []
    for item in items if isinstance(items, list) else ():
        kind = item.get("type", "message")
        if kind == "message":
            messages.append(_message(item["role"], _text(item.get("content"))))
        elif kind.endswith("_output"):
            messages.append(_result(item.get("output")))
        elif kind.endswith("_call"):
            messages.append(_message("assistant", ""))
    tools: dict[str, Json] = {}
    for tool in body.get("tools") or ():
        for each in tool.get("tools") or (tool,):
            tools[each.get("name") or each.get("type") or ""] = each.get("parameters") or {}
    shape = (body.get("text") or {}).get("format") or {}
    return Asked("responses", messages, tools, bool(body.get("stream")), shape.get("schema"), _model(body))


def _gemini(path: str, body: Json) -> Asked:
    messages: list[Json] = []
    for content in body.get("contents") or ():
        parts = content.get("parts") or []
        answers = [part["functionResponse"].get("response") for part in parts if "functionResponse" in part]
        messages.extend(_result(answer) for answer in answers)
        calls = any("functionCall" in part for part in parts)
        if calls or _text(parts).strip():
            messages.append(_message(content.get("role") or "user", _text(parts)))
    declared = [f for tool in body.get("tools") or () for f in tool.get("functionDeclarations") or ()]
    tools = {f["name"]: f.get("parametersJsonSchema") or f.get("parameters") or {} for f in declared}
    given = body.get("generationConfig") or {}
    wanted = given.get("responseJsonSchema") or given.get("responseSchema")
    if wanted is None and given.get("responseMimeType") == "application/json":
        wanted = {"type": "object"}
    return Asked("gemini", messages, tools, "stream" in path.rpartition(":")[2], wanted, _model(body))


def _model(body: Json) -> str:
    return str(body.get("model") or "fake-model")
