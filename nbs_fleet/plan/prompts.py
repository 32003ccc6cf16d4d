"""Prompts: which template an agent has, which files that takes, and what it can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from posixpath import dirname
from typing import Any

from nbs_fleet.plan.templates import PACKAGED, PlanProblem, Template, includes
from nbs_fleet.spec.team import Agent, Team

__all__ = ["PACKAGED", "collect", "find", "variables"]


def variables(team: Team, agent: Agent) -> dict[str, Any]:
    """What a prompt can name, and its shapes.

    Texts: team, root, handle, role ("" if none), driver. A mapping: vars. Lists: agents (each with handle, role,
    driver), chats (this agent's; each with name, path, members), bus (paths).
    """
    return {
        "team": team.name,
        "root": team.root,
        "handle": agent.handle,
        "role": agent.role or "",
        "driver": agent.driver,
        "vars": team.vars,
        "agents": [{"handle": a.handle, "role": a.role or "", "driver": a.driver} for a in team.agents],
        "chats": [
            {"name": chat.name, "path": chat.path, "members": list(chat.members)}
            for chat in team.chats
            if chat.name in agent.chats
        ],
        "bus": list(agent.bus),
    }


def find(team: Team, agent: Agent, prompts: Mapping[str, str]) -> Template | PlanProblem | None:
    """The agent's template: `prompt_text` itself, or the text that `prompt` names in `prompts`; None without either."""
    if agent.prompt_text is not None:
        return Template(f"{team.file}: {agent.handle}: prompt_text", agent.prompt_text, dirname(team.file))
    if agent.prompt is None:
        return None
    if agent.prompt not in prompts:
        return PlanProblem(agent.prompt, None, f"no such prompt template, and {agent.handle} needs it")
    return Template(agent.prompt, prompts[agent.prompt], _folder(agent.prompt))


def collect(team: Team, read: Callable[[str], str | None]) -> dict[str, str]:
    """All templates that the team's prompts need, includes too: the `prompts` of `build`.

    `read` gives the text of an absolute path or of `template:NAME`, newlines untouched; None if there is no such file.
    """
    prompts: dict[str, str] = {}
    seen: set[tuple[str, str | None]] = set()
    for agent in team.agents:
        ahead = [agent.prompt] if agent.prompt else []
        folder = _folder(agent.prompt or team.file)
        if agent.prompt_text is not None:
            folder = dirname(team.file)
            ahead = list(includes(Template("", agent.prompt_text, folder)))
        while ahead:
            key = ahead.pop()
            if (key, folder) in seen:
                continue
            seen.add((key, folder))
            text = prompts.get(key) or read(key)
            if text is not None:
                prompts[key] = text
                ahead += includes(Template(key, text, folder))
    return prompts


def _folder(key: str) -> str | None:
    """The folder that a template's includes may come from; a packaged one's come from the packaged ones only."""
    return None if key.startswith(PACKAGED) else dirname(key)
