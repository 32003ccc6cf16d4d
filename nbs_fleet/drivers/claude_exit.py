"""Why a client of the Claude family ended: from its exit status and the last lines of its screen."""

from __future__ import annotations

import re

from nbs_fleet.model import ExitKind

_SAYS: tuple[tuple[re.Pattern[str], ExitKind], ...] = (
    (re.compile(r"Error: Session ID \S+ is already in use"), ExitKind.SESSION_IN_USE),
    (re.compile(r"No conversation found (with session ID|to continue)"), ExitKind.NO_CONVERSATION),
    (re.compile(r"Session not found|No session found"), ExitKind.NO_CONVERSATION),
    (re.compile(r"cannot be used with root/sudo privileges"), ExitKind.REFUSED),
    (re.compile(r"Error: (Settings file not found|Invalid session ID|Invalid settings)"), ExitKind.REFUSED),
    (re.compile(r"^error: ", re.MULTILINE), ExitKind.REFUSED),
    (re.compile(r"Error: --\S+ (requires|can|cannot|is)"), ExitKind.REFUSED),
    (re.compile(r"Unable to connect to Anthropic services"), ExitKind.REFUSED),
)
"""What the clients print when they give up at once (Claude Code 2.1.197 and claudeless 0.2.2, measured)."""


def read_exit(code: int | None, signal: int | None, lines: tuple[str, ...]) -> ExitKind:
    """Tell the kinds of end apart; STOPPED is the caller's to know.

    127 and 126 are the shell's answers; they count only with a line that names them, since a client may
    exit with such a code too. A line may be cut by the pane's width, so it is joined before it is searched.
    """
    if signal:
        return ExitKind.CRASH
    if code == 0:
        return ExitKind.CLEAN
    text = "\n".join(lines)
    if code == 127 and _any(text, r"nbs-fleet: program not found: ", r"not found\s*$", r"No such file"):
        return ExitKind.MISSING_PROGRAM
    if code == 126:
        return ExitKind.NOT_EXECUTABLE
    joined = "".join(lines)
    for pattern, kind in _SAYS:
        if code in (1, 2, None) and (pattern.search(text) or pattern.search(joined)):
            return kind
    return ExitKind.CRASH


def _any(text: str, *patterns: str) -> bool:
    return any(re.search(pattern, text, re.MULTILINE) for pattern in patterns)
