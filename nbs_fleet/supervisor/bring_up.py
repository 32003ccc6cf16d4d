"""Brings a prepared plan about: files, tmux, first starts, supervisor; queued on up.lock."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nbs_fleet import __version__
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import processes, rundir
from nbs_fleet.launch.environment import write_values
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.layout import SHELL
from nbs_fleet.launch.locks import FileLock
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.tmux_text import line, session_target
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.plan.addresses import addresses
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentRecord, Plan
from nbs_fleet.plan.wrappers import FAILED
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.client import Connection, LeavingSupervisorError, connection
from nbs_fleet.supervisor.decide import decide
from nbs_fleet.supervisor.fleet import (
    Action,
    AwaitRest,
    Event,
    Fleet,
    Launched,
    LaunchedAll,
    Loaded,
    Save,
    Start,
    StartOne,
)
from nbs_fleet.supervisor.notes import Notes
from nbs_fleet.supervisor.protocol import Request
from nbs_fleet.supervisor.rendering import own_files
from nbs_fleet.supervisor.resting import PAUSES, rested
from nbs_fleet.supervisor.starter import Starter
from nbs_fleet.supervisor.takeover import first_events

if TYPE_CHECKING:
    from nbs_fleet.supervisor.prepare import Prepared

QUEUE_SECONDS = 120.0
"""How long an `up` or `down` waits for the one before it."""
SOCKET_SECONDS = 30.0
"""How long a supervisor may take from its start to its first answer."""
WINDOW = "fleet"


def bring_up(prepared: Prepared, *, only: tuple[str, ...] | None, now: bool) -> tuple[str, ...]:
    """Make it so, as far as starts go; returns remarks. The supervisor runs and knows the plan afterwards."""
    plan = prepared.plan
    paths = plan.paths
    refuse_foreign_handles(plan)
    remarks = rundir.prepare(paths, plan.root)
    lock = FileLock(paths.up_lock)
    lock.acquire(QUEUE_SECONDS)
    try:
        # A `down` that was just finishing may have taken the folders away again.
        remarks = rundir.prepare(paths, plan.root)
        # A damaged plan is written anew, unless parts of it are to stay.
        plan = merged(plan, store.read_plan(paths) if only else None, only)
        _yield_if_older(paths)
        owner = FileLock(paths.lock)
        if owner.try_acquire():
            try:
                write_files(plan, prepared, only)
                tmux = ensure_server(plan)
                apply_here(plan, tmux, only=only, now=now)
            finally:
                owner.release()
            ask_apply(paths, only=only, now=now, up=False)
        else:
            write_files(plan, prepared, only)
            ask_apply(paths, only=only, now=now, up=True)
    finally:
        lock.release()
    return remarks


def merged(plan: Plan, before: Plan | None, only: tuple[str, ...] | None) -> Plan:
    """The plan in which only `only` differs from the one before."""
    if only is None or before is None:
        return plan
    kept = {a.agent.handle: a for a in before.agents}
    agents = [
        a if a.agent.handle in only else kept[a.agent.handle] for a in plan.agents if a.agent.handle in {*only, *kept}
    ]
    agents += [a for a in before.agents if plan.find(a.agent.handle) is None]
    return replace(plan, agents=tuple(agents))


def write_files(plan: Plan, prepared: Prepared, only: tuple[str, ...] | None) -> None:
    """Write plan, wrappers, tmux.conf and each agent's values (secret, 0600)."""
    paths = plan.paths
    for path, file in own_files(plan).items():
        write_atomic(path, file.data, file.mode)
    for agent in plan.agents:
        handle = agent.agent.handle
        if handle in prepared.environments and (only is None or handle in only):
            write_values(paths.agent(handle).values, prepared.environments[handle], prepared.hidden[handle])
    if known := addresses(prepared.team):
        write_values(paths.addresses, known)
    make_channels(plan)
    store.write_plan(paths, plan)


def make_channels(plan: Plan) -> None:
    """Make the chats and event folders that the team file names and that are missing."""
    for chat in plan.chats:
        os.makedirs(os.path.dirname(chat.path), exist_ok=True)
        if not os.path.lexists(chat.path):
            try:
                Chat(chat.path).create()
            except NbsFileError:
                # Somebody else may have made it just now; if not, it is an error.
                if not os.path.lexists(chat.path):
                    raise
    for folder in {*plan.bus, *(bus for a in plan.agents for bus in a.agent.bus)}:
        os.makedirs(folder, exist_ok=True)


def ensure_server(plan: Plan) -> Tmux:
    """A tmux server with a supervisor window; one that waits out a pause is started anew at once."""
    paths = plan.paths
    tmux = Tmux(paths.tmux, paths.tmux_conf)
    command = [SHELL, paths.supervise]
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(paths.run, FAILED))
    if tmux.find_server() is None or not tmux.has_session(plan.team):
        with suppress(FileNotFoundError):
            os.unlink(paths.began)
        tmux.start(plan.team, plan.layout.size, command, server_environment(os.environ))
        return tmux
    window = next((p for p in tmux.panes() if p.window == WINDOW and not p.handle), None)
    if window is None:
        where = f"{session_target(plan.team)}:"
        tmux.source([line("new-window", "-d", "-t", where, "-n", WINDOW, "--", *command)])
    else:
        tmux.source([line("respawn-pane", "-k", "-t", window.id, "--", *command)])
    return tmux


def server_environment(caller: os._Environ[str]) -> dict[str, str]:
    """What the tmux server gets: enough for a shell, nothing of the caller's session (agents get theirs by launch.sh)."""
    kept = ("HOME", "USER", "LOGNAME", "PATH", "TZ", "LANG", "LC_ALL", "LC_CTYPE")
    env = {name: caller[name] for name in kept if name in caller}
    return {"PATH": os.defpath, **env, "SHELL": SHELL, "TERM": "xterm-256color"}


def apply_here(plan: Plan, tmux: Tmux, *, only: tuple[str, ...] | None, now: bool) -> None:
    """The first starts, by the very policy that the supervisor goes on with; the caller holds the lock."""
    fleet = Fleet()
    starter = Starter(plan, tmux)
    notes = Notes(plan.paths)
    events: deque[Event] = deque((*first_events(plan, tmux), Loaded(plan, only=only, now=now, up=True)))
    try:
        while events:
            fleet, actions, changed = _decide_all(fleet, events, notes)
            starts = tuple(one for action in actions if isinstance(action, Start) for one in action.starts)
            launched = _start(starter, starts, changed, notes)
            if launched:
                events.append(LaunchedAll(launched))
            for action in actions:
                if isinstance(action, AwaitRest):
                    # Those of this very batch as well: else they would be looked at one round later, which starts next to none.
                    fresh = {one.handle: one.proc for one in launched if one.proc is not None}
                    if (found := rested(AwaitRest(action.clients | fresh), PAUSES[:2], notes.pause)).clients:
                        # Clients that rest at once are cheap; for others the supervisor waits, and a person need not.
                        events.append(found)
    finally:
        notes.close()


def _decide_all(
    fleet: Fleet, events: deque[Event], notes: Notes
) -> tuple[Fleet, tuple[Action, ...], dict[str, AgentRecord]]:
    """Decide on all events: the fleet, what is to be done, and the records that changed, as they are in the end."""
    actions: list[Action] = []
    changed: dict[str, AgentRecord] = {}
    while events:
        instant = moment()
        before = fleet.lives
        fleet, more = decide(fleet, events.popleft(), instant)
        actions.extend(more)
        for action in more:
            if isinstance(action, Save) and not action.gone:
                record = changed[action.record.handle] = action.record
                old = before.get(record.handle)
                notes.add(old.record if old else None, record, instant)
    return fleet, tuple(actions), changed


def _start(
    starter: Starter, starts: tuple[StartOne, ...], changed: dict[str, AgentRecord], notes: Notes
) -> tuple[Launched, ...]:
    """Write the records that changed, once, and start."""
    starting = {one.handle for one in starts}
    # Else the start writes it, with the session that it chooses. Whoever waits is on disk first: should this process
    # die, the supervisor starts them all.
    for handle, record in changed.items():
        if handle not in starting:
            os.makedirs(starter.plan.paths.agent(handle).dir, mode=0o700, exist_ok=True)
            store.put_record(starter.plan.paths, record)
    for one in starts:
        notes.write(one.handle)
    return starter.start(starts, changed) if starts else ()


def ask_apply(paths: RunPaths, *, only: tuple[str, ...] | None, now: bool, up: bool) -> None:
    """Tell the supervisor that there is a plan; waits until it answers."""
    link = reach(paths)
    try:
        link.ask(Request("apply", handles=only, now=now, up=up))
    finally:
        link.close()


def reach(paths: RunPaths, seconds: float = SOCKET_SECONDS) -> Connection:
    """A connection to the supervisor, which may just be starting, or start others: it has as long for each answer."""
    # It takes asyncio; by now the agents of an `up` are starting, and need not wait for that.
    import tenacity  # noqa: PLC0415

    waiting = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(OSError),
        wait=tenacity.wait_exponential(multiplier=0.01, max=0.1),
        stop=tenacity.stop_after_delay(seconds),
    )
    try:
        return waiting(Connection, paths, timeout=seconds)
    except tenacity.RetryError as error:
        raise FleetError(
            f"the supervisor has not come up within {seconds:g} s",
            hint=f"its log: {paths.log}",
        ) from error


def _yield_if_older(paths: RunPaths) -> None:
    """A supervisor of another version makes room; agents are not touched."""
    try:
        with connection(paths) as link:
            if link.ask(Request("ping")).version == __version__:
                return
            link.wait(SOCKET_SECONDS)
            link.ask(Request("yield"))
    except (OSError, LeavingSupervisorError):
        return
    owner = FileLock(paths.lock)
    owner.acquire(SOCKET_SECONDS)
    owner.release()


def refuse_foreign_handles(plan: Plan) -> None:
    """One root may hold several teams if their handles differ."""
    ours = {a.agent.handle.casefold(): a.agent.handle for a in plan.agents}
    for team in rundir.known_teams(os.environ):
        if team.root != plan.root or team.team == plan.team:
            continue
        for record in store.read_records(rundir.run_paths(team.root, team.team, os.environ)):
            handle = ours.get(record.handle.casefold())
            if handle and record.proc is not None and processes.alive(record.proc):
                raise FleetError(
                    f"{handle} already runs in team {team.team} of the same root",
                    hint=f"nbs-fleet stop {record.handle} --team {team.team}, or choose another handle",
                )
