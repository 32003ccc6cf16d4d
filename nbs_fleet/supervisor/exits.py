"""Reads how a client ended from its dead pane: status, signal, last lines, kind."""

from __future__ import annotations

import re

from nbs_fleet.drivers.base import Driver
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.model import Exit, ExitKind

LAST_LINES = 20
_TMUX_REMARK = re.compile(r"^Pane is dead( \(.*\))?$")
"""What tmux itself writes into a dead pane."""


def last_lines(rows: tuple[str, ...]) -> tuple[str, ...]:
    """The last lines that say something, without tmux's own remark."""
    said = [row.rstrip() for row in rows]
    said = [row for row in said if row and not _TMUX_REMARK.match(row)]
    return tuple(said[-LAST_LINES:])


def read_end(driver: Driver, pane: Pane | None, rows: tuple[str, ...], at: float, *, ours: bool = False) -> Exit:
    """The end of a client. `ours`: we ended it, whatever its status says."""
    lines = last_lines(rows)
    code = pane.status if pane else None
    signal = pane.signal if pane else None
    kind = ExitKind.STOPPED if ours else driver.read_exit(code, signal, lines)
    return Exit(kind, at, code=code, signal=signal, lines=lines)
