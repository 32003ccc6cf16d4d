"""`nbs-fleet restart`, `stop` and `start`: a person's wishes for single agents."""

from __future__ import annotations

from typing import Annotated

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.guard import require_person
from nbs_fleet.cli.lookup import Found, find_handles, find_team
from nbs_fleet.cli.params import MINUTE, Handles, Json, TeamName, Timeout
from nbs_fleet.cli.waiting import follow, is_down, is_up
from nbs_fleet.launch.locks import holder
from nbs_fleet.model import AgentState
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.supervisor.bring_up import ensure_server, reach
from nbs_fleet.supervisor.protocol import Request

Fresh = Annotated[bool, typer.Option("--fresh", help="in a new session, with its prompt")]


def restart(
    handle: Handles, *, fresh: Fresh = False, timeout: Timeout = MINUTE, json: Json = False, team: TeamName = None
) -> int:
    """Restart agents now, in the session they have; what had failed gets a new chance.

    For example:
        nbs-fleet restart ana
        nbs-fleet restart bo-1 bo-2 --fresh
    """
    found = find_team(team)
    require_person(found)
    return ask("restart", find_handles(found, handle), found, fresh=fresh, json=json, timeout=timeout)


def stop(handle: Handles, *, timeout: Timeout = MINUTE, json: Json = False, team: TeamName = None) -> int:
    """Stop agents; they stay stopped until start, restart or up.

    For example:
        nbs-fleet stop bo
    """
    found = find_team(team)
    require_person(found)
    return ask("stop", find_handles(found, handle), found, json=json, timeout=timeout)


def start(handle: Handles, *, timeout: Timeout = MINUTE, json: Json = False, team: TeamName = None) -> int:
    """Start agents that were stopped or have failed; one that runs is left alone.

    For example:
        nbs-fleet start bo
    """
    found = find_team(team)
    return ask("start", find_handles(found, handle), found, json=json, timeout=timeout)


def ask(verb: str, handles: tuple[str, ...], found: Found, *, json: bool, timeout: float, fresh: bool = False) -> int:
    """Pass a wish to the supervisor (started if it is dead) and wait for what comes of it."""
    plan = found.plan()
    if holder(found.paths.lock) is None:
        ensure_server(plan)
    link = reach(found.paths)
    try:
        link.ask(Request(verb, handles=handles, fresh=fresh))
    finally:
        link.close()

    def tell(handle: str, record: AgentRecord, took: float) -> None:
        if not json:
            output.say(f"  {handle}  ", *_word(record, took))

    settled = is_down if verb == "stop" else is_up
    waited = follow(found.paths, plan, handles, timeout=timeout, settled=settled, tell=tell)
    if json:
        agents = [
            {"handle": h, "state": waited.records[h].state, "ready": waited.records[h].ready}
            for h in handles
            if h in waited.records
        ]
        output.json({"team": found.team, "agents": agents})
    if waited.starting:
        output.note(f"still on the way after {timeout:g} s: {', '.join(waited.starting)}")
        return 124
    return 0 if verb == "stop" or all(waited.records[h].ready for h in waited.took) else 5


def _word(record: AgentRecord, took: float) -> tuple[output.Piece, ...]:
    if record.ready:
        return (output.Span("ready", "green"), f"  {took:.1f} s")
    if record.state is AgentState.BLOCKED:
        return (output.Span(f"blocked: {record.blocked}", "yellow"), f"    nbs-fleet attach {record.handle}")
    if record.state is AgentState.STOPPED:
        return (output.Span("stopped", "dim"), f"  {record.last_exit.describe() if record.last_exit else ''}")
    return (output.Span(str(record.state), "red"), f"  {record.detail}    nbs-fleet why {record.handle}")
