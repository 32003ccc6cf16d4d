"""The settings file given to a client of the Claude family: quiet screens, permissions, the team file's own on top."""

from __future__ import annotations

from typing import Any

from nbs_fleet.spec.team import Agent

QUIET: dict[str, Any] = {
    "disableAgentView": True,
    "promptSuggestionEnabled": False,
    "spinnerTipsEnabled": False,
    "prefersReducedMotion": True,
    "editorMode": "normal",
}
"""Keeps the footer and the input box stable and keys harmless (Claude Code 2.1.197, measured).

Without the first, one Left arrow on an empty box starts a daemon and moves the session to the background;
without the second, a suggestion looks like a person's draft.
"""


def render(agent: Agent) -> dict[str, Any]:
    """The content of settings.json for one agent; the team file's `settings` win over ours, key by key."""
    ours: dict[str, Any] = dict(QUIET)
    if agent.dialogs.bypass == "accept":
        ours["skipDangerousModePermissionPrompt"] = True
    if agent.permissions:
        ours["permissions"] = agent.permissions
    return merge(ours, agent.settings)


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` laid on `base`: mappings are merged at every depth, anything else is replaced; both stay untouched."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
