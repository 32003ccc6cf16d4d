"""`nbs-fleet down`: the team is gone, and it was checked that nothing is left."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.control import ask
from nbs_fleet.cli.guard import require_person
from nbs_fleet.cli.lookup import Found, find_handles, find_team
from nbs_fleet.cli.params import Json, Only, Span, TeamName, span
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import rundir
from nbs_fleet.launch.processes import environ_of
from nbs_fleet.plan.types import Plan
from nbs_fleet.spec.team import Layout
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.fleet import Ended
from nbs_fleet.supervisor.take_down import take_down

FileOrNone = Annotated[
    str | None, typer.Argument(metavar="FILE", help="the team file; default: the team found from here")
]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="TIME", parser=span, help="how long a client may take to leave")
]
Purge = Annotated[bool, typer.Option("--purge", help="remove stories, captures and sessions' records as well")]

TEN_SECONDS = Span(10)


def down(
    file: FileOrNone = None,
    *,
    only: Only = None,
    timeout: Timeout = TEN_SECONDS,
    purge: Purge = False,
    json: Json = False,
    team: TeamName = None,
) -> int:
    """Stop the team: clients politely, then surely, with all they started; supervisor and tmux server too.

    A team that is not up is no error. Stories and captures stay unless --purge is given.

    For example:
        nbs-fleet down
        nbs-fleet down --only bo
        nbs-fleet down --purge
    """
    found = find_team(file or team)
    require_person(found)
    if only:
        return ask("stop", find_handles(found, only), found, json=json, timeout=timeout + 5.0)
    plan = plan_of(found)
    if plan is None:
        if purge:
            rundir.purge(found.paths, found.root)
        output.json({"team": found.team, "ended": []}) if json else output.say(f"{found.team} is not up")
        return 0

    def tell(ended: Ended) -> None:
        if not json:
            left = f"    left behind: {', '.join(map(str, ended.survivors))}" if ended.survivors else ""
            output.say(f"  {ended.handle}  {ended.end.describe()}{left}")

    result = take_down(plan, timeout=timeout, purge=purge, tell_one=tell)
    if result.left:
        names = ", ".join(f"{p.pid} ({environ_of(p.pid).get('NBS_HANDLE', '?')})" for p in result.left)
        raise FleetError(f"{plan.team}: still running: {names}", hint="end them by hand: kill -9 PID")
    if result.problems:
        lines = "\n  ".join(result.problems)
        raise FleetError(
            f"{plan.team} is down, but these changes are still in your files:\n  {lines}",
            hint=f"mend the files, then: nbs-fleet cleanup --team {plan.team}",
        )
    if json:
        output.json({"team": plan.team, "ended": [e.handle for e in result.ended], "purged": purge})
    elif result.ended or os.path.isdir(found.paths.run) or purge:
        output.say(f"{plan.team} is down" + ("" if purge else "; nbs-fleet logs still tells its story"))
    return 0


def plan_of(found: Found) -> Plan | None:
    """What was last asked for; of a damaged plan what the run directory tells, which is enough to end everything."""
    try:
        return store.read_plan(found.paths)
    except FleetError as error:
        output.note(output.Span("remark: ", "yellow"), error.message)
        return Plan(found.team, "", found.root, "", found.paths, Layout(), ())
