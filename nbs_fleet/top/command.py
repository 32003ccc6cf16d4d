"""`nbs-fleet top`: the dashboard."""

from __future__ import annotations

import os
import sys
import time

from nbs_fleet.cli.lookup import Found, find_team
from nbs_fleet.cli.params import TeamName
from nbs_fleet.errors import MissingError, UsageError

MISSING = "the dashboard needs the packages of the extra `top`"
HINT = "pip install 'nbs-fleet[top]'; without it: nbs-fleet ps --watch, nbs-fleet queue --watch"


def top(*, team: TeamName = None) -> int:
    """Show a team on one screen: agents, what waits for you, a screen, a story, a chat; and act on them.

    Keys are at the bottom, ? explains them. What agents may not do on the command line they may not do here.

    For example:
        nbs-fleet top
        nbs-fleet top --team review
    """
    found = find_team(team)
    found.plan()
    return _show(found)


def _show(found: Found) -> int:
    if not web_child() and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the dashboard needs a terminal", hint="nbs-fleet ps, nbs-fleet queue")
    try:
        from nbs_fleet.top.app import Top
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    from nbs_fleet.top import acts
    from nbs_fleet.top.sources import TeamSource

    async def perform(act: acts.Act) -> acts.Done:
        return await acts.perform(found, act)

    dashboard = Top(
        TeamSource(found),
        perform,
        clock=time.time,
        attach=lambda handle: acts.argv(found, acts.attach(handle)),
        home=os.path.expanduser("~"),
    )
    dashboard.run()
    return dashboard.return_code or 0


def web_child() -> bool:
    """Whether a web server of ours (or anybody's who drives Textual over pipes) is the terminal."""
    return "TEXTUAL_DRIVER" in os.environ


def _missing(error: ModuleNotFoundError) -> MissingError:
    return MissingError(f"{MISSING} ({error.name} is not installed)", hint=HINT)
