"""`nbs-fleet ls`: all of a person's teams on this machine."""

from __future__ import annotations

import os
from typing import Any

from nbs_fleet.cli import output, words
from nbs_fleet.cli.lookup import Found, teams
from nbs_fleet.cli.params import Json
from nbs_fleet.launch.locks import holder
from nbs_fleet.launch.processes import alive
from nbs_fleet.supervisor.client import SilentSupervisorError
from nbs_fleet.supervisor.status import SupervisorStatus, supervisor_status
from nbs_fleet.supervisor.store import read_plan, read_records


def ls(*, json: Json = False) -> None:
    """List all of your teams, wherever they are, and whether they are up.

    For example:
        nbs-fleet ls
        nbs-fleet ls --json
    """
    rows = [_facts(found) for found in teams()]
    if json:
        output.json({"teams": rows})
        return
    if not rows:
        output.note("no teams yet; nbs-fleet up FILE starts one, nbs-fleet init writes a first file")
        return
    home = os.path.expanduser("~")
    output.table(
        [
            [
                row["team"],
                _state(row),
                f"{row['running']}/{row['agents']}",
                words.home(row["root"], home),
            ]
            for row in rows
        ],
        header=("TEAM", "SUPERVISOR", "RUNNING", "ROOT"),
        right=(2,),
    )


def _facts(found: Found) -> dict[str, Any]:
    supervisor = _supervisor(found)
    records = read_records(found.paths)
    plan = read_plan(found.paths)
    return {
        "team": found.team,
        "root": found.root,
        "file": plan.file if plan else None,
        "run": found.paths.run,
        "supervisor": {"state": supervisor.state, "pid": supervisor.pid},
        "agents": len(plan.agents) if plan else 0,
        "running": sum(1 for r in records if r.proc is not None and alive(r.proc)),
    }


def _state(row: dict[str, Any]) -> str:
    """For people: a team without supervisor and agents is down, not dead."""
    state: str = row["supervisor"]["state"]
    return "down" if state == "dead" and not row["running"] else state


def _supervisor(found: Found) -> SupervisorStatus:
    try:
        return supervisor_status(found.paths)[0]
    except SilentSupervisorError:
        return SupervisorStatus("silent", getattr(holder(found.paths.lock), "pid", None))
