"""The hooks of GitHub Copilot CLI: a plugin folder per agent that brings them and its skills, and their dialect."""

from __future__ import annotations

import json
from posixpath import join
from typing import Any

from nbs_fleet.drivers.base import Facts
from nbs_fleet.drivers.briefing import briefing_of
from nbs_fleet.drivers.dialect import BLOCK, Dialect, HookEvent, command, quoted
from nbs_fleet.drivers.recipes import TEXT

FOLDER = "plugin"
_CONTEXT = {"additionalContext": TEXT}
_NAMES = {"PermissionRequest": "permissionRequest"}
_EVENTS = ("SessionStart", "UserPromptSubmit", "PermissionRequest", "Notification", "Stop", "PreCompact", "SessionEnd")

COPILOT = Dialect(
    name="copilot",
    events=tuple(HookEvent(event, _NAMES.get(event, event)) for event in (*_EVENTS, "PreToolUse", "PostToolUse")),
    context=dict.fromkeys(("PreToolUse", "PostToolUse", "UserPromptSubmit"), _CONTEXT),
    block=BLOCK,
    allow={"behavior": "allow"},
    deny={"behavior": "deny", "message": TEXT},
    refuse={"permissionDecision": "deny", "permissionDecisionReason": TEXT},
    fields={
        "hookName": "hook_event_name",
        "sessionId": "session_id",
        "toolName": "tool_name",
        "toolInput": "tool_input",
    },
    tools={"AskUserQuestion": "question", "ask_user": "question"},
)
"""Copilot 1.0.102, measured. Names in Claude Code's spelling make most payloads Claude Code's, output stays flat.

The payloads of PermissionRequest and Notification are spelled Copilot's way under either name.
"""


def files(facts: Facts) -> dict[str, str]:
    """The plugin: path -> text. What it tells at a session's start is a file that a command prints."""
    folder = join(facts.agent_dir, FOLDER)
    about = {"name": "nbs-fleet", "version": "1.0.0", "description": "Hooks and skills of nbs-fleet for one agent"}
    told = briefing_of(facts.agent.handle, facts.team)
    return {
        join(folder, "plugin.json"): _json({**about, "hooks": "hooks.json", "skills": ["skills"]}),
        join(folder, "hooks.json"): _json({"version": 1, "hooks": _hooks(facts)}),
        join(folder, "briefing.json"): _json({"additionalContext": told}),
    }


def _hooks(facts: Facts) -> dict[str, Any]:
    """What runs at each event; before a tool only where a policy may refuse one, after it for messages."""
    result: dict[str, list[dict[str, Any]]] = {}
    for event in COPILOT.events:
        if event.ours != "PreToolUse" or facts.agent.dialogs.question == "deny":
            result[event.theirs] = [_command(command(facts.run, event.ours), COPILOT.limit(event))]
    told = quoted(join(facts.agent_dir, FOLDER, "briefing.json"))
    result["SessionStart"].append(_command(f"cat {told}", COPILOT.limit(COPILOT.events[0])))
    return result


def _command(text: str, seconds: int) -> dict[str, Any]:
    return {"type": "command", "bash": text, "timeoutSec": seconds}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
