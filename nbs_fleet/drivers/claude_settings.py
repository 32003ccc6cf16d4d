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


def without_settings(args: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """An agent's own arguments without `--settings VALUE`, and what was left out.

    A second file beside ours may take its place, and with it our hooks would be gone. Only flags count: what follows
    `--` is text.
    """
    kept: list[str] = []
    left: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            kept += [word, *words]
        elif word == "--settings":
            left.append(" ".join((word, *(value for value in [next(words, "")] if value))))
        elif word.startswith("--settings="):
            left.append(word)
        else:
            kept.append(word)
    return tuple(kept), tuple(left)
