"""What `ps` prints, without the parsing of its options: programs ask for it again and again, and a parser takes long."""

from __future__ import annotations

import time
from typing import Any

from nbs_fleet.cli import output
from nbs_fleet.cli.lookup import Found, find_team
from nbs_fleet.errors import UnknownNameError
from nbs_fleet.model import AgentState
from nbs_fleet.supervisor.status import AgentStatus, FleetStatus, attention, iso, row_json, span, status

HEADER = ("HANDLE", "ROLE", "DRIVER", "STATE", "SINCE", "UNREAD", "QUEUED", "RESTARTS")
STYLES = {
    AgentState.IDLE: "green",
    AgentState.BUSY: "cyan",
    AgentState.BLOCKED: "yellow",
    AgentState.LIMITED: "yellow",
    AgentState.FAILED: "red",
    AgentState.BACKOFF: "red",
    AgentState.UNKNOWN: "yellow",
}


def print_json() -> None:
    """`ps --json` of the team that is found from here."""
    show(find_team(), json=True)


def show(found: Found, *, json: bool) -> None:
    """Print the team's status once."""
    now = time.time()
    fleet = status(found.paths, now)
    if fleet is None:
        raise UnknownNameError(f"{found.team} was never up", hint="nbs-fleet up FILE starts it")
    if json:
        output.json(as_json(fleet))
        return
    rows = [cells(row, now) for row in fleet.agents]
    output.table(rows, header=HEADER, right=(4, 5, 6, 7))
    output.say(_foot(fleet, now))
    if fleet.supervisor.state == "failed":
        for line in fleet.supervisor.lines:
            output.say("  ", line)


def as_json(fleet: FleetStatus) -> dict[str, Any]:
    """The documented shape of `ps --json`."""
    supervisor = fleet.supervisor
    return {
        "team": fleet.plan.team,
        "root": fleet.plan.root,
        "supervisor": {
            "state": supervisor.state,
            "pid": supervisor.pid,
            "since": iso(supervisor.since) if supervisor.since else None,
            "alarm": supervisor.alarm or None,
        },
        "tmux": "running" if fleet.tmux else "dead",
        "file_changed": fleet.file_changed,
        "agents": [row_json(row) for row in fleet.agents],
    }


def cells(row: AgentStatus, now: float) -> list[output.Piece]:
    """One row of the table; the last cell says what a person should know."""
    record, agent = row.record, row.plan.agent if row.plan else None
    since = span(max(0.0, now - record.since)) if record.since else ""
    return [
        row.handle,
        (agent.role if agent else None) or "",
        agent.driver if agent else "",
        output.Span(state(row), STYLES.get(row.state, "")),
        since,
        str(sum(record.unread.values())),
        str(record.queued),
        str(record.restarts),
        remark(row),
    ]


def state(row: AgentStatus) -> str:
    """The state with what belongs to it."""
    if row.state is AgentState.BLOCKED and row.record.blocked:
        return f"blocked: {row.record.blocked}"
    if row.state is AgentState.UNKNOWN and row.detail:
        return f"unknown ({row.detail})"
    return str(row.state)


def remark(row: AgentStatus) -> str:
    """What a person should know of an agent besides its state."""
    record = row.record
    if record.pending:
        return f"restarts when idle: {record.pending}"
    end = record.last_exit
    if row.state in (AgentState.FAILED, AgentState.BACKOFF) and end is not None:
        return f"{row.detail}; {end.explain()}" if row.detail else end.explain()
    if row.sidecar not in ("running", "none"):
        return f"sidecar {row.sidecar}"
    return "" if row.state is AgentState.UNKNOWN else row.detail


def _foot(fleet: FleetStatus, now: float) -> str:
    supervisor = fleet.supervisor
    text = f"supervisor {supervisor.state}"
    if supervisor.pid and supervisor.since:
        text += f" (pid {supervisor.pid}, {span(now - supervisor.since)})"
    parts = [text]
    if supervisor.state in ("dead", "failed") and any(r.alive for r in fleet.agents):
        parts.append("agents go on by themselves; nbs-fleet up FILE brings it back")
    if not fleet.tmux:
        parts.append("the team's tmux server is gone" if any(r.record.proc for r in fleet.agents) else "not up")
    if fleet.file_changed:
        parts.append("file changed since up")
    if supervisor.alarm:
        parts.append(supervisor.alarm)
    needy = sum(1 for row in fleet.agents if attention(row))
    if needy:
        parts.append(f"{needy} {'needs' if needy == 1 else 'need'} you")
    return "; ".join(parts)
