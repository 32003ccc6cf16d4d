"""The client's settings: user, project, local and --settings files, merged; and what is wrong with them."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from nbs_fleet.sim import place
from nbs_fleet.sim.args import MODES

EVENTS = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PermissionRequest",
    "PermissionDenied",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "MessageDisplay",
)
_EVENTS_ADVICE = "Learn more: https://code.claude.com/docs/en/hooks"
_MODES_ADVICE = (
    'Valid modes: "acceptEdits" (ask before file changes), "plan" (analysis only), "bypassPermissions" (auto-accept '
    'all), or "default" (standard behavior)\nLearn more: https://code.claude.com/docs/en/iam#permission-modes'
)
Json = dict[str, Any]


class MissingSettingsError(Exception):
    """A file named by --settings is not there; exit code 1."""


class Hook(NamedTuple):
    """One command of one event. `timeout` in seconds."""

    event: str
    matcher: str
    command: str
    args: tuple[str, ...] | None = None
    timeout: float | None = None
    background: bool = False
    rewake: bool = False
    rewake_message: str | None = None
    rewake_summary: str | None = None


class Fault(NamedTuple):
    """What is wrong with one file: `fatal` skips the whole file, else only the named values."""

    path: str
    problems: tuple[str, ...]
    fatal: bool
    advice: tuple[str, ...] = ()


class Settings(NamedTuple):
    """All sources in one. `bypass_accepted` does not count the project's own file, as in the real client."""

    values: Json
    hooks: tuple[Hook, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    bypass_accepted: bool = False
    faults: tuple[Fault, ...] = ()


def parse_hooks(table: Any, problems: list[str], warnings: list[str], advice: list[str]) -> list[Hook]:
    """The hooks of one file; appends what is wrong."""
    hooks: list[Hook] = []
    if not isinstance(table, dict):
        return hooks
    for event, groups in table.items():
        if event not in EVENTS:
            warnings.append(
                f'hooks.{event}: Unknown hook event "{event}" was ignored. Valid events: {", ".join(EVENTS)}'
            )
            continue
        for g, group in enumerate(groups if isinstance(groups, list) else []):
            matcher = group.get("matcher") or "" if isinstance(group, dict) else ""
            entries = group.get("hooks", []) if isinstance(group, dict) else []
            for h, entry in enumerate(entries):
                hook = _hook(event, matcher, entry)
                if hook is not None:
                    hooks.append(hook)
                elif isinstance(entry, dict) and entry.get("type", "command") == "command":
                    problems.append(f"hooks.{event}.{g}.hooks.{h}.command: Expected string, but received undefined")
                    advice.append(
                        "Command hooks require `command`. For exec form (no shell), set `command` to the executable "
                        'and `args` to its arguments: {"type": "command", "command": "echo", "args": ["hi"]}. For '
                        'shell form, set `command` to the full shell string: {"type": "command", "command": "echo hi"}.'
                        "\nLearn more: https://code.claude.com/docs/en/hooks#exec-form-and-shell-form"
                    )
    return hooks


def _hook(event: str, matcher: str, entry: Any) -> Hook | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), str):
        return None
    args = entry.get("args")
    timeout = entry.get("timeout")
    rewake = bool(entry.get("asyncRewake"))
    return Hook(
        event=event,
        matcher=matcher,
        command=entry["command"],
        args=tuple(str(a) for a in args) if isinstance(args, list) else None,
        timeout=float(timeout) if isinstance(timeout, int | float) else None,
        background=bool(entry.get("async")) or rewake,
        rewake=rewake,
        rewake_message=entry.get("rewakeMessage"),
        rewake_summary=entry.get("rewakeSummary"),
    )


def check(path: str, text: str) -> tuple[Json, list[Hook], Fault | None]:
    """One file's values and hooks, and its fault if it has one."""
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        return {}, [], Fault(path, ("Invalid or malformed JSON",), fatal=True)
    problems: list[str] = []
    warnings: list[str] = []
    advice: list[str] = []
    hooks = parse_hooks(values.get("hooks", {}), problems, warnings, advice)
    permissions = values.get("permissions")
    mode = permissions.get("defaultMode") if isinstance(permissions, dict) else None
    if mode is not None and mode not in MODES:
        allowed = ", ".join(f'"{m}"' for m in MODES)
        problems.append(f"permissions.defaultMode: Invalid value. Expected one of: {allowed}")
        advice.append(_MODES_ADVICE)
    if problems:
        return {}, [], Fault(path, tuple(problems), fatal=True, advice=tuple(dict.fromkeys(advice)))
    if warnings:
        return values, hooks, Fault(path, tuple(warnings), fatal=False, advice=(_EVENTS_ADVICE,))
    return values, hooks, None


def sources(env: dict[str, str], cwd: str, given: tuple[str, ...]) -> list[tuple[str, str]]:
    """The sources in rising precedence as (kind, file or JSON text). Raises MissingSettingsError."""
    found = [
        ("user", os.path.join(place.config_dir(env), "settings.json")),
        ("project", os.path.join(cwd, ".claude", "settings.json")),
        ("local", os.path.join(cwd, ".claude", "settings.local.json")),
    ]
    for item in given:
        if item.lstrip().startswith("{"):
            found.append(("inline", item))
        elif not os.path.isfile(item):
            raise MissingSettingsError(f"Error: Settings file not found: {item}")
        else:
            found.append(("flag", os.path.abspath(item)))
    return found


def fingerprint(found: list[tuple[str, str]]) -> tuple[tuple[int, int], ...]:
    """Changes when one of the files does."""
    marks = []
    for kind, item in found:
        try:
            info = os.stat(item) if kind != "inline" else None
        except OSError:
            info = None
        marks.append((info.st_mtime_ns, info.st_size) if info else (0, 0))
    return tuple(marks)


def load(found: list[tuple[str, str]]) -> Settings:
    """Read and merge. Later sources win, hooks and permission rules add up; a faulty file is left out whole."""
    values: Json = {}
    hooks: list[Hook] = []
    rules: dict[str, list[str]] = {"allow": [], "deny": [], "ask": []}
    faults: list[Fault] = []
    accepted = False
    for kind, item in found:
        text = item
        if kind != "inline":
            try:
                with open(item, encoding="utf-8") as file:
                    text = file.read()
            except (OSError, UnicodeDecodeError):
                continue
        own, own_hooks, fault = check(item, text)
        if fault is not None:
            faults.append(fault)
        permissions = own.pop("permissions", None)
        if isinstance(permissions, dict):
            for key, known in rules.items():
                known += [str(rule) for rule in permissions.get(key) or []]
            if permissions.get("defaultMode"):
                values["defaultMode"] = permissions["defaultMode"]
        if kind != "project" and own.get("skipDangerousModePermissionPrompt") is True:
            accepted = True
        own.pop("hooks", None)
        values.update(own)
        hooks += own_hooks
    return Settings(
        values=values,
        hooks=tuple(hooks),
        allow=tuple(rules["allow"]),
        deny=tuple(rules["deny"]),
        ask=tuple(rules["ask"]),
        bypass_accepted=accepted,
        faults=tuple(faults),
    )
