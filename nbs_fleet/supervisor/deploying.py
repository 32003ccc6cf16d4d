"""Puts what a team's clients need into files of the person or the project, ahead of `up`; what a start would put in."""

from __future__ import annotations

import os

from msgspec import Struct

from nbs_fleet.drivers.base import Facts
from nbs_fleet.drivers.deployment import Deployment, Link, NewFile
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import registry, rundir
from nbs_fleet.launch.locks import FileLock
from nbs_fleet.launch.needs import put_in
from nbs_fleet.plan.types import AgentPlan
from nbs_fleet.supervisor.bring_up import QUEUE_SECONDS
from nbs_fleet.supervisor.facts import facts_of
from nbs_fleet.supervisor.prepare import Prepared


class Wanted(Struct, frozen=True):
    """What one agent needs in files that are not ours; nothing, where its client is given everything at its start."""

    handle: str
    driver: str
    changes: tuple[Deployment, ...]

    def lines(self) -> tuple[str, ...]:
        """One line for a person for each change: file and key, or the whole file."""
        found: list[str] = []
        for one in self.changes:
            if isinstance(one, NewFile):
                found.append(f"{one.path}  the whole file")
            elif isinstance(one, Link):
                found.append(f"{one.path}  a link")
            else:
                found += [f"{one.path}  {'.'.join(change.path)}" for change in one.changes]
        return tuple(found)


def wanted(prepared: Prepared) -> tuple[Wanted, ...]:
    """What each agent of the plan needs, in the order of the file."""
    found: list[Wanted] = []
    for agent in prepared.plan.agents:
        changes = registry.of(agent.agent).deploy(_facts(prepared, agent))
        found.append(Wanted(agent.agent.handle, agent.agent.driver, changes))
    return tuple(found)


def deploy(prepared: Prepared, needs: tuple[Wanted, ...]) -> None:
    """Put it in and list it, agent by agent, while no `up` or `down` is at work.

    A team whose clients need nothing has no run directory afterwards that it had not before. What could not be put
    in of one agent ends it with a FleetError; what was put in before stays, and is listed.
    """
    paths = prepared.plan.paths
    if not any(need.changes for need in needs) and not os.path.isdir(paths.run):
        return
    rundir.prepare(paths, prepared.plan.root)
    lock = FileLock(paths.up_lock)
    lock.acquire(QUEUE_SECONDS)
    try:
        for need, agent in zip(needs, prepared.plan.agents, strict=True):
            try:
                put_in(registry.of(agent.agent), _facts(prepared, agent), agent)
            except FleetError as error:
                raise FleetError(f"{need.handle}: {error.message}", hint=error.hint) from error
    finally:
        lock.release()


def _facts(prepared: Prepared, agent: AgentPlan) -> Facts:
    """A start of which only the session is not known yet."""
    env = prepared.environments.get(agent.agent.handle, {})
    return facts_of(prepared.plan, agent, env, session_id="", resume=False, has_prompt=agent.prompt is not None)
