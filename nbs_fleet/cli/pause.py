"""`nbs-fleet pause` and `resume`: the fleet leaves agents in peace; what comes in meanwhile waits."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.guard import require_person
from nbs_fleet.cli.lookup import find_handles, find_team
from nbs_fleet.cli.params import TeamName, offer_more_handles
from nbs_fleet.nbs import presence
from nbs_fleet.sidecar.sources import set_paused

Some = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[HANDLE...]", help="these agents; default: the whole root", autocompletion=offer_more_handles
    ),
]


def pause(handle: Some = None, *, team: TeamName = None) -> None:
    """Leave agents in peace: nothing is sent, noticed or nudged until resume. Their clients go on with what they do.

    Without handles the whole root is paused, the nbs tools' own sidecars too; messages wait in their queues.

    For example:
        nbs-fleet pause
        nbs-fleet pause ana
    """
    found = find_team(team)
    require_person(found)
    if not handle:
        presence.pause(found.root, time.time())
        output.say(f"{found.team} is paused; nbs-fleet resume ends it")
        return
    for one in find_handles(found, handle):
        set_paused(found.paths.agent(one).dir, paused=True)
        output.say(f"{one} is paused")


def resume(handle: Some = None, *, team: TeamName = None) -> None:
    """End a pause. What waits goes out now.

    For example:
        nbs-fleet resume
        nbs-fleet resume ana
    """
    found = find_team(team)
    require_person(found)
    if not handle:
        was = presence.resume(found.root)
        output.say(f"{found.team} goes on" if was else f"{found.team} was not paused")
        return
    for one in find_handles(found, handle):
        set_paused(found.paths.agent(one).dir, paused=False)
        output.say(f"{one} goes on")
