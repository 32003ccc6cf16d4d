"""`nbs-fleet logs`: the story of a team, or of one agent, for people; and as it goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from nbs_fleet.cli import output, words
from nbs_fleet.cli.lookup import Found, find_handles, find_team, handles_of
from nbs_fleet.cli.output import Piece, Span
from nbs_fleet.cli.params import TeamName, offer_handles
from nbs_fleet.cli.stories import Line, Tail, last

TEAM = "team"
"""How the team's own story is named beside the agents' (a reserved handle)."""

VALUES = ("text", "why", "error", "detail")
"""Keys whose value says enough without the key."""

HIDDEN = ("at", "what", "handle", "lines", "code", "signal", "mono")
"""Keys that a person is not shown: the text says it, or `why` and `--json` do."""

Some = Annotated[
    str | None,
    typer.Argument(metavar="HANDLE", help="one agent; default: the team and all agents", autocompletion=offer_handles),
]
Follow = Annotated[bool, typer.Option("-f", "--follow", help="go on until Ctrl-C")]
Number = Annotated[int, typer.Option("-n", metavar="N", min=0, help="this many of the last entries; 0: all")]
All = Annotated[bool, typer.Option("-a", "--all", help="every observation and decision too (as --json has them)")]
Lines = Annotated[bool, typer.Option("--json", help="print one JSON object per line, with everything")]


def logs(
    handle: Some = None,
    *,
    follow: Follow = False,
    n: Number = 100,
    all_of_it: All = False,
    json: Lines = False,
    team: TeamName = None,
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
    wanted = (lambda _: True) if json or all_of_it else for_people
    width = max(output.width_of(who) for who in paths)
    if not follow:
        show(last(paths, n, wanted=wanted), json=json, width=width)
        return
    tails = {who: Tail(path) for who, path in paths.items()}
    try:
        ends = {who: tail.start for who, tail in tails.items()}
        show(last(paths, n, wanted=wanted, ends=ends), json=json, width=width)

        def tell(lines: list[Line]) -> None:
            show([line for line in lines if wanted(line.entry)], json=json, width=width)

        _follow(found, chosen, tails, tell)
    finally:
        for tail in tails.values():
            tail.close()


def for_people(entry: dict[str, Any]) -> bool:
    """Whether an entry is worth a person's while: not each decision, nor the full record that begins a segment."""
    return entry.get("what") not in ("decided", "seen", "mind") and not isinstance(entry.get("state"), dict)


def stories(found: Found, chosen: tuple[str, ...] | None) -> dict[str, str]:
    """The story files: of the chosen agents, or of the team and all its agents."""
    if chosen is not None:
        return {handle: found.paths.agent(handle).story for handle in chosen}
    agents = {handle: found.paths.agent(handle).story for handle in handles_of(found)}
    return {TEAM: found.paths.story} | agents


def show(lines: list[Line], *, json: bool, width: int) -> None:
    """Print these lines of stories; `width`: columns for the handles."""
    if json:
        output.ndjson({"handle": line.who, **line.entry} for line in lines)
        return
    now = time.time()
    for line in lines:
        output.say(*_human(line, now, width))


def _human(line: Line, now: float, width: int) -> list[Piece]:
    who = output.pad(output.clean(str(line.entry.get("handle") or line.who)), width)
    what, told = told_of(line, now)
    pieces: list[Piece] = [Span(words.moment(line.at, now), "dim"), " ", Span(who, "bold"), f"  {what}"]
    return [*pieces, *(f"  {text}" for text in told)]


def told_of(line: Line, now: float) -> tuple[str, tuple[str, ...]]:
    """What happened, in a word, and the particulars of it that are worth a person's while, each on one line."""
    what = str(line.entry.get("what", "?"))
    told = [_told(key, value, what, now) for key, value in line.entry.items() if key not in HIDDEN]
    return what, tuple(text.replace("\n", " ") for text in told if text)


def _told(key: str, value: Any, what: str, now: float) -> str:
    """One particular of an entry; nothing where there is nothing to say."""
    if value is True:
        return key
    if value in (None, False, "", [], {}):
        return ""
    if key == "until" and isinstance(value, int | float):
        return f"until {words.moment(value, now)}"
    text = value if isinstance(value, str) else _dumped(value)
    return text if key == what or key in VALUES else f"{key} {text}"


def _dumped(value: Any) -> str:
    from json import dumps

    return output.cut(dumps(value, ensure_ascii=False), 200)


def _follow(
    found: Found, chosen: tuple[str, ...] | None, tails: dict[str, Tail], tell: Callable[[list[Line]], None]
) -> None:
    """Tell what is added, as it is added; ends with KeyboardInterrupt."""
    from nbs_fleet.cli.refresh import refresh

    def folders() -> list[str]:
        above = [] if chosen else [os.path.join(found.paths.run, "agents")]
        return above + [os.path.dirname(path) for path in stories(found, chosen).values()]

    def look() -> None:
        for who, path in stories(found, chosen).items():
            if who not in tails:
                tails[who] = Tail(path, from_start=True)  # an agent that joined: all of its story is new
        fresh = [Line(who, entry) for who, tail in tails.items() for entry in tail.read()]
        tell(sorted(fresh, key=lambda line: line.at))

    refresh(folders, look)
