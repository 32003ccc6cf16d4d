"""The guard rail: what only a person may do is refused to agents (a rail, not a wall)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from nbs_fleet.cli.lookup import Found
from nbs_fleet.errors import FleetError
from nbs_fleet.launch.processes import ancestry
from nbs_fleet.model import PERSON
from nbs_fleet.supervisor.store import read_records

HANDLE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
REFUSED = "this is for a person to do, and the caller is an agent"


def require_person(found: Found, *, environ: Mapping[str, str] = os.environ) -> None:
    """Raise FleetError if the caller is an agent of the team, or anything an agent started.

    Told by its ancestors, one of which is the recorded client (pid and start time) of an agent, else by its
    environment (a run directory or a handle).
    """
    handle = agent_of(found, environ=environ)
    if handle is not None:
        raise FleetError(f"{REFUSED} ({handle})", hint="a person can do it in a terminal of their own")


def agent_of(found: Found, *, environ: Mapping[str, str] = os.environ) -> str | None:
    """The handle of the agent on whose behalf this process runs, or None for a person.

    Its ancestors count first: the environment may have been changed. An agent of another team is one too.
    """
    own = _by_ancestors(found)
    if own is None and environ.get("NBS_FLEET_RUN"):
        return environ.get("NBS_HANDLE") or "of unknown handle"
    return own


def speaker(found: Found, wanted: str | None = None, *, environ: Mapping[str, str] = os.environ) -> str:
    """Who speaks: the agent on whose behalf this process runs, else `wanted`, else `person`.

    An agent of another team is `handle@team`. Raises FleetError if an agent wants to be another, or if the
    environment is an agent's and names none.
    """
    own = _by_ancestors(found) or _by_environment(found, environ)
    if own is None:
        return wanted or PERSON
    if wanted not in (None, own):
        raise FleetError(f"{own} can't speak as {wanted}", hint="leave that out: an agent is known by its pane")
    return own


def _by_ancestors(found: Found) -> str | None:
    line = set(ancestry(os.getpid()))
    return next((r.handle for r in read_records(found.paths) if r.proc in line), None)


def _by_environment(found: Found, environ: Mapping[str, str]) -> str | None:
    run, handle = environ.get("NBS_FLEET_RUN", ""), environ.get("NBS_HANDLE", "")
    if not run:
        # A handle alone is what people set who use the nbs tools by hand.
        return None
    if not HANDLE.fullmatch(handle):
        raise FleetError(
            "the caller is an agent, but NBS_HANDLE names none",
            hint="it is set in each agent's pane; leave it as it is",
        )
    if run and os.path.realpath(run) != os.path.realpath(found.paths.run):
        return f"{handle}@{os.path.basename(os.path.normpath(run))}"
    return handle
