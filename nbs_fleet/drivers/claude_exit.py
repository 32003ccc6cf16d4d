"""Why a client of the Claude family ended: from its exit status and the last lines of its screen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbs_fleet.model import ExitKind

_GAVE_UP = (1, 2, None)
"""Exit codes of a client that ends before it draws anything; None: tmux lost the status."""

_SAYS: tuple[tuple[re.Pattern[str], ExitKind], ...] = (
    (re.compile(r"Error: Session ID \S+ is already in use"), ExitKind.SESSION_IN_USE),
    (re.compile(r"No conversation found (with session ID|to continue)"), ExitKind.NO_CONVERSATION),
    (re.compile(r"Error: Session not found"), ExitKind.NO_CONVERSATION),
    (re.compile(r"--dangerously-skip-permissions cannot be used with root"), ExitKind.REFUSED),
    (re.compile(r"Error: (Settings file|Invalid |--\S+ |Failed to load scenario)"), ExitKind.REFUSED),
    (re.compile(r"error: (unknown|unexpected|invalid|option|missing|the argument) ?"), ExitKind.REFUSED),
)
"""What the clients print at column 0 when they give up (Claude Code 2.1.197 and claudeless 0.2.2, measured)."""

_MISSING = re.compile(r"nbs-fleet: program not found: |(\S*sh|env): .*(not found|No such file)")
_BARRED = re.compile(r"nbs-fleet: not executable: |(\S*sh|env): .*(Permission denied|cannot execute)")
_OURS = re.compile(r"nbs-fleet: ")
_OUR_GONE = 78
"""launch.sh's own status when a file or folder that it needs is gone."""


def read_exit(code: int | None, signal: int | None, lines: tuple[str, ...]) -> ExitKind:
    """Tell the kinds of end apart; STOPPED is the caller's to know.

    A status alone proves little (a client may exit with 127 too), so a line at column 0 must say the same; it may
    be broken over several rows by a narrow pane. No network at the first start stays a CRASH: it may pass.
    """
    if signal:
        return ExitKind.CRASH
    if code == 0:
        return ExitKind.CLEAN
    said = tuple(_joined(lines))
    if code == 127 and any(_MISSING.match(text) for text in said):
        return ExitKind.MISSING_PROGRAM
    if code == 126 and any(_BARRED.match(text) for text in said):
        return ExitKind.NOT_EXECUTABLE
    if code == _OUR_GONE and any(_OURS.match(text) for text in said):
        return ExitKind.REFUSED
    if code in _GAVE_UP:
        return next((kind for pattern, kind in _SAYS if any(pattern.match(text) for text in said)), ExitKind.CRASH)
    return ExitKind.CRASH


def _joined(lines: tuple[str, ...]) -> Iterator[str]:
    """Each row with the three after it, as one text."""
    for index in range(len(lines)):
        yield "".join(lines[index : index + 4])
