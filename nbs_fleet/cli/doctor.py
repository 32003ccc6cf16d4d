"""`nbs-fleet doctor`: what is missing or unfit on this machine, each with its fix."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from nbs_fleet.cli import checks, checks_teams, output
from nbs_fleet.cli.checks import Check
from nbs_fleet.cli.output import Piece, Span
from nbs_fleet.cli.params import Json
from nbs_fleet.errors import MissingError
from nbs_fleet.launch import registry
from nbs_fleet.spec.team import Agent

MISSING = MissingError.exit_code
STYLES = {"ok": "green", "warn": "yellow", "bad": "red"}

TeamFile = Annotated[
    str | None, typer.Argument(metavar="FILE", help="a team file: its clients and paths are checked too")
]


Live = Annotated[
    bool,
    typer.Option("--live", help="try on your own account whether the model heeds fleet mail; costs a request or two"),
]
LiveDriver = Annotated[str, typer.Option("--driver", metavar="NAME", help="the client to try with --live")]


def doctor(file: TeamFile = None, *, json: Json = False, live: Live = False, driver: LiveDriver = "claude") -> int:
    """Check that this machine has what a team needs; each line says what to do about it.

    Exit 3 if something that is needed is missing. Changes nothing. With --live, one agent is started in a folder of
    its own, gets a message, and is taken down again: exit 0 if the model did as the message said, else 1.

    For example:
        nbs-fleet doctor
        nbs-fleet doctor team.yaml --json
        nbs-fleet doctor --live
    """
    if live:
        return _live(driver, json=json)
    found = examine(file)
    bad = any(check.level == "bad" for check in found)
    if json:
        output.json({"ok": not bad, "checks": found})
        return MISSING if bad else 0
    output.table([row for check in found for row in _rows(check)])
    return MISSING if bad else 0


def _live(driver: str, *, json: bool) -> int:
    from nbs_fleet.cli.live import live

    verdict = live(driver, dict(os.environ))
    says, fix = verdict.words()
    if json:
        output.json({"delivered": verdict.delivered, "rung": verdict.rung, "heeded": verdict.heeded, "fix": fix})
    else:
        output.table(_rows(Check("ok" if verdict.good else "warn", "live", says, fix)))
    return 0 if verdict.good else 1


def examine(file: str | None) -> list[Check]:
    """All checks, in the order in which they are shown. Raises TeamFileError for a file that can't be used."""
    environ = os.environ
    agents: tuple[Agent, ...] = (Agent("claude", "claude", None, "claude", "."),)
    root, team = os.path.realpath(os.getcwd()), "team"
    if file is not None:
        from nbs_fleet.spec.load import load_team

        loaded = load_team(file, environ, known_drivers=registry.names()).team
        agents, root, team = loaded.agents, loaded.root, loaded.name
    found = checks.tmux(environ)
    found += [checks.nested(environ), checks.sockets(root, team, environ)]
    found += _mild(checks.clients(agents, environ)) if file is None else checks.clients(agents, environ)
    found += [checks.disk(environ), *checks.notification(root)]
    return found + checks_teams.all_teams(environ)


def _mild(found: list[Check]) -> list[Check]:
    """Without a team file no client is known to be needed."""
    return [Check("warn", c.name, c.says, c.fix) if c.level == "bad" else c for c in found]


def _rows(check: Check) -> list[list[Piece]]:
    rows: list[list[Piece]] = [[Span(check.level, STYLES[check.level]), check.name, check.says]]
    return [*rows, ["", "", Span(f"-> {check.fix}", "cyan")]] if check.fix else rows
