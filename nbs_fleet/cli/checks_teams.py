"""What `doctor` looks at in the teams that are or were up: modes, locks, supervisors, leftover processes."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping

from nbs_fleet.cli.checks import Check
from nbs_fleet.cli.lookup import Found, teams
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import deployment, rundir
from nbs_fleet.launch.locks import holder
from nbs_fleet.launch.processes import ancestry
from nbs_fleet.launch.proctable import table
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.model import ProcId
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.supervisor.client import SilentSupervisorError
from nbs_fleet.supervisor.status import supervisor_status
from nbs_fleet.supervisor.store import read_plan


def all_teams(environ: Mapping[str, str]) -> list[Check]:
    """All checks of all known teams, and of processes that belong to none."""
    known = teams(environ)
    found = [check for team in known for check in (*modes(team), *supervisor(team), *deployed(team))]
    found += leftovers(known)
    return found or [Check("ok", "teams", f"{len(known)} known, nothing is wrong with them")]


def modes(team: Found) -> list[Check]:
    """The team's directories are its owner's alone."""
    folders = [os.path.dirname(team.paths.run), team.paths.run, os.path.join(team.paths.run, "agents")]
    if os.path.lexists(team.paths.runtime):
        folders.append(team.paths.runtime)
    faults = [fault for folder in folders if os.path.lexists(folder) and (fault := rundir.private_fault(folder))]
    return [
        Check("bad", team.team, fault, "chown or chmod 0700 it by hand; up refuses it as it is") for fault in faults
    ]


def supervisor(team: Found) -> list[Check]:
    """The supervisor answers if it lives, and no command waits for another."""
    found: list[Check] = []
    try:
        state, _ = supervisor_status(team.paths)
        if state.state == "failed":
            last = state.lines[-1] if state.lines else f"see {team.paths.log}"
            found.append(Check("warn", team.team, f"its supervisor gave up: {last}", f"nbs-fleet up {team.file}"))
    except SilentSupervisorError as error:
        found.append(Check("bad", team.team, error.message, error.hint or ""))
    except FleetError as error:
        found.append(Check("warn", team.team, error.message, error.hint or ""))
    waiting = holder(team.paths.up_lock)
    if waiting is not None:
        says = f"an up or down is at work (pid {waiting.pid})"
        found.append(Check("warn", team.team, says, f"if it hangs: kill {waiting.pid}"))
    return found


def deployed(team: Found) -> list[Check]:
    """Files of the person that hold changes for this team: right while it is up, and as they were put in."""
    try:
        entries = deployment.read(team.paths.run).entries
        gone = [entry for entry in entries if not deployment.stands(entry)]
    except FleetError as error:
        return [Check("warn", team.team, error.message, error.hint or "")]
    if entries and not is_up(team.paths):
        says = "; ".join(map(deployment.describe, entries))
        hint = f"nbs-fleet cleanup --team {team.team} takes it out, if no up is to follow"
        return [Check("warn", team.team, f"not up, but changed: {says}", hint)]
    lost = [
        Check("warn", team.team, f"taken out by others: {deployment.describe(entry)}", "nbs-fleet up") for entry in gone
    ]
    kept = [Check("ok", team.team, f"changed: {deployment.describe(entry)}") for entry in entries if entry not in gone]
    return [*lost, *kept]


def leftovers(known: tuple[Found, ...]) -> list[Check]:
    """Processes of runs that are over: neither supervisor nor tmux server of their run directory lives."""
    names = {team.paths.run: team.team for team in known}
    found: list[Check] = []
    for run, procs in sorted(_by_run().items()):
        paths = _paths(run)
        if paths is not None and is_up(paths):
            continue
        pids = " ".join(str(proc.pid) for proc in procs)
        whose = f"of {names.get(run, run)}, which is not up" if paths else f"of a run directory that is gone, {run}"
        fix = f"nbs-fleet down --team {names[run]}" if run in names else f"kill {pids}"
        found.append(Check("warn", "leftover", f"processes {whose}: {pids}", fix))
    return found


def _paths(run: str) -> RunPaths | None:
    """The paths of this run directory, which may be one of another state directory; None if it is gone."""
    try:
        plan = read_plan(RunPaths(run, "", "", ""))
    except FleetError:
        return RunPaths(run, "", "", "")
    return plan.paths if plan else None


def is_up(paths: RunPaths) -> bool:
    """Something looks after this team: its supervisor, or at least its tmux server."""
    return holder(paths.lock) is not None or (bool(paths.tmux) and Tmux(paths.tmux).server_pid() is not None)


def _by_run() -> dict[str, list[ProcId]]:
    """All processes of this user, by the run directory that their environment names; without us and our ancestors."""
    found: dict[str, list[ProcId]] = defaultdict(list)
    source, mine, uid = table(), set(ancestry(os.getpid())), os.getuid()
    for row in source.rows():
        if row.uid == uid and not row.zombie and row.proc not in mine:
            run = source.environ(row.proc.pid).get("NBS_FLEET_RUN")
            if run:
                found[run].append(row.proc)
    return found
