"""`nbs-fleet top`: the dashboard, in this terminal or in a browser."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated

import typer

from nbs_fleet.cli.lookup import Found, find_team
from nbs_fleet.cli.params import TeamName
from nbs_fleet.errors import MissingError, UsageError

Web = Annotated[bool, typer.Option("--web", help="serve it to your browser, on this machine only, until Ctrl-C")]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="the port for --web; 0: a free one")]
First = Annotated[bool, typer.Option("--queue", help="begin in the queue, at what has waited the longest")]
MISSING = "the dashboard needs the packages of the extra `top`"
HINT = "pip install 'nbs-fleet[top]'; without it: nbs-fleet ps --watch, nbs-fleet queue --watch"


def top(*, queue: First = False, web: Web = False, port: Port = 0, team: TeamName = None) -> int:
    """Show a team on one screen: agents, what waits for you, a screen, a story, a chat; and act on them.

    Keys are at the bottom, ? explains them. With --web the same is served on 127.0.0.1 to the one browser that
    opens the address first. What agents may not do on the command line they may not do here.

    For example:
        nbs-fleet top
        nbs-fleet top --team review
        nbs-fleet top --queue
        nbs-fleet top --web --port 8123
    """
    found = find_team(team)
    found.plan()
    if port and not web:
        raise UsageError("--port goes with --web")
    if queue and web:
        raise UsageError("--queue is for a terminal; in a browser, press 1")
    if web:
        return _serve(found, port)
    return _show(found, queue_first=queue)


def _show(found: Found, *, queue_first: bool) -> int:
    if not web_child() and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the dashboard needs a terminal", hint="nbs-fleet ps, nbs-fleet queue; or nbs-fleet top --web")
    try:
        from nbs_fleet.top.app import Top
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    from nbs_fleet.launch.processes import identify
    from nbs_fleet.top import acts
    from nbs_fleet.top.sources import TeamSource

    async def perform(act: acts.Act) -> acts.Done:
        return await acts.perform(found, act)

    # A server that was killed can tell its windows nothing.
    parent = identify(os.getppid()) if web_child() else None
    dashboard = Top(
        TeamSource(found),
        perform,
        clock=time.time,
        attach=lambda handle: acts.argv(found, acts.attach(handle)),
        home=os.path.expanduser("~"),
        parent=parent,
        queue_first=queue_first,
    )
    dashboard.run()
    return dashboard.return_code or 0


def web_child() -> bool:
    """Whether a web server of ours (or anybody's who drives Textual over pipes) is the terminal."""
    return "TEXTUAL_DRIVER" in os.environ


def _serve(found: Found, port: int) -> int:
    from nbs_fleet.cli.guard import require_person

    require_person(found)
    try:
        from nbs_fleet.top import web
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    return web.serve(found, port)


def _missing(error: ModuleNotFoundError) -> MissingError:
    return MissingError(f"{MISSING} ({error.name} is not installed)", hint=HINT)
