"""`nbs-fleet logs`: the story of a team, or of one agent, for people; and as it goes on."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

from nbs_fleet.cli import output, words
from nbs_fleet.cli.lookup import Found, find_handles, find_team, handles_of
from nbs_fleet.cli.output import Piece, Span
from nbs_fleet.cli.params import TeamName, arg, count, opt
from nbs_fleet.cli.stories import Line, Tail, last

TEAM = "team"
"""How the team's own story is named beside the agents' (a reserved handle)."""

Some = Annotated[str | None, arg("HANDLE", "one agent; default: the team and all agents", complete="handle")]
Follow = Annotated[bool, opt("-f", "--follow", help="go on until Ctrl-C")]
Number = Annotated[int, opt("-n", help="this many of the last entries; 0: all", metavar="N", parse=count)]
Lines = Annotated[bool, opt("--json", help="print one JSON object per line")]


def logs(
    handle: Some = None, *, follow: Follow = False, n: Number = 100, json: Lines = False, team: TeamName = None
) -> None:
    """Show what happened to a team, or to one agent, in order of time.

    For example:
        nbs-fleet logs
        nbs-fleet logs ana -f
        nbs-fleet logs -n 20 --json
    """
    found = find_team(team)
    chosen = find_handles(found, [handle]) if handle else None
    paths = stories(found, chosen)
    if not follow:
        show(last(paths, n), json=json)
        return
    tails = {who: Tail(path) for who, path in paths.items()}
    try:
        show(last(paths, n, {who: tail.start for who, tail in tails.items()}), json=json)
        _follow(found, chosen, tails, json=json)
    finally:
        for tail in tails.values():
            tail.close()


def stories(found: Found, chosen: tuple[str, ...] | None) -> dict[str, str]:
    """The story files: of the chosen agents, or of the team and all its agents."""
    if chosen is not None:
        return {handle: found.paths.agent(handle).story for handle in chosen}
    agents = {handle: found.paths.agent(handle).story for handle in handles_of(found)}
    return {TEAM: found.paths.story} | agents


def show(lines: list[Line], *, json: bool) -> None:
    """Print these lines of stories."""
    if json:
        output.ndjson({"handle": line.who, **line.entry} for line in lines)
        return
    now = time.time()
    for line in lines:
        output.say(*_human(line, now))


def _human(line: Line, now: float) -> list[Piece]:
    more = {k: v for k, v in line.entry.items() if k not in ("at", "what", "handle")}
    pieces: list[Piece] = [
        Span(words.moment(line.at, now), "dim"),
        " ",
        Span(str(line.entry.get("handle") or line.who), "bold"),
        "  ",
        str(line.entry.get("what", "?")),
    ]
    told = "  ".join(f"{key} {_value(value)}" for key, value in more.items() if value not in (None, "", [], {}))
    return [*pieces, "  ", told.replace("\n", " ")] if told else pieces


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    from json import dumps

    text = dumps(value, ensure_ascii=False)
    return output.cut(text, 200)


def _follow(found: Found, chosen: tuple[str, ...] | None, tails: dict[str, Tail], *, json: bool) -> None:
    """Print what is added, as it is added; ends with KeyboardInterrupt."""
    from nbs_fleet.cli.refresh import refresh

    def folders() -> list[str]:
        above = [] if chosen else [os.path.join(found.paths.run, "agents")]
        return above + [os.path.dirname(path) for path in stories(found, chosen).values()]

    def look() -> None:
        for who, path in stories(found, chosen).items():
            if who not in tails:
                tails[who] = Tail(path, from_start=True)  # an agent that joined: all of its story is new
        fresh = [Line(who, entry) for who, tail in tails.items() for entry in tail.read()]
        show(sorted(fresh, key=lambda line: line.at), json=json)

    refresh(folders, look)
