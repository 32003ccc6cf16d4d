"""Reads how a client ended from its dead pane: status, signal, last lines, kind."""

from __future__ import annotations

import re

from nbs_fleet.drivers.base import Driver
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.model import Exit, ExitKind, ProcId

HISTORY = 200
"""Lines of scrollback that are kept with a capture."""
LAST_LINES = 20
_TMUX_REMARK = re.compile(r"^Pane is dead( \(.*\))?$")
"""What tmux itself writes into a dead pane."""


def last_lines(rows: tuple[str, ...]) -> tuple[str, ...]:
    """The last lines that say something, without tmux's own remark."""
    said = [row.rstrip() for row in rows]
    said = [row for row in said if row and not _TMUX_REMARK.match(row)]
    return tuple(said[-LAST_LINES:])


def without_pane(client: ProcId | None, server: ProcId | None) -> ExitKind:
    """Why a client has no pane any more; `server` is the tmux server that runs now, if one does.

    A server that began before the client is the one that it ran in: then somebody closed just the pane.
    """
    if client is None or server is None or server.start > client.start:
        return ExitKind.TMUX_DIED
    return ExitKind.PANE_CLOSED


def read_end(driver: Driver, pane: Pane | None, rows: tuple[str, ...], at: float, *, ours: bool = False) -> Exit:
    """The end of a client. `ours`: we ended it, whatever its status says."""
    lines = last_lines(rows)
    code = pane.status if pane else None
    signal = pane.signal if pane else None
    kind = ExitKind.STOPPED if ours else driver.read_exit(code, signal, lines)
    return Exit(kind, at, code=code, signal=signal, lines=lines)
