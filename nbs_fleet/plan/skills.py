"""Skills: which texts those of a team need, and each one rendered for its agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from posixpath import basename, dirname, join

from nbs_fleet.plan.prompts import variables
from nbs_fleet.plan.templates import PACKAGED, PlanProblem, Renderer, Template, includes
from nbs_fleet.plan.types import SKILL_TEXTS, Skill
from nbs_fleet.spec.team import Agent, Team

ANYBODY = {"handle": "$NBS_HANDLE", "role": ""}
"""What a skill for several agents knows of each."""


def collect(team: Team, read: Callable[[str], str | None]) -> dict[str, str]:
    """The texts of all skills by key (a path, or `template:NAME`), with what they include; `read` as for prompts."""
    found: dict[str, str] = {}
    for place in dict.fromkeys(place for agent in team.agents for place in agent.skills):
        key, text = next(((key, text) for key in _keys(place) if (text := read(key)) is not None), ("", None))
        if text is None:
            continue
        found[key] = text
        for included in includes(_template(key, text)) if key.endswith(".j2") else ():
            words = read(included)
            if words is not None:
                found[included] = words
    return found


def render(
    team: Team, agent: Agent, texts: Mapping[str, str], renderer: Renderer, *, shared: bool = False
) -> tuple[Skill | PlanProblem, ...]:
    """Each skill of an agent, or what is wrong with it: no text, a mistake in a template, a name used twice.

    One that is `shared` with other agents names none of them: its `handle` is the variable that each has.
    """
    done: dict[str, Skill | PlanProblem] = {}
    known = {**variables(team, agent), **(ANYBODY if shared else {})}
    for place in agent.skills:
        name = basename(place)
        if name in done:
            done[name] = PlanProblem(place, None, f"{agent.handle} has two skills named {name}")
            continue
        key = next((key for key in _keys(place) if key in texts), None)
        if key is None:
            done[name] = PlanProblem(place, None, f"no {' and no '.join(SKILL_TEXTS)} in it")
            continue
        text: str | PlanProblem = texts[key]
        if key.endswith(".j2"):
            text = renderer.render(_template(key, texts[key]), known)
        folder = None if place.startswith(PACKAGED) else place
        done[name] = text if isinstance(text, PlanProblem) else Skill(name, text, folder)
    return tuple(done.values())


def _keys(place: str) -> tuple[str, ...]:
    return tuple(join(place, name) for name in SKILL_TEXTS)


def _template(key: str, text: str) -> Template:
    return Template(key, text, None if key.startswith(PACKAGED) else dirname(key))
