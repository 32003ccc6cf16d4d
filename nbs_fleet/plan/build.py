"""Team -> Plan: what should run, with a digest of each key whose change restarts an agent. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from itertools import chain
from typing import Any

from msgspec.structs import replace

from nbs_fleet.errors import TeamFileError
from nbs_fleet.plan.addresses import hidden
from nbs_fleet.plan.layout import Place, place
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.prompts import find, variables
from nbs_fleet.plan.skills import render as render_skills
from nbs_fleet.plan.templates import PlanProblem, Renderer
from nbs_fleet.plan.types import SAME_SESSION, AgentPlan, Plan, Skill
from nbs_fleet.plan.waves import waves
from nbs_fleet.spec.team import Agent, Team


def build(
    team: Team,
    *,
    paths: RunPaths,
    source: str,
    prompts: Mapping[str, str],
    versions: Mapping[str, str],
    env_digests: Mapping[str, str],
    placed: Mapping[str, Place] | None = None,
    sharing: frozenset[str] = frozenset(),
) -> Plan:
    """The plan of one team.

    `source`: digest of the team file's text. `prompts`: absolute path, or `template:NAME` -> text, of prompts and
    skills, with all that is included. `versions`: driver -> client version. `env_digests`: handle -> digest of its env_file's content.
    `placed`: handle -> place of the panes that exist, which stay where they are. `sharing`: the handles of agents whose
    client finds skills only in the working directory: theirs are not written for one agent alone.
    TeamFileError lists everything that is wrong with the prompts and skills; FleetError a cycle in `depends_on`.
    """
    renderer = Renderer(prompts)
    texts = {agent.handle: _prompt(team, agent, prompts, renderer) for agent in team.agents}
    skills = {a.handle: render_skills(team, a, prompts, renderer, shared=a.handle in sharing) for a in team.agents}
    faults = (one for one in (*texts.values(), *chain(*skills.values())) if isinstance(one, PlanProblem))
    problems = dict.fromkeys(str(fault) for fault in faults)
    if problems:
        raise TeamFileError(
            tuple(problems), hint="prompts and skills are Jinja2 templates; templates/README.md says what they know"
        )
    wave = waves(team.agents)
    places = place([agent.handle for agent in team.agents], team.layout, placed or {})
    agents = []
    for agent in team.agents:
        prompt = texts[agent.handle]
        text = prompt if isinstance(prompt, str) else None
        window, slot = places[agent.handle]
        own = tuple(one for one in skills[agent.handle] if isinstance(one, Skill))
        fields = digests(agent, text, env_digests.get(agent.handle), own)
        agents.append(AgentPlan(without_values(agent), fields, text, wave[agent.handle], window, slot, own))
    return Plan(
        team=team.name,
        file=team.file,
        root=team.root,
        source=source,
        paths=paths,
        layout=team.layout,
        agents=tuple(agents),
        chats=team.chats,
        bus=team.bus,
        standup=team.standup,
        notifications=hidden(team.notifications),
        budget=team.budget,
        pythia=team.pythia,
        versions=dict(sorted(versions.items())),
    )


def digests(agent: Agent, prompt: str | None, env_file: str | None, skills: tuple[Skill, ...] = ()) -> dict[str, str]:
    """A digest for each key of SAME_SESSION and FRESH_SESSION; `env_file` is the digest of that file's content."""
    values: dict[str, Any] = {key: getattr(agent, key) for key in SAME_SESSION}
    values["env_file"] = agent.env_file and (env_file or agent.env_file)
    values["prompt"] = prompt
    if skills:
        values["skills"] = [agent.skills, [skill.text for skill in skills]]
    return {key: digest(value) for key, value in values.items()}


def digest(value: Any) -> str:
    """Sixteen hex digits that are the same for equal values, in whatever order a mapping was written."""
    text = json.dumps(_ordered(value), default=str)  # ASCII only, so that any str can be encoded
    return sha256(text.encode()).hexdigest()[:16]


def without_values(agent: Agent) -> Agent:
    """The agent with its `env` names but no values, and no addresses: those travel in 0600 files of values only."""
    return replace(agent, env=dict.fromkeys(agent.env, ""), notifications=hidden(agent.notifications))


def _prompt(team: Team, agent: Agent, prompts: Mapping[str, str], renderer: Renderer) -> str | PlanProblem | None:
    """The rendered prompt. One of nothing but whitespace is no prompt: a client would take it as an empty turn."""
    template = find(team, agent, prompts)
    if template is None or isinstance(template, PlanProblem):
        return template
    text = renderer.render(template, variables(team, agent))
    return None if isinstance(text, str) and not text.strip() else text


def _ordered(value: Any) -> Any:
    """`value` with each mapping as a sorted list of pairs: keys of any type, any order."""
    if isinstance(value, Mapping):
        return {
            "mapping": sorted(([repr(key), _ordered(item)] for key, item in value.items()), key=lambda pair: pair[0])
        }
    if isinstance(value, (list, tuple)):
        return [_ordered(item) for item in value]
    return value
