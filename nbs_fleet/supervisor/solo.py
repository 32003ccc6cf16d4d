"""Runs one agent as a team of one, for as long as somebody looks at it: start, show, wait, clean up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FrameType

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.errors import FleetError, UsageError
from nbs_fleet.launch import processes, registry, rundir
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.locks import FileLock, holder
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.model import AgentState, Exit
from nbs_fleet.nbs import presence
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.solo import Wish, team_file
from nbs_fleet.plan.types import AgentRecord, Plan
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.bring_up import bring_up, reach
from nbs_fleet.supervisor.fleet import Ended
from nbs_fleet.supervisor.protocol import Request
from nbs_fleet.supervisor.take_down import take_down

OVER = (AgentState.STOPPED, AgentState.FAILED)
STOP_SECONDS = 10.0
LOOK_SECONDS = 0.2
"""How often it is looked whether the person has left: the end of a child is no news on the supervisor's socket."""
GOODBYE = (signal.SIGHUP, signal.SIGTERM)


class Outcome(Struct, frozen=True):
    """How it ended: the client's end, and whether it came by itself (else the person left first)."""

    end: Exit | None
    by_itself: bool

    @property
    def code(self) -> int:
        """The client's own exit code, as a shell tells it; 1 where it had none, 0 for one that was left."""
        if self.end is not None and self.end.code is not None:
            return self.end.code
        if self.end is not None and self.end.signal is not None and self.by_itself:
            return 128 + self.end.signal
        return 1 if self.by_itself else 0


def run(wished: Wish, environ: Mapping[str, str], *, terminal: bool) -> Outcome:
    """Start the agent, show it here if there is a `terminal`, wait until it or the person leaves, leave nothing.

    Raises FleetError if the handle is in use in this root, or if the agent can't be started.
    """
    wished = replace(wished, root=os.path.realpath(wished.root))
    if not os.path.isdir(wished.root):
        raise UsageError(f"{wished.root} is no folder")
    content = team_file(wished, registry.names())
    presence.refuse_foreign(wished.root, wished.handle)
    paths = rundir.run_paths(wished.root, wished.team, environ)
    with _alone(wished, paths):
        plan: Plan | None = None
        ended: list[Ended] = []
        outcome: Outcome | None = None
        try:
            with _goodbyes():
                plan = _start(wished, paths, content, environ)
                outcome = _stay(plan, wished.handle, terminal=terminal)
        finally:
            with _undisturbed():
                if plan is not None:
                    take_down(plan, timeout=STOP_SECONDS, purge=False, tell_one=ended.append)
                rundir.purge(paths, wished.root)
    if outcome.by_itself or not ended:
        return outcome
    return Outcome(ended[0].end, by_itself=False)


@contextmanager
def _alone(wished: Wish, paths: RunPaths) -> Iterator[None]:
    """Hold the handle; what lives under it already is named."""
    rundir.prepare(paths, wished.root)
    path = os.path.join(paths.run, "solo.lock")
    lock = FileLock(path)
    if not lock.try_acquire():
        owner = holder(path)
        who = f"pid {owner.pid}" if owner else "unknown pid"
        raise FleetError(
            f"{wished.handle} runs already in {wished.root}: by another solo ({who})",
            hint="choose another handle with --handle",
        )
    try:
        for record in store.read_records(paths):
            if record.proc is not None and processes.alive(record.proc):
                raise FleetError(
                    f"{wished.handle} still runs (pid {record.proc.pid}): the solo that began it was killed",
                    hint=f"nbs-fleet down --team {wished.team} --purge",
                )
        yield
    finally:
        lock.release()


def _start(wished: Wish, paths: RunPaths, content: Mapping[str, object], environ: Mapping[str, str]) -> Plan:
    # Checking a team file takes pydantic, which --help need not wait for.
    from nbs_fleet.supervisor.prepare import prepare  # noqa: PLC0415

    file = os.path.join(paths.run, "solo.yaml")
    # JSON is YAML too, and needs no library for it.
    write_atomic(file, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    if wished.session is not None:
        store.make_folders(paths, wished.handle)
        store.write_record(paths, AgentRecord(wished.handle, session_id=wished.session))
    prepared = prepare(file, environ, remember=True)
    with ExitStack() as undo:
        undo.callback(take_down, prepared.plan, timeout=STOP_SECONDS, purge=False, tell_one=lambda _: None)
        bring_up(prepared, only=None, now=False)
        _refuse_other_session(wished, store.read_record(paths, wished.handle))
        undo.pop_all()
    return prepared.plan


def _refuse_other_session(wished: Wish, record: AgentRecord | None) -> None:
    """A session that was asked for and that has no turn was not gone on with."""
    if wished.session is not None and record is not None and record.session_id != wished.session:
        raise FleetError(f"there is no session {wished.session} to go on with")


def _stay(plan: Plan, handle: str, *, terminal: bool) -> Outcome:
    """Show the pane and wait for the end of either."""
    record = store.read_record(plan.paths, handle)
    view: subprocess.Popen[bytes] | None = None
    if terminal and record is not None and record.pane is not None and record.proc is not None:
        view = subprocess.Popen(Tmux(plan.paths.tmux).attach_argv(record.pane))
    try:
        return _wait(plan, handle, view)
    finally:
        if view is not None and view.poll() is None:
            # Politely, so that it gives the terminal back as it was.
            view.terminate()
            try:
                view.wait(5.0)
            except subprocess.TimeoutExpired:
                view.kill()
                view.wait()


def _wait(plan: Plan, handle: str, view: subprocess.Popen[bytes] | None) -> Outcome:
    while True:
        link = reach(plan.paths)
        try:
            link.ask(Request("follow"))
            for change in link.changes(LOOK_SECONDS):
                record = change.record if change is not None else None
                if record is not None and record.handle == handle and record.proc is None and record.state in OVER:
                    return Outcome(record.last_exit, by_itself=True)
                if view is not None and view.poll() is not None:
                    return Outcome(None, by_itself=False)
        finally:
            link.close()
        # The supervisor ended; another one takes over, unless tmux is gone with all panes.
        if Tmux(plan.paths.tmux).server_pid() is None:
            raise FleetError(f"{handle}: its tmux server died")


@contextmanager
def _goodbyes() -> Iterator[None]:
    """A closed terminal or a polite signal ends what runs inside by SystemExit, so that it is cleaned up."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in GOODBYE}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Whoever cleans up is not to be stopped in it."""
    numbers = (*GOODBYE, signal.SIGINT)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
