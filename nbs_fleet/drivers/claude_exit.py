"""What a client of the Claude family prints when it gives up (Claude Code 2.1.197, claudeless 0.2.2, measured)."""

from __future__ import annotations

import re

from nbs_fleet.drivers.exits import GAVE_UP, Says, read_exit
from nbs_fleet.model import ExitKind

SAYS: Says = (
    (GAVE_UP, re.compile(r"Error: Session ID \S+ is already in use"), ExitKind.SESSION_IN_USE),
    (GAVE_UP, re.compile(r"No conversation found (with session ID|to continue)"), ExitKind.NO_CONVERSATION),
    (GAVE_UP, re.compile(r"Error: Session not found"), ExitKind.NO_CONVERSATION),
    (GAVE_UP, re.compile(r"--dangerously-skip-permissions cannot be used with root"), ExitKind.REFUSED),
    (GAVE_UP, re.compile(r"Error: (Settings file|Invalid |--\S+ |Failed to load scenario)"), ExitKind.REFUSED),
    (GAVE_UP, re.compile(r"error: (unknown|unexpected|invalid|option|missing|the argument) ?"), ExitKind.REFUSED),
)


def read(code: int | None, signal: int | None, lines: tuple[str, ...]) -> ExitKind:
    """Tell the kinds of end apart."""
    return read_exit(code, signal, lines, SAYS)
