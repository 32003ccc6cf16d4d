"""`nbs-fleet deploy`: puts what the clients of a team need into a person's files, ahead of `up`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.params import File, Json
from nbs_fleet.cli.validate import warn

DryRun = Annotated[bool, typer.Option("--dry-run", help="only list what would be put in")]
NOTHING = "all it needs comes with its start"


def deploy(file: File, *, dry_run: DryRun = False, json: Json = False) -> None:
    """Put what the clients of a team need into your files and the project's, before the team is up.

    Hooks, skills and settings come with each start, wherever a client allows that; then there is nothing to put in.
    What must stand in a file of yours is put in beside what is there, listed, and taken out again by `down` or
    `cleanup`. `up` does the same when an agent starts: this is for looking at it first, or for reviewing the change.

    For example:
        nbs-fleet deploy team.yaml --dry-run
        nbs-fleet deploy team.yaml
    """
    from nbs_fleet.supervisor import deploying
    from nbs_fleet.supervisor.prepare import prepare

    prepared = prepare(file, os.environ, check_versions=False)
    needs = deploying.wanted(prepared)
    if not dry_run:
        deploying.deploy(prepared, needs)
    if json:
        agents = [{"handle": need.handle, "driver": need.driver, "changes": need.lines()} for need in needs]
        output.json({"team": prepared.team.name, "agents": agents, "deployed": not dry_run})
        return
    warn(prepared.warnings)
    rows = [[need.handle, need.driver, line] for need in needs for line in need.lines() or (NOTHING,)]
    output.table(list(rows))
    if any(need.changes for need in needs):
        team = prepared.team.name
        output.say("nothing was changed" if dry_run else f"nbs-fleet cleanup --team {team} takes it out again")
