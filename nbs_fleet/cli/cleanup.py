"""`nbs-fleet cleanup`: takes out of a person's files what a team that is not up has left there."""

from __future__ import annotations

from typing import Annotated

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.checks_teams import is_up
from nbs_fleet.cli.guard import require_person
from nbs_fleet.cli.lookup import find_team
from nbs_fleet.cli.params import Json, TeamName
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import deployment

DryRun = Annotated[bool, typer.Option("--dry-run", help="only list what would be taken out")]


def cleanup(*, dry_run: DryRun = False, json: Json = False, team: TeamName = None) -> int:
    """Take out of your files what was put in for a team that is not up any more.

    `down` does this too; it is for a team whose machine went down, or whose files could not be read then. What you
    have changed yourself stays. With --dry-run it lists, also for a team that is up.

    For example:
        nbs-fleet cleanup --dry-run
        nbs-fleet cleanup
    """
    found = find_team(team)
    entries = deployment.read(found.paths.run).entries
    lines = [deployment.describe(entry) for entry in entries]
    if not dry_run and entries:
        require_person(found)
        if is_up(found.paths):
            raise FleetError(f"{found.team} is up and needs them", hint=f"nbs-fleet down --team {found.team}")
        problems = deployment.undo(found.paths.run)
        if problems:
            raise FleetError("\n".join(problems), hint="mend the files, then run it again")
    if json:
        output.json({"team": found.team, "changes": lines, "undone": not dry_run})
    elif lines:
        output.say("\n".join(lines))
    else:
        output.say(f"{found.team} has changed nothing in your files")
    return 0
