"""`nbs-fleet attach`: a person goes to an agent's pane, from wherever they are."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from typing import Annotated, NoReturn

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.guard import require_person
from nbs_fleet.cli.lookup import find_handle, find_team
from nbs_fleet.cli.panes import find_pane
from nbs_fleet.cli.params import Handle, TeamName
from nbs_fleet.errors import FleetError, MissingError
from nbs_fleet.launch.tmux import Tmux

ReadOnly = Annotated[bool, typer.Option("--read-only", "-r", help="look only: keys do nothing but detach")]


def attach(handle: Handle, *, read_only: ReadOnly = False, team: TeamName = None) -> None:
    """Go to an agent's pane. Detach with the tmux prefix and d; the agent goes on.

    Inside the team's own tmux this switches to the pane; inside another tmux it attaches in this pane.
    Where stdin or stdout is not a terminal, the tmux command is printed instead of run. Works while the
    supervisor is dead.

    For example:
        nbs-fleet attach ana
        nbs-fleet attach ana --read-only
    """
    found = find_team(team)
    name = find_handle(found, handle)
    require_person(found)
    pane = find_pane(found, name)
    if pane is None:
        raise FleetError(
            f"{name} has no pane: it is not running",
            hint=f"nbs-fleet peek {name} shows its last screen, nbs-fleet why {name} what happened",
        )
    argv = command(Tmux(found.paths.tmux), pane.id, environ=os.environ, read_only=read_only)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        output.say(shlex.join(argv))
        return
    become(argv)


def become(argv: list[str]) -> NoReturn:
    """Go on as this tmux command. Raises MissingError where there is no tmux."""
    sys.stdout.flush()
    try:
        os.execvp(argv[0], argv)  # noqa: S606  # becoming tmux is the point
    except FileNotFoundError:
        raise MissingError("tmux is not installed", hint="install tmux 3.3 or newer") from None


def command(tmux: Tmux, pane: str, *, environ: Mapping[str, str], read_only: bool) -> list[str]:
    """The command that brings this terminal to the pane: by a switch inside the team's own tmux, else by attaching."""
    if not is_inside(tmux.socket, environ):
        return tmux.attach_argv(pane, read_only=read_only)
    # `switch-client -r` toggles, so it is sent only to a client that may still write.
    lock = ["if-shell", "-F", "#{client_readonly}", "", "switch-client -r", ";"] if read_only else []
    return tmux.argv(*lock, "switch-client", "-t", pane)


def is_inside(socket: str, environ: Mapping[str, str]) -> bool:
    """Whether the caller sits in a pane of the tmux server behind this socket ($TMUX is `socket,pid,session`)."""
    around = environ.get("TMUX", "").rsplit(",", 2)[0]
    return bool(around) and os.path.realpath(around) == os.path.realpath(socket)
