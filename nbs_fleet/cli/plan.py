"""`nbs-fleet plan`: what `up` would do, step by step; the same as `up --dry-run`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from nbs_fleet.cli import output, words
from nbs_fleet.cli.output import Piece, Span
from nbs_fleet.cli.params import File, Json, Only
from nbs_fleet.cli.validate import warn
from nbs_fleet.plan.types import Step, Verb

if TYPE_CHECKING:
    from nbs_fleet.supervisor.prepare import Prepared

Now = Annotated[bool, typer.Option("--now", help="restart busy agents at once, not when next idle")]
DriverName = Annotated[
    str | None, typer.Option("--driver", metavar="NAME", help="play the whole team with this driver")
]

STYLES = {Verb.START: "green", Verb.RESTART: "yellow", Verb.STOP: "red", Verb.ORPHAN: "red", Verb.ADOPT: "cyan"}


def plan(file: File, *, only: Only = None, now: Now = False, driver: DriverName = None, json: Json = False) -> None:
    """Show what up would do with this file: per agent keep, start, restart (and why), stop, adopt.

    Nothing is started or written.

    For example:
        nbs-fleet plan team.yaml
        nbs-fleet plan team.yaml --only ana,bo --json
    """
    from nbs_fleet.supervisor.prepare import prepare

    show(prepare(file, os.environ, only=tuple(only) if only else None, now=now, driver=driver), json=json)


def show(prepared: Prepared, *, json: bool) -> None:
    """Print the steps of a plan that was not performed."""
    team = prepared.team
    if json:
        output.json(
            {
                "team": team.name,
                "root": team.root,
                "file": team.file,
                "steps": [_step_json(step) for step in prepared.steps],
                "warnings": prepared.warnings,
            }
        )
        return
    warn(prepared.warnings)
    number = len(team.agents)
    home = os.path.expanduser("~")
    output.say(f"{team.name}: {number} {'agent' if number == 1 else 'agents'} in {words.home(team.root, home)}")
    output.table([_row(prepared, step) for step in prepared.steps], indent=2)
    if all(step.verb is Verb.KEEP for step in prepared.steps):
        output.say("nothing to do")
    else:
        output.say(f"nothing was done; nbs-fleet up {os.path.relpath(team.file)} does it")


def _step_json(step: Step) -> dict[str, object]:
    return {
        "handle": step.handle,
        "verb": step.verb,
        "reasons": step.reasons,
        "when_idle": step.when_idle,
        "fresh": step.fresh,
    }


def _row(prepared: Prepared, step: Step) -> list[Piece]:
    planned = prepared.plan.find(step.handle)
    agent = planned.agent if planned else None
    client = f"{agent.driver} {agent.model or ''}".rstrip() if agent else ""
    why = [*step.reasons]
    if step.when_idle:
        why.append("when next idle")
    if step.fresh and step.verb is Verb.RESTART:
        why.append("fresh session")
    role = (agent.role or "") if agent else ""
    return [step.handle, role, client, Span(step.verb.value, STYLES.get(step.verb, "")), ", ".join(why)]
