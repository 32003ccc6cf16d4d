"""`nbs-fleet up`: its command line."""

from __future__ import annotations

from typing import Annotated

import typer

from nbs_fleet.cli.bringing import bring
from nbs_fleet.cli.params import MINUTE, File, Json, Only, Timeout

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="wait until each agent is ready or says why not")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="show the steps; write and start nothing")]
Attach = Annotated[bool, typer.Option("--attach", help="go to the first agent's pane afterwards")]
DriverName = Annotated[
    str | None, typer.Option("--driver", metavar="NAME", help="play every agent with this driver; sim needs no account")
]
Now = Annotated[bool, typer.Option("--now", help="restart changed agents at once, not when they are idle")]


def up(
    file: File,
    *,
    only: Only = None,
    wait: Wait = True,
    timeout: Timeout = MINUTE,
    dry_run: DryRun = False,
    attach: Attach = False,
    driver: DriverName = None,
    now: Now = False,
    json: Json = False,
) -> int:
    """Make the team as the file says: start what is missing, restart what changed, stop what left, touch nothing else.

    Exit 0: all ready; 5: some are blocked, backing off or failed; 124: some are still starting.

    For example:
        nbs-fleet up teams/review.yaml
        nbs-fleet up teams/review.yaml --only ana,bo --timeout 2m
        nbs-fleet up teams/review.yaml --driver sim
    """
    return bring(
        file,
        only=tuple(only or ()),
        wait=wait,
        timeout=timeout,
        dry_run=dry_run,
        attach=attach,
        driver=driver,
        now=now,
        json=json,
    )
