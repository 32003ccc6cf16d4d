"""`nbs-fleet why`: the state of one agent, and the observations it rests on."""

from __future__ import annotations

import time
from typing import Any

from nbs_fleet.cli import output, words
from nbs_fleet.cli.lookup import Found, find_handle, find_team
from nbs_fleet.cli.output import Piece, Span
from nbs_fleet.cli.params import Handle, Json, TeamName
from nbs_fleet.errors import UnknownNameError
from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.launch.processes import moment
from nbs_fleet.model import AgentState, BlockedKind, ExitKind
from nbs_fleet.supervisor.policy import within
from nbs_fleet.supervisor.status import AgentStatus, exit_json, iso, status

SHOWN = 10
"""Waiting messages that are listed."""


def why(handle: Handle, *, team: TeamName = None, json: Json = False) -> None:
    """Show why an agent is in its state: what was observed, by which source, and when.

    The sources stand strongest first. Below them: what it waits for, how it last ended, and how many starts it
    has left before it is given up.

    For example:
        nbs-fleet why ana
        nbs-fleet why ana --json
    """
    found = find_team(team)
    now = time.time()
    row = _row(found, find_handle(found, handle), now)
    if json:
        output.json(_facts(found, row))
        return
    output.say(*_head(row, now))
    output.table([*_lines(row), *_messages(found, row)], indent=2)
    end = row.record.last_exit
    if end is not None and end.kind is not ExitKind.STOPPED and not row.alive:
        output.table([[Span(line, "dim")] for line in end.lines if line.strip()], indent=4)


def _row(found: Found, handle: str, now: float) -> AgentStatus:
    fleet = status(found.paths, now)
    row = next((a for a in fleet.agents if a.handle == handle), None) if fleet else None
    if row is None:
        raise UnknownNameError(f"{found.team} was never up", hint="nbs-fleet up FILE starts it")
    return row


def _head(row: AgentStatus, now: float) -> list[Piece]:
    record = row.record
    if not record.since:
        return [Span("stopped"), ", never started"]
    if row.state is AgentState.UNKNOWN and record.state is not AgentState.UNKNOWN:
        # The supervisor is dead: what it last wrote is no longer knowledge.
        return [Span(f"unknown: {row.detail}", words.STYLES[AgentState.UNKNOWN])]
    head: list[Piece] = [Span(words.state(record), words.STYLES.get(record.state, ""))]
    head.append(f", for {words.span(now - record.since)}")
    if record.until:
        head.append(f", until {words.moment(record.until, now)}")
    return head


def _lines(row: AgentStatus) -> list[list[Piece]]:
    record = row.record
    lines: list[list[Piece]] = [
        [e.source.value, e.says, words.clock(e.at, millis=True) if e.at else "", e.detail] for e in record.evidence
    ]
    if record.detail and not any(record.detail in (e.says, e.detail) for e in record.evidence):
        lines.append(["because", record.detail])
    if record.blocked and row.plan is not None and record.blocked != BlockedKind.DRAFT:
        lines.append(["policy", f"{record.blocked}: {getattr(row.plan.agent.dialogs, record.blocked, 'ask')}"])
    if record.attention:
        lines.append(["attention", record.attention])
    if record.signal:
        lines.append(["signal", f"it says of itself: {record.signal}"])
    if record.pending:
        lines.append(["pending", f"restarts when next idle: {record.pending}"])
    if record.last_exit:
        lines.append(["last exit", record.last_exit.describe(), words.clock(record.last_exit.at, millis=True)])
    if row.plan is None:
        lines.append(["team file", "it is no longer in it; the next up stops it"])
    elif record.starts:
        lines.append(["restarts", _budget(row)])
    return lines


def _messages(found: Found, row: AgentStatus) -> list[list[Piece]]:
    """How messages reach it now, and those that wait."""
    lines: list[list[Piece]] = []
    if row.alive and row.record.rung:
        hint = "mail is armed" if row.record.rung == "mail" else "typed when it is idle"
        lines.append(["delivery", row.record.rung, "", hint])
    for parcel in Mailbox(found.paths.agent(row.handle)).waiting()[:SHOWN]:
        message = parcel.message
        lines.append(["waiting", f"{message.id} from {message.sender}", words.clock(message.created), parcel.place])
    return lines


def _budget(row: AgentStatus) -> str:
    if row.plan is None:
        return ""
    policy, used = row.plan.agent.restart, _used(row)
    text = f"{used} of {policy.max} starts within {words.span(policy.within)} used"
    return text if policy.policy == "on-failure" else f"{text} (policy {policy.policy})"


def _used(row: AgentStatus) -> int:
    now = moment()
    if row.plan is None or row.record.boot != now.boot:
        return 0
    return len(within(row.record.starts, now.mono, row.plan.agent.restart.within))


def _facts(found: Found, row: AgentStatus) -> dict[str, Any]:
    record, restart = row.record, row.plan.agent.restart if row.plan else None
    budget = restart and {
        "policy": restart.policy,
        "used": _used(row),
        "max": restart.max,
        "within": restart.within,
    }
    return {
        "team": found.team,
        "handle": record.handle,
        "state": row.state,
        "last_state": record.state,
        "blocked": record.blocked,
        "since": iso(record.since),
        "until": iso(record.until or 0.0),
        "detail": row.detail,
        "alive": row.alive,
        "evidence": [
            {"source": e.source, "says": e.says, "at": iso(e.at), "detail": e.detail} for e in record.evidence
        ],
        "attention": record.attention,
        "rung": record.rung,
        "waiting": [p.message.id for p in Mailbox(found.paths.agent(row.handle)).waiting()],
        "signal": record.signal,
        "pending": record.pending,
        "declared": row.plan is not None,
        "restarts": record.restarts,
        "budget": budget,
        "last_exit": exit_json(record),
    }
