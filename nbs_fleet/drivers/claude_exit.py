"""Why a client of the Claude family ended: from its exit status and the last lines of its screen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbs_fleet.model import ExitKind

_GAVE_UP = (1, 2, None)
"""Exit codes of a client that ends before it draws anything; None: tmux lost the status."""

_SAYS: tuple[tuple[tuple[int | None, ...], re.Pattern[str], ExitKind], ...] = (
    (_GAVE_UP, re.compile(r"Error: Session ID \S+ is already in use"), ExitKind.SESSION_IN_USE),
    (_GAVE_UP, re.compile(r"No conversation found (with session ID|to continue)"), ExitKind.NO_CONVERSATION),
    (_GAVE_UP, re.compile(r"Error: Session not found"), ExitKind.NO_CONVERSATION),
    (_GAVE_UP, re.compile(r"--dangerously-skip-permissions cannot be used with root"), ExitKind.REFUSED),
    (_GAVE_UP, re.compile(r"Error: (Settings file|Invalid |--\S+ |Failed to load scenario)"), ExitKind.REFUSED),
    (_GAVE_UP, re.compile(r"error: (unknown|unexpected|invalid|option|missing|the argument) ?"), ExitKind.REFUSED),
    (
        (127,),
        re.compile(r"nbs-fleet: program not found: |(\S*sh|env): .*(not found|No such)"),
        ExitKind.MISSING_PROGRAM,
    ),
    ((126,), re.compile(r"nbs-fleet: not executable: |(\S*sh|env): .*Permission denied"), ExitKind.NOT_EXECUTABLE),
    ((78,), re.compile(r"nbs-fleet: "), ExitKind.REFUSED),
)
"""Code, words at column 0, kind: what clients print when they give up (Claude Code 2.1.197, claudeless 0.2.2,
measured), and what launch.sh and shells do; 78 is launch.sh's status when a file or folder that it needs is gone."""


def read_exit(code: int | None, signal: int | None, lines: tuple[str, ...]) -> ExitKind:
    """Tell the kinds of end apart; STOPPED is the caller's to know.

    A status alone proves little (a client may exit with 127 too), so a line at column 0 must say the same; it may
    be broken over several rows by a narrow pane. No network at the first start stays a CRASH: it may pass.
    """
    if code == 0 and not signal:
        return ExitKind.CLEAN
    said = () if signal else tuple(_joined(lines))
    for codes, pattern, kind in _SAYS:
        if code in codes and any(pattern.match(text) for text in said):
            return kind
    return ExitKind.CRASH


def _joined(lines: tuple[str, ...]) -> Iterator[str]:
    """Each row with the three after it, as one text."""
    for index in range(len(lines)):
        yield "".join(lines[index : index + 4])
