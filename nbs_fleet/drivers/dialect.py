"""The hooks of a client, as data: its events, how it is told things, how its payloads spell what ours spell."""

from __future__ import annotations

import json
from posixpath import join
from typing import Any, Literal

from msgspec import Struct

from nbs_fleet.drivers.recipes import TEXT
from nbs_fleet.spec.team import Agent

EVENT = "$EVENT"
"""Stands in a shape for the client's own name of the event."""
SECONDS = 10
"""Far more than a hook takes; a client waits for it."""

OURS = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "Notification"),
    *("Stop", "StopFailure", "SubagentStop", "PreCompact", "PostCompact", "SessionEnd"),
)
"""The events that the rest of nbs-fleet knows, in the words of Claude Code."""


class HookEvent(Struct, frozen=True):
    """One event that is hooked: `ours` (one of OURS) and what the client calls it."""

    ours: str
    theirs: str
    seconds: int = SECONDS
    """What the client is told as the hook's limit. Codex cuts SessionEnd's to 3 (measured)."""
    matcher: str | None = None


class Dialect(Struct, frozen=True):
    """What a client's hooks look like.

    The shapes are what a hook prints, as JSON values in which TEXT and EVENT are replaced; a shape that is None (or
    an event that `context` does not name) is something this client can't be told, and is never tried.
    `context` hands text to the model at an event of ours; at SessionStart it carries the fleet's briefing; `block` makes a stopping client go on with a text;
    `allow` and `deny` answer a PermissionRequest; `refuse` keeps a tool from running, at PreToolUse.
    """

    name: str
    events: tuple[HookEvent, ...]
    context: dict[str, Any] = {}
    block: dict[str, Any] | None = None
    allow: dict[str, Any] | None = None
    deny: dict[str, Any] | None = None
    refuse: dict[str, Any] | None = None
    strict: bool = False
    """The client rejects an output with a key it does not know, so a shape holds nothing else."""
    unit: Literal["s", "ms"] = "s"
    """What the client counts a hook's limit in."""
    fields: dict[str, str] = {}
    """Keys of this client's payloads -> ours (Claude Code's: session_id, transcript_path, tool_name, prompt, ...)."""
    tools: dict[str, Literal["plan", "question"]] = {}
    """Tools whose PermissionRequest is about a plan or a question to a person; all others need a permission."""
    context_bytes: int = 9_900
    """Most bytes of a context that reach the model whole."""

    def shapes(self) -> dict[str, Any]:
        """What the hook program must know, as the values of hooks.json."""
        names = {event.ours: event.theirs for event in self.events if event.ours != event.theirs}
        return {
            "context": self.context,
            "block": self.block,
            "allow": self.allow,
            "deny": self.deny,
            "refuse": self.refuse,
            "names": names,
            "fields": self.fields,
            "tools": self.tools,
            "context_bytes": self.context_bytes,
        }

    def limit(self, event: HookEvent) -> int:
        """An event's limit in the client's own unit."""
        return event.seconds * (1000 if self.unit == "ms" else 1)

    def groups(self, run: str) -> dict[str, list[dict[str, Any]]]:
        """The value of `hooks` in a settings file of Claude Code's shape: client's event -> groups of commands."""
        result: dict[str, list[dict[str, Any]]] = {}
        for event in self.events:
            hook = {"type": "command", "command": command(run, event.ours), "timeout": self.limit(event)}
            group: dict[str, Any] = {"hooks": [hook]}
            if event.matcher is not None:
                group = {"matcher": event.matcher, **group}
            result.setdefault(event.theirs, []).append(group)
        return result

    def normal(self, payload: dict[str, Any]) -> dict[str, Any]:
        """A payload with our keys and our event name; what is not in the tables stays as it is."""
        renamed = {self.fields.get(key, key): value for key, value in payload.items()}
        theirs = renamed.get("hook_event_name")
        ours = next((event.ours for event in self.events if event.theirs == theirs), theirs)
        return {**renamed, "hook_event_name": ours} if ours is not None else renamed


def command(run: str, ours: str) -> str:
    """The shell command that a client runs for an event of ours."""
    return f"{quoted(join(run, 'bin', 'nbs-hook'))} {ours}"


def quoted(text: str) -> str:
    """A word for the shell that the client runs a command with."""
    return "'" + text.replace("'", "'\\''") + "'"


def asks(agent: Agent, *, briefed: bool = False) -> list[str]:
    """The events, in our names, at which a policy of the team file or the briefing may apply."""
    dialogs = agent.dialogs
    found: list[str] = ["SessionStart"] if briefed else []
    if agent.stop == "signal":
        found.append("Stop")
    if dialogs.question == "deny":
        found.append("PreToolUse")
    if (dialogs.plan, dialogs.permission) != ("ask", "ask") or dialogs.question == "deny":
        found.append("PermissionRequest")
    return found


def policy_file(agent: Agent, agent_dir: str, dialect: Dialect, briefing: str = "") -> dict[str, str]:
    """hooks.json, which the hook program reads: path -> text. `agent_dir` is the agent's own folder.

    `briefing` is told at the start of a session, by clients whose dialect has a context there.

    The events at which a policy applies stand alone on the first line: a shell reads byte by byte, and needs no more.
    """
    dialogs = agent.dialogs
    briefed = bool(briefing) and "SessionStart" in dialect.context
    rest = {
        "dialect": dialect.name,
        "plan": dialogs.plan,
        "permission": dialogs.permission,
        "question": dialogs.question,
        "stop": agent.stop,
        "shapes": dialect.shapes(),
        **({"briefing": briefing} if briefed else {}),
    }
    text = f'{{"asks": {json.dumps(asks(agent, briefed=briefed))},\n{json.dumps(rest)[1:]}\n'
    return {join(agent_dir, "hooks.json"): text}


def nested(key: str = "additionalContext") -> dict[str, Any]:
    """Claude Code's shape of a context: below `hookSpecificOutput`, beside the event's name."""
    return {"hookSpecificOutput": {"hookEventName": EVENT, key: TEXT}}


def nested_decision(behavior: str, *, message: bool = False) -> dict[str, Any]:
    """Claude Code's shape of an answer to a PermissionRequest."""
    decision = {"behavior": behavior, **({"message": TEXT} if message else {})}
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}


BLOCK: dict[str, Any] = {"decision": "block", "reason": TEXT}
REFUSE: dict[str, Any] = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": TEXT,
    }
}
