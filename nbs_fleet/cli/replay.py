"""`nbs-fleet replay`: decides on a recorded story once more and says what comes out otherwise."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
import typer

from nbs_fleet.cli import output, words
from nbs_fleet.cli.lookup import find_handle, find_team
from nbs_fleet.cli.params import Json, TeamName, offer_handles
from nbs_fleet.cli.stories import last
from nbs_fleet.errors import FleetError
from nbs_fleet.sidecar.replay import Difference
from nbs_fleet.sidecar.replay import replay as decide_again

SHOWN = 10
"""Differences that a person is shown."""

What = Annotated[
    str,
    typer.Argument(metavar="STORY", help="a story.jsonl from anywhere, or a handle", autocompletion=offer_handles),
]


def replay(story: What, *, json: Json = False, team: TeamName = None) -> int:
    """Decide on an agent's recorded story once more, with this version, and compare. Exit 1 if something differs.

    The observations come from the file alone, so a story from another machine is decided on as it was there. Older
    segments beside it (`story.jsonl.1`, ...) are taken in.

    For example:
        nbs-fleet replay ana
        nbs-fleet replay ./story.jsonl --json
    """
    path = _path(story, team)
    found = decide_again(line.entry for line in last({"": path}, 0))
    if json:
        output.json({"story": path, **msgspec.to_builtins(found)})
    else:
        for one in found.differences[:SHOWN]:
            output.say(*_head(one))
            output.table([["then", _short(one.then)], ["now", _short(one.now)]], indent=2)
        early = f"; {found.headless} before its beginning is known" if found.headless else ""
        differ = f"{len(found.differences)} differ" if found.differences else "all as recorded"
        output.say(f"{found.decisions} decisions replayed, {differ}{early}")
    return 1 if found.differences else 0


def _path(story: str, team: str | None) -> str:
    if os.path.isfile(story):
        return story
    if os.sep in story:
        raise FleetError(f"{story}: there is no such file")
    found = find_team(team)
    path = found.paths.agent(find_handle(found, story)).story
    if not os.path.isfile(path):
        raise FleetError(f"{story} has no story yet")
    return path


def _head(one: Difference) -> tuple[output.Piece, ...]:
    at = words.clock(one.at, millis=True) if one.at else ""
    return (f"line {one.line}  {at}  ", output.Span(one.event, "yellow"))


def _short(actions: tuple[object, ...] | str) -> str:
    if isinstance(actions, str):
        return actions
    return msgspec.json.encode(actions).decode() if actions else "nothing"
