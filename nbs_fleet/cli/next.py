"""`nbs-fleet next` and `back`: a person goes to the agent that has waited the longest, and back again."""

from __future__ import annotations

import os
import shlex
import sys
import time
from typing import Annotated

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.attach import become, command, is_inside
from nbs_fleet.cli.guard import require_person
from nbs_fleet.cli.lookup import Found, find_team
from nbs_fleet.cli.panes import find_pane
from nbs_fleet.cli.params import TeamName
from nbs_fleet.cli.queue import TEAM, current
from nbs_fleet.errors import FleetError
from nbs_fleet.launch.tmux import Tmux

Client = Annotated[
    str | None, typer.Option("--client", metavar="TTY", help="move this client of the team's tmux (for key bindings)")
]

BACK = "@nbs_back"
"""The session's option that holds the pane to go back to."""


def next_(*, client: Client = None, team: TeamName = None) -> None:
    """Go to the pane of the agent that has waited the longest. Works while the supervisor is dead.

    Inside the team's own tmux this switches to the pane; elsewhere it attaches. Where stdin or stdout is not a
    terminal, the tmux command is printed instead of run.

    For example:
        nbs-fleet next
    """
    found = find_team(team)
    require_person(found)
    tmux = Tmux(found.paths.tmux)
    for item in current(found).visible(time.time()):
        pane = find_pane(found, item.handle) if item.handle else None
        if pane is None:
            output.note(f"{item.id}: {item.handle or TEAM} has no pane ({item.need.kind}: {item.need.title})")
            continue
        if client or is_inside(tmux.socket, os.environ):
            _remember(tmux, found, pane.id)
        if client:
            tmux.switch(client, pane.id)
            tmux.run("display-message", "-c", client, f"{item.handle}: {item.need.kind}")
            return
        _go(tmux, command(tmux, pane.id, environ=os.environ, read_only=False))
        return
    if client:
        tmux.run("display-message", "-c", client, "nothing waits for you")
        return
    output.say("nothing waits for you")


def back(*, client: Client = None, team: TeamName = None) -> None:
    """Go back to the pane where you were before `next`, inside the team's own tmux.

    For example:
        nbs-fleet back
    """
    found = find_team(team)
    require_person(found)
    tmux = Tmux(found.paths.tmux)
    if client is None and not is_inside(tmux.socket, os.environ):
        raise FleetError("back works inside the team's own tmux", hint="nbs-fleet next goes there")
    before = tmux.run("show-options", "-qv", "-t", _session(found), BACK).strip()
    if before not in {pane.id for pane in tmux.panes()}:
        raise FleetError("there is no pane to go back to")
    if client:
        tmux.switch(client, before)
        return
    _go(tmux, command(tmux, before, environ=os.environ, read_only=False))


def _session(found: Found) -> str:
    return f"={found.team}:"


def _remember(tmux: Tmux, found: Found, target: str) -> None:
    """Where `back` goes: the pane that is shown now, unless it is the very one that `next` goes to."""
    here = tmux.run("display-message", "-p", "-t", _session(found), "#{pane_id}").strip()
    if here != target:
        tmux.run("set-option", "-t", _session(found), BACK, here)


def _go(tmux: Tmux, argv: list[str]) -> None:
    """Switch the caller's own client, or become tmux."""
    inside = is_inside(tmux.socket, os.environ)
    if not inside and not (sys.stdin.isatty() and sys.stdout.isatty()):
        output.say(shlex.join(argv))
        return
    become(argv)
