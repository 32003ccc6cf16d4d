"""`nbs-fleet ps`: one row per agent, as it is now, with or without a live supervisor."""

from __future__ import annotations

from typing import Annotated

import typer

from nbs_fleet.cli.lookup import find_team
from nbs_fleet.cli.params import Json, TeamName
from nbs_fleet.cli.rows import show

Watching = Annotated[bool, typer.Option("--watch", "-w", help="show it again at each change, until Ctrl-C")]


def ps(*, json: Json = False, watch: Watching = False, team: TeamName = None) -> None:
    """Show one row per agent: handle, role, driver, state and since when, what waits, restarts.

    For example:
        nbs-fleet ps
        nbs-fleet ps --json
        nbs-fleet ps --watch
    """
    found = find_team(team)
    show(found, json=json)
    if watch:
        # It takes asyncio, which one look need not wait for.
        from nbs_fleet.cli.follow import follow

        follow(
            found,
            lambda change: change.record is not None or change.gone is not None,
            lambda: show(found, json=json),
            json=json,
        )
