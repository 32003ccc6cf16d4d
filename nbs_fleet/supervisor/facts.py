"""Gathers what a driver must know about one start: environment, home, session; the reading side of a start."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator

from msgspec.structs import replace

from nbs_fleet.drivers.base import Driver, Facts
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import processes
from nbs_fleet.launch.environment import read_values
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.sidecar.sources import edges, transcript_of


def gather(plan: Plan, agent: AgentPlan, *, session_id: str, resume: bool, has_prompt: bool) -> Facts:
    """The facts of one start or run of `agent`; errors if its stored environment is gone."""
    paths = plan.paths.agent(agent.agent.handle)
    try:
        env = read_values(paths.values)
    except OSError as error:
        raise FleetError(
            f"{agent.agent.handle}: its stored environment can't be had ({error.strerror})",
            hint=f"run `nbs-fleet up {plan.file}` to write it again",
        ) from error
    return facts_of(plan, agent, env, session_id=session_id, resume=resume, has_prompt=has_prompt)


def facts_of(
    plan: Plan, agent: AgentPlan, env: dict[str, str], *, session_id: str, resume: bool, has_prompt: bool
) -> Facts:
    """The same with the agent's environment `env`, wherever that comes from."""
    paths = plan.paths.agent(agent.agent.handle)
    # plan.json holds the names of the variables that the team file sets; a driver sees their values.
    names = agent.agent.env
    own = replace(agent.agent, env={name: env.get(name, "") for name in names}) if names else agent.agent
    # One object for all agents that work in one folder.
    real_dir = sys.intern(os.path.realpath(agent.agent.dir))
    return Facts(
        agent=own,
        team=plan.team,
        run=plan.paths.run,
        agent_dir=paths.dir,
        settings_path=paths.settings,
        session_id=session_id,
        resume=resume,
        has_prompt=has_prompt,
        home=env.get("HOME", os.path.expanduser("~")),
        env=env,
        real_dir=real_dir,
        version=plan.versions.get(agent.agent.driver),
        is_root=os.geteuid() == 0,
        skills=tuple(skill.name for skill in agent.skills),
        shared_dir=sys.intern(plan.paths.shared_skills(real_dir)),
    )


def choose_session(driver: Driver, plan: Plan, agent: AgentPlan, record: AgentRecord, *, fresh: bool) -> Facts:
    """Resume the newest session that has a turn, else begin a new one; never both, never "the latest"."""
    if not fresh and agent.agent.restart.resume and driver.capabilities.resume:
        for session in _known(record):
            facts = gather(plan, agent, session_id=session, resume=True, has_prompt=False)
            head, tail = edges(transcript_of(driver.places(facts)))
            if driver.read_transcript(head, tail).prompts:
                return facts
    new = str(uuid.uuid4())
    prompted = agent.prompt is not None and driver.capabilities.prompt
    return gather(plan, agent, session_id=new, resume=False, has_prompt=prompted)


def with_message(facts: Facts) -> Facts:
    """The same start, with a message as its prompt."""
    return replace(facts, has_prompt=True)


def _known(record: AgentRecord) -> Iterator[str]:
    if record.session_id:
        yield record.session_id
    yield from (s for s in reversed(record.sessions) if s != record.session_id)


def live_owner(driver: Driver, facts: Facts) -> int | None:
    """The pid of a live client that already has this session; Claude Code itself does not guard it."""
    directory = driver.places(facts).state_dir
    if directory is None:
        return None
    try:
        names = os.listdir(directory)
    except OSError:
        return None
    for name in names:
        try:
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                found = driver.read_state_file(file.read(65_536))
        except (OSError, UnicodeDecodeError):
            continue
        if found is None or found.session_id != facts.session_id:
            continue
        owner = processes.identify(found.pid)
        if owner is not None and found.start in (None, owner.start):
            return found.pid
    return None


def earlier_transcripts(driver: Driver, facts: Facts, sessions: tuple[str, ...]) -> tuple[str, ...]:
    """The transcripts of the last sessions before this one: a message may have arrived in one of them."""
    known = [s for s in sessions if s != facts.session_id][-3:]
    paths = (transcript_of(driver.places(replace(facts, session_id=session))) for session in known)
    return tuple(path for path in paths if path is not None)
