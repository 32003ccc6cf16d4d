"""The guard rail: what only a person may do is refused to agents (a rail, not a wall)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from nbs_fleet.cli.lookup import Found
from nbs_fleet.errors import FleetError
from nbs_fleet.launch.processes import ancestry
from nbs_fleet.supervisor.store import read_records

REFUSED = "this is for a person to do, and the caller is an agent"


def require_person(found: Found, *, environ: Mapping[str, str] = os.environ) -> None:
    """Raise FleetError if the caller is an agent of the team, or anything an agent started.

    Told by its environment (a run directory or a handle), else by its ancestors: one of them is the recorded
    client (pid and start time) of an agent.
    """
    handle = agent_of(found, environ=environ)
    if handle is not None:
        raise FleetError(f"{REFUSED} ({handle})", hint="a person can do it in a terminal of their own")


def agent_of(found: Found, *, environ: Mapping[str, str] = os.environ) -> str | None:
    """The handle of the agent on whose behalf this process runs, or None for a person."""
    if environ.get("NBS_FLEET_RUN") or environ.get("NBS_HANDLE"):
        return environ.get("NBS_HANDLE") or "of unknown handle"
    line = set(ancestry(os.getpid()))
    return next((r.handle for r in read_records(found.paths) if r.proc in line), None)
