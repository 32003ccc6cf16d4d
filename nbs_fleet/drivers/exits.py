"""Why a client ended: from its exit status and the last lines of its screen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbs_fleet.model import ExitKind

Says = tuple[tuple[tuple[int | None, ...], re.Pattern[str], ExitKind], ...]
"""Exit codes, words at column 0, kind."""

GAVE_UP = (1, 2, None)
"""Exit codes of a client that ends before it draws anything; None: tmux lost the status."""

EVERYWHERE: Says = (
    (
        (127,),
        re.compile(r"nbs-fleet: program not found: |(\S*sh|env): .*(not found|No such)"),
        ExitKind.MISSING_PROGRAM,
    ),
    ((126,), re.compile(r"nbs-fleet: not executable: |(\S*sh|env): .*Permission denied"), ExitKind.NOT_EXECUTABLE),
    ((78,), re.compile(r"nbs-fleet: "), ExitKind.REFUSED),
)
"""What launch.sh and shells do; 78 is launch.sh's status when a file or folder that it needs is gone."""


def read_exit(code: int | None, signal: int | None, lines: tuple[str, ...], says: Says = ()) -> ExitKind:
    """Tell the kinds of end apart, by what this client `says` when it gives up; STOPPED is the caller's to know.

    A status alone proves little (a client may exit with 127 too), so a line at column 0 must say the same; it may
    be broken over several rows by a narrow pane. No network at the first start stays a CRASH: it may pass.
    """
    if code == 0 and not signal:
        return ExitKind.CLEAN
    said = () if signal else tuple(_joined(lines))
    for codes, pattern, kind in (*says, *EVERYWHERE):
        if code in codes and any(pattern.match(text) for text in said):
            return kind
    return ExitKind.CRASH


def _joined(lines: tuple[str, ...]) -> Iterator[str]:
    """Each row with the three after it, as one text."""
    for index in range(len(lines)):
        yield "".join(lines[index : index + 4])
