"""What is done to a team in a soak: the kinds of faults, and the kinds of files in a run directory."""

from __future__ import annotations

import re
from enum import StrEnum


class Kind(StrEnum):
    """A kind of fault; each comes at least once in a soak."""

    KILL_CLIENT = "client killed"
    STOP_CLIENT = "client stopped, its tmux server too, and continued"
    KILL_SUPERVISOR = "supervisor killed"
    STOP_SUPERVISOR = "supervisor stopped and continued"
    KILL_CONTROL = "control client killed"
    STOP_CONTROL = "control client stopped and continued"
    KILL_PANE = "tmux kill-pane"
    KILL_SERVER = "tmux kill-server"
    DISK_FULL = "disk full"
    UP_UP = "two up at once"
    UP_DOWN = "up and down at once"
    CLOCK_BACK = "clock set back"
    CLOCK_ON = "clock set forward"
    DAMAGE = "file damaged"


class Way(StrEnum):
    """How a file is damaged."""

    TRUNCATE = "truncated"
    FLIP = "bits flipped"
    DELETE = "deleted"


H = r"agents/[^/]+"
FILES: dict[str, str] = {
    "temporary file": r"(.*/)?\.[^/]+",
    "plan": r"plan\.json",
    "team": r"team\.json",
    "runtime pointer": r"runtime",
    "team's story": r"story\.jsonl(\.\d)?",
    "supervisor's lock": r"supervisor\.lock",
    "up's lock": r"up\.lock",
    "supervisor's log": r"supervisor\.log",
    "supervisor's socket": r"supervisor\.sock",
    "tmux socket": r"tmux\.sock",
    "supervise.sh": r"supervise\.sh",
    "tmux.conf": r"tmux\.conf",
    "attention queue": r"attention\.json",
    "standup's beginning": r"began\.json",
    "budget": r"budget\.json",
    "number for the status line": r"waiting",
    "bin/nbs-fleet": r"bin/nbs-fleet",
    "hook wrapper": r"bin/nbs-hook",
    "hook program": r"bin/nbs-hook\.py",
    "hook program, compiled": r"bin/nbs-hook\.pyc",
    "bin/key": r"bin/key",
    "bin/segment": r"bin/segment",
    "launch.sh": rf"{H}/launch\.sh",
    "prompt": rf"{H}/(prompt|resume)\.md",
    "settings": rf"{H}/settings\.json",
    "hook policy": rf"{H}/hooks\.json",
    "record": rf"{H}/state\.json",
    "agent's story": rf"{H}/story\.jsonl(\.\d)?",
    "turn mark": rf"{H}/(turn|stops\.json)",
    "signal": rf"{H}/signal\.json",
    "capture": rf"{H}/captures/[^/]+\.txt",
    "message": rf"{H}/queue/[^/.]+\.json",
    "message that ended": rf"{H}/archive/[^/.]+\.json",
    "mail": rf"{H}/(mail|inbox)/[^/]+\.msg",
    "claimed mail": rf"{H}/claimed/[^/]+\.msg",
    "bell or probe": rf"{H}/(mail|claimed)/(tok|probe)",
    "hook event": rf"{H}/spool/[^/]+",
    "mark of a pause": rf"{H}/paused",
    "note of typing": rf"{H}/typing",
    "skill": rf"{H}/skills/.+",
    "values": r"(\.\./)+.*/[^/]+\.env",
    "supervisor.failed": r"supervisor\.failed(\.new)?",
}
"""Each kind of file by the pattern of its path from the run directory; `values` lie in the runtime directory."""
PASSING = {
    "mail",
    "claimed mail",
    "bell or probe",
    "hook event",
    "note of typing",
    "supervisor.failed",
    "temporary file",
}
"""Files that are there for a moment, or in some teams only: struck where they are met."""
ONLY_DELETED = {"supervisor's socket", "tmux socket", "mark of a pause"}
"""What holds nothing that could be spoiled."""
_PATTERNS = {name: re.compile(pattern) for name, pattern in FILES.items()}
REQUIRED = tuple(name for name in FILES if name not in PASSING)


def file_kind(path: str) -> str | None:
    """The kind of a file by its path below the run directory; None for one that nobody knows."""
    return next((name for name, pattern in _PATTERNS.items() if pattern.fullmatch(path)), None)
