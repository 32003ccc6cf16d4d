"""`nbs-fleet peek`: what an agent's pane shows now, or the last screen that was kept."""

from __future__ import annotations

import os
import time

from nbs_fleet.cli import output, words
from nbs_fleet.cli.lookup import Found, find_handle, find_team
from nbs_fleet.cli.panes import find_pane, screen
from nbs_fleet.cli.params import Handle, Json, TeamName
from nbs_fleet.errors import FleetError
from nbs_fleet.supervisor.status import iso


def peek(handle: Handle, *, team: TeamName = None, json: Json = False) -> None:
    """Show an agent's current screen, or, when its pane is gone, the last one that was kept.

    The screen goes to stdout, a line that says which one it is to stderr.

    For example:
        nbs-fleet peek ana
        nbs-fleet peek ana --json
    """
    found = find_team(team)
    name = find_handle(found, handle)
    now = time.time()
    pane = find_pane(found, name)
    if pane is not None:
        source, at, rows = "pane", now, screen(found, pane)
        said = (
            f"{name}: its screen now ({pane.id})" if not pane.dead else f"{name}: it ended; its last screen ({pane.id})"
        )
    else:
        source, (at, rows) = "capture", last_capture(found, name)
        said = f"{name}: no pane; the last screen kept, {words.span(now - at)} old ({words.moment(at, now)})"
    if json:
        facts = {"source": source, "at": iso(at), "pane": pane.id if pane else None, "rows": rows}
        output.json({"team": found.team, "handle": name, **facts})
        return
    output.note(output.Span(said, "dim"))
    output.say("\n".join(rows).rstrip("\n"))


def last_capture(found: Found, handle: str) -> tuple[float, tuple[str, ...]]:
    """When the newest kept screen of an agent was taken (wall seconds), and its rows; FleetError if none was kept."""
    folder = found.paths.agent(handle).captures
    try:
        kept = [name for name in os.listdir(folder) if name.endswith(".txt")]
    except FileNotFoundError:
        kept = []
    if not kept:
        raise FleetError(
            f"{handle} has no pane, and no screen of it was kept",
            hint=f"nbs-fleet start {handle}, or nbs-fleet why {handle}",
        )
    newest = max(kept, key=_taken)
    with open(os.path.join(folder, newest), encoding="utf-8", errors="replace") as file:
        return _taken(newest), tuple(file.read().splitlines())


def _taken(name: str) -> float:
    try:
        return float(name.removesuffix(".txt"))
    except ValueError:
        return 0.0
