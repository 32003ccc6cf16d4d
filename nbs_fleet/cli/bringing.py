"""What `up` does: validate, plan, compare, apply, wait; and its plain command lines, for which no parser is needed."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from nbs_fleet.cli import output, words
from nbs_fleet.cli.waiting import Waited, follow, is_up
from nbs_fleet.model import AgentState
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan, Step, Verb
from nbs_fleet.supervisor.bring_up import bring_up

if TYPE_CHECKING:
    from nbs_fleet.supervisor.prepare import Prepared

READY, TIMED_OUT, INTERRUPTED, NOT_READY = 0, 124, 130, 5
SECONDS = 60.0
"""How long agents are waited for unless it is said."""
FLAGS: dict[str, tuple[str, Any]] = {
    "--wait": ("wait", True),
    "--no-wait": ("wait", False),
    "--dry-run": ("dry_run", True),
    "--attach": ("attach", True),
    "--now": ("now", True),
    "--json": ("json", True),
}


def plain(line: list[str]) -> int | None:
    """Run a command line of one file and flags without values; None if it is another one, for the parser."""
    flags = dict(FLAGS[word] for word in line if word in FLAGS)
    files = [word for word in line if word not in FLAGS]
    if len(files) != 1 or files[0].startswith("-"):
        return None
    return bring(files[0], **flags)


def bring(
    file: str,
    *,
    only: tuple[str, ...] = (),
    wait: bool = True,
    timeout: float = SECONDS,
    dry_run: bool = False,
    attach: bool = False,
    driver: str | None = None,
    now: bool = False,
    json: bool = False,
) -> int:
    """Bring a team up; returns the exit code."""
    # Checking a team file takes what --help need not wait for.
    from nbs_fleet.supervisor.prepare import prepare

    began = time.monotonic()
    prepared = prepare(file, os.environ, only=only or None, now=now, driver=driver, remember=not dry_run)
    for warning in prepared.warnings:
        output.note(output.Span("warning: ", "yellow"), warning)
    chosen = handles_of(prepared, only)
    if dry_run:
        show_steps(prepared, json=json)
        return READY
    if not json:
        head = f"{prepared.plan.team}: {count(len(prepared.plan.agents), 'agent')} in "
        output.say(head, words.home(prepared.plan.root, os.path.expanduser("~")))
        for step in prepared.steps:
            if step.verb in (Verb.STOP, Verb.ORPHAN):
                output.say(f"  {step.handle}  {step.verb}: {', '.join(step.reasons)}")
    limit = tuple(chosen) if only else None
    for remark in bring_up(prepared, only=limit, now=now):
        output.note(output.Span("remark: ", "yellow"), remark)
    if not wait:
        return READY
    try:
        waited = _wait(prepared, chosen, timeout, began, json=json)
    except KeyboardInterrupt:
        output.note(f"interrupted; what was started goes on: nbs-fleet ps, nbs-fleet down --team {prepared.plan.team}")
        return INTERRUPTED
    code = _summary(prepared.plan, waited, time.monotonic() - began, json=json)
    if attach and chosen:
        _attach(prepared.plan, chosen[0])
    return code


def handles_of(prepared: Prepared, only: tuple[str, ...]) -> list[str]:
    """The handles that this `up` is about, in the order of the file."""
    agents = [a.agent for a in prepared.plan.agents]
    return [a.handle for a in agents if not only or a.handle in only or a.base in only]


def count(number: int, word: str) -> str:
    """`1 agent`, `5 agents`."""
    return f"{number} {word}" + ("" if number == 1 else "s")


def show_steps(prepared: Prepared, *, json: bool) -> None:
    """Print what would be done."""
    if json:
        output.json({"team": prepared.plan.team, "root": prepared.plan.root, "steps": list(prepared.steps)})
        return
    output.say(f"{prepared.plan.team}: {count(len(prepared.steps), 'step')}")
    output.table([_step(step) for step in prepared.steps], indent=2)


def _step(step: Step) -> list[str]:
    when = "when idle" if step.when_idle else ""
    session = "new session" if step.fresh and step.verb is Verb.RESTART else ""
    return [step.handle, str(step.verb), ", ".join(step.reasons), when, session]


def _wait(prepared: Prepared, chosen: list[str], timeout: float, began: float, *, json: bool) -> Waited:
    plan = prepared.plan
    verbs = {step.handle: step for step in prepared.steps}
    agents = {a.agent.handle: a for a in plan.agents}
    wide = _widths([agents[h] for h in chosen])

    def tell(handle: str, record: AgentRecord, took: float) -> None:
        if not json:
            output.say(*_line(agents[handle], record, verbs.get(handle), took, wide))

    waited = follow(plan.paths, plan, chosen, timeout=timeout, settled=is_up, tell=tell, began=began)
    for handle in waited.starting:
        record = waited.records.get(handle) or AgentRecord(handle)
        tell(handle, record, timeout)
    return waited


def _widths(agents: list[AgentPlan]) -> tuple[int, int, int]:
    handles = [output.width_of(a.agent.handle) for a in agents]
    roles = [output.width_of(a.agent.role or "") for a in agents]
    clients = [output.width_of(_client(a)) for a in agents]
    return (max(handles, default=0), max(roles, default=0), max(clients, default=0))


def _client(agent: AgentPlan) -> str:
    return f"{agent.agent.driver} {agent.agent.model}" if agent.agent.model else agent.agent.driver


def _line(
    agent: AgentPlan, record: AgentRecord, step: Step | None, took: float, wide: tuple[int, int, int]
) -> list[output.Piece]:
    word, style, more = _outcome(record, step, took)
    left = [agent.agent.handle, agent.agent.role or "", _client(agent)]
    cells: list[output.Piece] = ["  "]
    for text, width in zip(left, wide, strict=True):
        if width:
            cells += [output.pad(output.clean(text), width), "   "]
    return [*cells, output.Span(output.pad(word, 9), style), "  ", more]


def _outcome(record: AgentRecord, step: Step | None, took: float) -> tuple[str, str, str]:
    if record.pending and record.ready:
        return "kept", "yellow", f"restarts when idle: {record.pending}"
    if record.ready:
        return _success(step, took)
    if record.state is AgentState.BLOCKED:
        return "blocked", "yellow", f"{record.blocked} dialog    nbs-fleet attach {record.handle}"
    if record.state in (AgentState.FAILED, AgentState.BACKOFF, AgentState.STOPPED):
        end = record.last_exit
        ended = end.explain() if end else ""
        why = f"{record.detail}; {ended}" if record.detail and ended else record.detail or ended
        return str(record.state), "red", f"{why}    nbs-fleet why {record.handle}"
    return "starting", "yellow", record.detail


def _success(step: Step | None, took: float) -> tuple[str, str, str]:
    if step is not None and step.verb is Verb.RESTART:
        return "restarted", "green", ", ".join(step.reasons)
    if step is not None and step.verb in (Verb.KEEP, Verb.ADOPT):
        return "kept", "dim", ""
    return "ready", "green", f"{took:.1f} s"


def _summary(plan: Plan, waited: Waited, took: float, *, json: bool) -> int:
    ready = sum(1 for r in waited.records.values() if r.ready and r.handle in waited.took)
    needy = [h for h in waited.took if not waited.records[h].ready]
    code = TIMED_OUT if waited.starting else NOT_READY if needy else READY
    if json:
        agents = [
            {"handle": h, "state": r.state, "ready": r.ready, "blocked": r.blocked, "detail": r.detail}
            for h, r in waited.records.items()
        ]
        output.json({"team": plan.team, "root": plan.root, "seconds": round(took, 3), "code": code, "agents": agents})
        return code
    parts = [f"{ready} ready"]
    if needy:
        blocked = [h for h in needy if waited.records[h].state is AgentState.BLOCKED]
        parts += [f"{len(blocked)} {'needs' if len(blocked) == 1 else 'need'} you"] if blocked else []
        parts += [f"{len(needy) - len(blocked)} not running"] if len(needy) > len(blocked) else []
    if waited.starting:
        parts.append(f"{len(waited.starting)} still starting")
    output.say(f"up in {took:.1f} s: {', '.join(parts)}")
    return code


def _attach(plan: Plan, handle: str) -> None:
    argv = [sys.executable, "-I", "-m", "nbs_fleet", "attach", handle, "--team", plan.file]
    sys.stdout.flush()
    os.execv(argv[0], argv)  # noqa: S606 - the command becomes the other command
