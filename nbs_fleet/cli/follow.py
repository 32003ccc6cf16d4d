"""Show something of a team again at each change that its supervisor tells of, also while none is there."""

from __future__ import annotations

from collections.abc import Callable
from os.path import dirname

from nbs_fleet.cli import output
from nbs_fleet.cli.lookup import Found
from nbs_fleet.cli.refresh import await_change
from nbs_fleet.supervisor.client import Connection, LeavingSupervisorError
from nbs_fleet.supervisor.protocol import Answer, Request

RESTED = 3.0
"""Seconds after which it is shown again in any case: times on the screen grow, and hidden things come back."""


def follow(found: Found, matters: Callable[[Answer], bool], show: Callable[[], None], *, json: bool) -> None:
    """Call `show` at each change that `matters`, and every RESTED seconds; ends with what `show` raises.

    Without a supervisor the folder of its socket is watched, which changes when one comes back.
    """

    def again() -> None:
        if not json:
            output.clear()
        show()

    while True:
        try:
            link = Connection(found.paths)
        except OSError:
            await_change(dirname(found.paths.socket), RESTED)
            again()
            continue
        try:
            link.ask(Request("follow"))
            for change in link.changes(RESTED):
                if change is None or matters(change):
                    again()
        except LeavingSupervisorError:
            await_change(dirname(found.paths.socket), RESTED)
            again()
        finally:
            link.close()
