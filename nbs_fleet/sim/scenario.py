"""Scenario files in claudeless's format (TOML or JSON): what the scripted model answers to which prompt."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]

KEBAB_MODES = {
    "default": "default",
    "plan": "plan",
    "accept-edits": "acceptEdits",
    "bypass-permissions": "bypassPermissions",
    "dont-ask": "dontAsk",
    "delegate": "default",
}
FAILURES: dict[str, dict[str, type]] = {
    "network_unreachable": {},
    "connection_timeout": {"after_ms": int},
    "auth_error": {"message": str},
    "rate_limit": {"retry_after": int},
    "out_of_credits": {},
    "partial_response": {"partial_text": str},
    "malformed_json": {"raw": str},
}
EXTENSION = "nbs_fleet"
"""The one key that other readers of this format don't know: what is beyond it lies below."""
STARTUP = ("trust", "apikey", "mcp")
"""Dialogs that `startup` below the extension key asks for; each is shown unless the client's config answers it."""
_TOP: dict[str, type] = {
    "name": str,
    "default_model": str,
    "claude_version": str,
    "user_name": str,
    "session_id": str,
    "placeholder": str,
    "provider": str,
    "show_welcome_back": bool,
    "welcome_back_right_panel": list,
    "project_path": str,
    "working_directory": str,
    "trusted": bool,
    "logged_in": bool,
    "permission_mode": str,
    "launch_timestamp": object,
    "timeouts": dict,
    "responses": list,
    "default_response": object,
    "tool_execution": dict,
    EXTENSION: dict,
}
_EXTENSION: dict[str, type] = {"startup": list}
_TIMEOUTS: dict[str, type] = {
    "exit_hint_ms": int,
    "compact_delay_ms": int,
    "hook_timeout_ms": int,
    "mcp_timeout_ms": int,
    "response_delay_ms": int,
}
_NAMES = {str: "a string", int: "a whole number", bool: "true or false", list: "a list", dict: "a table"}


class ScenarioError(Exception):
    """All that is wrong with a scenario file, one line each; exit code 2."""


class Pattern(NamedTuple):
    """What a prompt must look like; `kind` is exact, contains, regex, glob or any."""

    kind: str
    text: str = ""

    def takes(self, prompt: str) -> bool:
        """Whether the prompt matches (case matters)."""
        if self.kind == "exact":
            return prompt == self.text
        if self.kind == "contains":
            return self.text in prompt
        if self.kind == "regex":
            return re.search(self.text, prompt) is not None
        if self.kind == "glob":
            return re.fullmatch(_glob(self.text), prompt, re.DOTALL) is not None
        return True


class Call(NamedTuple):
    """One tool call; `result` replaces what the tool would answer."""

    tool: str
    input: Json
    result: str | None = None


class Response(NamedTuple):
    """One reply of the model; the delay is in milliseconds."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    delay_ms: int = 0


class Failure(NamedTuple):
    """The request fails instead; `fields` are those of its type."""

    kind: str
    fields: Json


class Step(NamedTuple):
    """One more reply inside the same turn, for the tool results that match `expect`."""

    expect: Pattern
    response: Response
    failure: Failure | None = None


class Rule(NamedTuple):
    """Answers the prompts that match, at most `max_matches` times."""

    pattern: Pattern
    response: Response | None
    failure: Failure | None = None
    max_matches: int | None = None
    steps: tuple[Step, ...] = ()


class Tool(NamedTuple):
    """How one tool is treated."""

    auto_approve: bool = False
    result: str | None = None
    error: str | None = None
    answers: tuple[tuple[str, str], ...] = ()


class Scenario(NamedTuple):
    """A checked scenario; without a file all its defaults hold."""

    rules: tuple[Rule, ...] = ()
    default: Response | None = None
    live: bool = True
    tools: tuple[tuple[str, Tool], ...] = ()
    trusted: bool | None = None
    logged_in: bool = True
    permission_mode: str | None = None
    model: str | None = None
    session_id: str | None = None
    response_delay_ms: int = 0
    compact_delay_ms: int = 20
    startup: tuple[str, ...] = ()

    def tool(self, name: str) -> Tool:
        """The treatment of a tool by name."""
        return dict(self.tools).get(name, Tool())


def _glob(text: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(c) or re.escape(c) for c in text)


class _Checker:
    """Collects everything that is wrong instead of stopping at the first."""

    def __init__(self, label: str, files: Callable[[str], Any]) -> None:
        self.label = label
        self.files = files
        self.errors: list[str] = []

    def wrong(self, where: str, what: str) -> None:
        self.errors.append(f"{self.label}: {where}: {what}" if where else f"{self.label}: {what}")

    def table(self, where: str, value: Any, known: dict[str, type]) -> Json:
        if not isinstance(value, dict):
            self.wrong(where, "must be a table")
            return {}
        found: Json = {}
        for key, item in value.items():
            at = f"{where}.{key}" if where else key
            kind = known.get(key)
            if kind is None:
                self.wrong(at, f"unknown key{_meant(key, list(known))}")
            elif kind is not object and (not isinstance(item, kind) or (kind is int and isinstance(item, bool))):
                self.wrong(at, f"must be {_NAMES[kind]}")
            else:
                found[key] = item
        return found

    def pattern(self, where: str, value: Any) -> Pattern:
        found = self.table(where, value, {"type": str, "text": str, "pattern": str})
        kind = found.get("type", "")
        needs = {"exact": "text", "contains": "text", "glob": "pattern", "regex": "pattern", "any": None}
        if kind not in needs:
            self.wrong(f"{where}.type", f"must be one of {', '.join(needs)}")
            return Pattern("any")
        key = needs[kind]
        if key is not None and key not in found:
            self.wrong(where, f'needs "{key}"')
        text = found.get(key, "") if key else ""
        if kind == "regex":
            try:
                re.compile(text)
            except re.error as error:
                self.wrong(f"{where}.pattern", f"is no regular expression: {error}")
                return Pattern("any")
        return Pattern(kind, text)

    def call(self, where: str, value: Any) -> Call:
        found = self.table(where, value, {"tool": str, "input": dict, "result": object})
        if "tool" not in found:
            self.wrong(where, 'needs "tool"')
        given = {key: self.content(f"{where}.input.{key}", item) for key, item in found.get("input", {}).items()}
        result = found.get("result")
        if result is not None and not isinstance(result, str):
            result = json.dumps(result)
        return Call(found.get("tool", ""), given, result)

    def content(self, where: str, value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"$file"}:
            try:
                return self.files(str(value["$file"]))
            except (OSError, ValueError) as error:
                self.wrong(where, f"can't read {value['$file']}: {error}")
        return value

    def response(self, where: str, value: Any) -> Response:
        if isinstance(value, str):
            return Response(value)
        known: dict[str, type] = {"text": str, "tool_calls": list, "usage": dict, "delay_ms": int}
        found = self.table(where, value, known)
        counts: dict[str, type] = {"input_tokens": int, "output_tokens": int}
        usage = self.table(f"{where}.usage", found.get("usage", {}), counts)
        calls = [self.call(f"{where}.tool_calls[{i}]", item) for i, item in enumerate(found.get("tool_calls", []))]
        return Response(
            text=found.get("text", ""),
            calls=tuple(calls),
            input_tokens=usage.get("input_tokens"),
            output_tokens=usage.get("output_tokens"),
            delay_ms=found.get("delay_ms", 0),
        )

    def failure(self, where: str, value: Any) -> Failure | None:
        kind = value.get("type") if isinstance(value, dict) else None
        if kind not in FAILURES:
            self.wrong(f"{where}.type", f"must be one of {', '.join(FAILURES)}")
            return None
        found = self.table(where, value, {"type": str, **FAILURES[kind]})
        return Failure(kind, {key: item for key, item in found.items() if key != "type"})

    def step(self, where: str, value: Any) -> Step:
        found = self.table(where, value, {"expect": dict, "response": object, "failure": dict})
        for key in ("expect", "response"):
            if key not in found:
                self.wrong(where, f'needs "{key}"')
        return Step(
            self.pattern(f"{where}.expect", found["expect"]) if "expect" in found else Pattern("any"),
            self.response(f"{where}.response", found.get("response", "")),
            self.failure(f"{where}.failure", found["failure"]) if "failure" in found else None,
        )

    def rule(self, where: str, value: Any) -> Rule:
        known: dict[str, type] = {
            "pattern": dict,
            "response": object,
            "failure": dict,
            "max_matches": int,
            "turns": list,
        }
        found = self.table(where, value, known)
        if "pattern" not in found:
            self.wrong(where, 'needs "pattern"')
        if "response" not in found and "failure" not in found:
            self.wrong(where, 'needs "response" or "failure"')
        return Rule(
            self.pattern(f"{where}.pattern", found["pattern"]) if "pattern" in found else Pattern("any"),
            self.response(f"{where}.response", found["response"]) if "response" in found else None,
            self.failure(f"{where}.failure", found["failure"]) if "failure" in found else None,
            found.get("max_matches"),
            tuple(self.step(f"{where}.turns[{i}]", item) for i, item in enumerate(found.get("turns", []))),
        )

    def tools(self, value: Any) -> tuple[bool, tuple[tuple[str, Tool], ...]]:
        found = self.table("tool_execution", value, {"mode": str, "tools": dict})
        mode = found.get("mode", "live")
        if mode not in {"live", "mock"}:
            self.wrong("tool_execution.mode", 'must be "live" or "mock"')
        known: dict[str, type] = {"auto_approve": bool, "result": object, "error": str, "answers": dict}
        tools = []
        for name, item in found.get("tools", {}).items():
            own = self.table(f"tool_execution.tools.{name}", item, known)
            result = own.get("result")
            tools.append(
                (
                    name,
                    Tool(
                        own.get("auto_approve", False),
                        result if result is None or isinstance(result, str) else json.dumps(result),
                        own.get("error"),
                        tuple((str(q), str(a)) for q, a in own.get("answers", {}).items()),
                    ),
                )
            )
        return mode == "live", tuple(tools)


def _meant(word: str, known: list[str]) -> str:
    import difflib  # noqa: PLC0415 - only to word an error

    near = difflib.get_close_matches(word, known, n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def check(data: Any, label: str, files: Callable[[str], Any]) -> Scenario:
    """Turn parsed TOML or JSON into a Scenario; `files` reads what `$file` names.

    Raises ScenarioError with every problem, one line each: `file: responses[0].patern: unknown key; ...`.
    """
    checker = _Checker(label, files)
    top = checker.table("", data, _TOP)
    rules = tuple(checker.rule(f"responses[{i}]", item) for i, item in enumerate(top.get("responses", [])))
    default = checker.response("default_response", top["default_response"]) if "default_response" in top else None
    live, tools = checker.tools(top.get("tool_execution", {}))
    timeouts = checker.table("timeouts", top.get("timeouts", {}), _TIMEOUTS)
    mode = top.get("permission_mode")
    if mode is not None and mode not in KEBAB_MODES:
        checker.wrong("permission_mode", f"must be one of {', '.join(KEBAB_MODES)}")
    own = checker.table(EXTENSION, top.get(EXTENSION, {}), _EXTENSION)
    for item in own.get("startup", []):
        if item not in STARTUP:
            checker.wrong(f"{EXTENSION}.startup", f"must list only {', '.join(STARTUP)}")
    if checker.errors:
        raise ScenarioError("\n".join(checker.errors))
    return Scenario(
        rules=rules,
        default=default,
        live=live,
        tools=tools,
        trusted=top.get("trusted", True),
        logged_in=top.get("logged_in", True),
        permission_mode=KEBAB_MODES[mode] if mode is not None else None,
        model=top.get("default_model"),
        session_id=top.get("session_id"),
        response_delay_ms=timeouts.get("response_delay_ms", 0),
        compact_delay_ms=timeouts.get("compact_delay_ms", 20),
        startup=tuple(own.get("startup", [])),
    )


def load(path: str) -> Scenario:
    """Read a scenario file, by its suffix as TOML or JSON. Raises ScenarioError."""
    folder = os.path.dirname(os.path.abspath(path))

    def files(name: str) -> Any:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return json.load(file) if name.endswith(".json") else file.read()

    try:
        with open(path, "rb") as file:
            raw = file.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: can't be read: {error}") from None
    try:
        if path.endswith(".json"):
            data = json.loads(raw)
        else:
            import tomllib  # noqa: PLC0415 - a client without a scenario starts faster

            data = tomllib.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: {error}") from None
    return check(data, path, files)
