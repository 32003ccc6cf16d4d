"""Puts in what one start needs in files that are not ours, and the skills that links there lead to."""

from __future__ import annotations

from nbs_fleet.drivers.base import Driver, Facts
from nbs_fleet.launch import deployment, skills
from nbs_fleet.plan.types import AgentPlan


def put_in(driver: Driver, facts: Facts, agent: AgentPlan) -> None:
    """Put in what this start needs, and take out what an earlier one needed; FleetError if that can't be done."""
    if driver.capabilities.shared_skills and agent.skills:
        skills.share(facts.shared_dir, agent.skills)
    deployment.deploy(facts.run, agent.agent.handle, driver.deploy(facts))
