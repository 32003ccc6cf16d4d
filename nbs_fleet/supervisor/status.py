"""What `ps` shows: the records held against the processes, with or without a live supervisor."""

from __future__ import annotations

import math
import os
from typing import Any

from msgspec import Struct

from nbs_fleet.attention import needs
from nbs_fleet.jsontext import seconds
from nbs_fleet.launch import processes
from nbs_fleet.launch.locks import holder
from nbs_fleet.model import AgentState
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.plan.wrappers import FAILED
from nbs_fleet.sidecar.states import LIVE
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.client import LeavingSupervisorError, connection
from nbs_fleet.supervisor.protocol import Answer, Request


class SupervisorStatus(Struct, frozen=True):
    """`state` is running, starting, dead or failed; `lines` say why it failed."""

    state: str
    pid: int | None = None
    since: float | None = None
    lines: tuple[str, ...] = ()
    alarm: str = ""


class AgentStatus(Struct, frozen=True):
    """One row of `ps`. `age`: seconds since the state was last confirmed; None if nobody can say."""

    handle: str
    plan: AgentPlan | None
    record: AgentRecord
    state: AgentState
    detail: str
    age: float | None
    alive: bool
    sidecar: str


class FleetStatus(Struct, frozen=True):
    """The whole team as it is now."""

    plan: Plan
    supervisor: SupervisorStatus
    tmux: bool
    """Whether the team's tmux server runs."""
    file_changed: bool
    agents: tuple[AgentStatus, ...]


def status(paths: RunPaths, now: float) -> FleetStatus | None:
    """The team's status at wall time `now`; None before its first `up`. A silent supervisor is an error."""
    plan = store.read_plan(paths)
    if plan is None:
        return None
    supervisor, answer = supervisor_status(paths)
    records = {r.handle: r for r in store.read_records(paths)}
    handles = [a.agent.handle for a in plan.agents]
    handles += [h for h in records if h not in handles]
    rows = tuple(_row(plan, records.get(h) or AgentRecord(h), answer, now) for h in handles)
    return FleetStatus(plan, supervisor, tmux_runs(paths), file_changed(plan), rows)


def supervisor_status(paths: RunPaths) -> tuple[SupervisorStatus, Answer | None]:
    """The supervisor's state, and its own answer if it runs."""
    owner = holder(paths.lock)
    if owner is None:
        failed = _lines(os.path.join(paths.run, FAILED))
        return SupervisorStatus("failed" if failed else "dead", lines=failed), None
    try:
        with connection(paths) as link:
            answer = link.ask(Request("ping"))
    except (OSError, LeavingSupervisorError):
        return SupervisorStatus("starting", pid=owner.pid), None
    return SupervisorStatus("running", answer.pid, answer.since, alarm=answer.alarm or ""), answer


def tmux_runs(paths: RunPaths) -> bool:
    """Whether someone answers on the team's tmux socket."""
    from nbs_fleet.launch.tmux import Tmux  # noqa: PLC0415 - only here, so that status stays light

    return Tmux(paths.tmux, paths.tmux_conf).server_pid() is not None


def file_changed(plan: Plan) -> bool:
    """Whether the team file (with what it includes) is another than at `up`."""
    return any(digest_of(path) != digest for path, digest in plan.sources.items())


def digest_of(path: str) -> str:
    """A digest of a file's bytes; empty if it can't be read."""
    import hashlib  # noqa: PLC0415 - a command that compares nothing does not load it

    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:16]
    except OSError:
        return ""


def _row(plan: Plan, record: AgentRecord, answer: Answer | None, now: float) -> AgentStatus:
    alive = record.proc is not None and processes.alive(record.proc)
    agent = plan.find(record.handle)
    if answer is not None:
        sidecar = (answer.sidecars or {}).get(record.handle, "running" if alive else "none")
        return AgentStatus(record.handle, agent, record, record.state, record.detail, 0.0, alive, sidecar)
    state, detail, age = record.state, record.detail, None
    if record.state in LIVE or record.state is AgentState.BACKOFF:
        since = max(0.0, now - record.since)
        state = AgentState.UNKNOWN
        detail = f"last {record.state}, {span(since)}" if alive else f"its process is gone; last {record.state}"
        age = since
    return AgentStatus(record.handle, agent, record, state, detail, age, alive, "none")


def row_json(row: AgentStatus) -> dict[str, Any]:
    """One agent of `ps --json`; the shape is documented and stable."""
    record = row.record
    live = row.alive
    return {
        "handle": row.handle,
        "role": row.plan.agent.role if row.plan else None,
        "driver": row.plan.agent.driver if row.plan else None,
        "state": str(row.state),
        "detail": row.detail,
        "since": iso(record.since),
        "blocked": record.blocked,
        "ready": record.ready and live,
        "until": iso(record.until) if record.until else None,
        "rung": record.rung if live else None,
        "age": row.age,
        "pid": record.proc.pid if record.proc and live else None,
        "pane": record.pane,
        "window": row.plan.window if row.plan else None,
        "session_id": record.session_id,
        "restarts": record.restarts,
        "last_exit": exit_json(record),
        "pending": record.pending,
        "sidecar": row.sidecar,
        "unread": record.unread,
        "events": record.events,
        "queued": record.queued,
        "signal": record.signal,
        "tokens": sum(record.tokens.values()),
        "context": record.context or None,
        "model": record.model or None,
        "attention": attention(row),
    }


def attention(row: AgentStatus) -> str | None:
    """Why a person is needed, in a few words, by the table behind the attention queue; None if not."""
    if row.state is AgentState.UNKNOWN:
        return row.record.attention
    found = needs.seen(row.record, math.inf).needs
    if not found:
        return None
    return f"{found[0].kind} dialog" if found[0].kind in needs.DIALOGS else f"{found[0].kind}: {found[0].title}"


def exit_json(record: AgentRecord) -> dict[str, Any] | None:
    """The last end of an agent's client."""
    end = record.last_exit
    if end is None:
        return None
    return {
        "kind": str(end.kind),
        "code": end.code,
        "signal": end.signal,
        "at": iso(end.at),
        "lines": list(end.lines),
    }


def iso(at: float) -> str | None:
    """Wall seconds as an ISO time in UTC; None for never."""
    from datetime import UTC, datetime  # noqa: PLC0415 - keeps the start of other commands short

    if not (at := seconds(at)):
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span(seconds: float) -> str:
    """`12s`, `4m`, `2h`, `3d`: a duration for one column of a table."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def _lines(path: str) -> tuple[str, ...]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return tuple(file.read(20_000).splitlines()[-25:])
    except OSError:
        return ()
