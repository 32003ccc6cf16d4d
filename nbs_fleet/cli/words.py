"""How states, durations and times are worded, the same in every command."""

from __future__ import annotations

import time

from nbs_fleet import jsontext
from nbs_fleet.model import AgentState
from nbs_fleet.plan.types import AgentRecord


def span(seconds: float) -> str:
    """A duration in its two largest units: `12s`, `3m 12s`, `2h 5m`, `4d 1h`."""
    whole = max(0, int(seconds))
    for size, name, below, under in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size}{name} {rest}{under}" if rest else f"{whole // size}{name}"
    return f"{whole}s"


def clock(at: float, *, millis: bool = False) -> str:
    """Local time of day of these wall seconds: `09:14:02`, or `09:14:02.113`."""
    at = jsontext.seconds(at)
    text = time.strftime("%H:%M:%S", time.localtime(at))
    return f"{text}.{int(at * 1000) % 1000:03d}" if millis else text


def moment(at: float, now: float) -> str:
    """Local time of day, with the date in front of it unless it is today's."""
    at = jsontext.seconds(at)
    same = time.localtime(at)[:3] == time.localtime(now)[:3]
    return clock(at) if same else time.strftime("%Y-%m-%d ", time.localtime(at)) + clock(at)


def state(record: AgentRecord) -> str:
    """The state with what belongs to it: `busy (Bash)`, `blocked: permission`, `backoff`."""
    if record.state is AgentState.BLOCKED and record.blocked:
        return f"blocked: {record.blocked}"
    if record.state is AgentState.BUSY and record.detail:
        return f"busy ({record.detail})"
    return record.state.value


STYLES = {
    AgentState.IDLE: "green",
    AgentState.BUSY: "cyan",
    AgentState.BLOCKED: "yellow",
    AgentState.LIMITED: "yellow",
    AgentState.BACKOFF: "yellow",
    AgentState.FAILED: "red",
    AgentState.UNKNOWN: "yellow",
}
"""The style (a key of output.STYLES) in which a state is drawn; others are plain."""


def home(path: str, home_dir: str) -> str:
    """The path with the person's home shortened to `~`."""
    if path == home_dir or path.startswith(home_dir.rstrip("/") + "/"):
        return "~" + path[len(home_dir.rstrip("/")) :]
    return path
