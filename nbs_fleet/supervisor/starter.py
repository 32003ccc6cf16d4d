"""Starts clients: session, files, script, pane; all panes of a batch in one call. Blocking; run it in a thread."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping

import msgspec

from nbs_fleet.drivers.base import Driver, Facts
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import processes, registry, skills
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.layout import PaneWanted, start_lines
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.launch.needs import put_in
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.model import PERSON, Exit, ExitKind, Message, MessageKind
from nbs_fleet.nbs import presence
from nbs_fleet.plan.paths import AgentPaths
from nbs_fleet.plan.script import launch_script
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.sidecar.sources import size_of, transcript_of
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.exits import read_end
from nbs_fleet.supervisor.facts import choose_session, live_owner, with_message
from nbs_fleet.supervisor.fleet import Launched, StartOne
from nbs_fleet.supervisor.rendering import agent_files

RESUME_FILE = "resume.md"
PROMPT_TYPE = "prompt"


class Ready(msgspec.Struct, frozen=True):
    """One agent whose files are written and whose pane can be made."""

    plan: AgentPlan
    facts: Facts
    sessions: tuple[str, ...]
    transcript_from: int


class Starter:
    """Starts agents of one plan in the team's tmux server.

    The panes that one batch of starts finds are those that the next one goes by: it is for batches that follow each
    other at once, and whoever starts more later makes a new one.
    """

    def __init__(self, plan: Plan, tmux: Tmux) -> None:
        self.plan, self.tmux = plan, tmux
        self._seen: tuple[Pane, ...] | None = None

    def start(
        self, starts: tuple[StartOne, ...], records: Mapping[str, AgentRecord] | None = None
    ) -> tuple[Launched, ...]:
        """Start all of them; each comes to a process or to the reason why not.

        `records`, where they are given, are newer than those on disk.
        """
        ready: list[Ready] = []
        results: list[Launched] = []
        for one in starts:
            agent = self.plan.find(one.handle)
            if agent is None:
                results.append(_failed(one.handle, "it left the team file"))
                continue
            try:
                record = (records or {}).get(one.handle) or store.read_record(self.plan.paths, one.handle)
                ready.append(self._prepare(agent, one, record or AgentRecord(one.handle)))
            except FleetError as error:
                results.append(_failed(one.handle, error.message, error.hint))
        if ready:
            results.extend(self._open(ready))
        return tuple(results)

    def _prepare(self, agent: AgentPlan, one: StartOne, record: AgentRecord) -> Ready:
        """Choose the session and write every file of this start."""
        paths = self.plan.paths
        handle = agent.agent.handle
        driver = registry.of(agent.agent)
        facts = choose_session(driver, self.plan, agent, record, fresh=one.fresh)
        message = f"[nbs-fleet] You were restarted ({one.cause}). Go on with what you were doing." if one.cause else ""
        if facts.resume and message and driver.capabilities.resume_prompt:
            facts = with_message(facts)
        _guard(driver, facts)
        presence.refuse_foreign(self.plan.root, handle)
        self._write(agent, driver, facts, message)
        box = Mailbox(paths.agent(handle))
        if facts.resume and message and not facts.has_prompt:
            queue_text(box, Message("", handle, "fleet", message, time.time(), kind=MessageKind.NUDGE))
        if agent.prompt is not None and not (driver.capabilities.prompt or facts.resume):
            queue_text(box, Message("", handle, PERSON, agent.prompt, time.time(), type=PROMPT_TYPE))
        sessions = record.sessions
        if record.session_id and record.session_id != facts.session_id:
            sessions = (*(s for s in sessions if s != record.session_id), record.session_id)[-20:]
        # Known before the client runs: whoever adopts it after a crash of ours knows its session.
        size = size_of(transcript_of(driver.places(facts))) if facts.has_prompt else 0
        intent = msgspec.structs.replace(record, session_id=facts.session_id, sessions=sessions, transcript_from=size)
        store.put_record(paths, intent)
        return Ready(agent, facts, sessions, size)

    def _write(self, agent: AgentPlan, driver: Driver, facts: Facts, message: str) -> None:
        paths = self.plan.paths.agent(agent.agent.handle)
        store.make_folders(self.plan.paths, agent.agent.handle)
        if not facts.resume:
            forget_signals(paths)
        launch = driver.launch(facts)
        if launch.dropped:
            store.story(self.plan.paths, agent.agent.handle).tell(
                time.time(),
                "flags dropped",
                flags=launch.dropped,
                why="the client knows none such, or they are the fleet's own",
            )
        put_in(driver, facts, agent)
        place = None if driver.capabilities.shared_skills else driver.skills_dir(facts)
        skills.deploy(paths.skills, place, agent.skills)
        settings = json.dumps(driver.settings(facts), indent=1, ensure_ascii=False)
        for path, text in ({facts.settings_path: settings} | launch.files).items():
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            write_atomic(path, text)
        prompt: str | None = None
        if facts.has_prompt:
            prompt = os.path.join(paths.dir, RESUME_FILE) if facts.resume else paths.prompt
            write_atomic(prompt, message if facts.resume else agent.prompt or "")
        script = launch_script(
            handle=agent.agent.handle,
            team=self.plan.team,
            root=self.plan.root,
            launch=launch,
            values_path=paths.values,
            prompt_path=prompt,
            dir=agent.agent.dir,
            run=self.plan.paths.run,
            bin=self.plan.paths.bin,
            umask=self.plan.umask,
        )
        write_atomic(paths.launch, script, mode=0o700)

    def _open(self, ready: list[Ready]) -> list[Launched]:
        wanted = [
            PaneWanted(
                handle=r.plan.agent.handle,
                window=r.plan.window,
                slot=r.plan.slot,
                script=self.plan.paths.agent(r.plan.agent.handle).launch,
            )
            for r in ready
        ]
        handles = {want.handle for want in wanted}
        # Their clients are known to be gone; a child that keeps the terminal open does not make a pane alive.
        seen = self.tmux.panes() if self._seen is None else self._seen
        before = tuple(msgspec.structs.replace(p, dead=True) if p.handle in handles else p for p in seen)
        # Looked at anew, should this one fail in part.
        self._seen = None
        self._seen = self.tmux.source_and_look(start_lines(self.plan.team, wanted, before, self.plan.layout))
        after = {pane.handle: pane for pane in self._seen if pane.handle}
        return [self._result(r, after.get(r.plan.agent.handle)) for r in ready]

    def _result(self, ready: Ready, pane: Pane | None) -> Launched:
        handle = ready.plan.agent.handle
        if pane is None:
            return _failed(handle, "tmux made no pane for it")
        proc = None if pane.dead else processes.identify(pane.pid)
        if proc is None or not processes.alive(proc):
            end = self._end_of(ready, pane)
            return Launched(handle, pane=pane.id, session_id=ready.facts.session_id, end=end, sessions=ready.sessions)
        return Launched(
            handle,
            proc=proc,
            pane=pane.id,
            session_id=ready.facts.session_id,
            sessions=ready.sessions,
            fields=ready.plan.fields,
            resumed=ready.facts.resume,
            prompted=ready.facts.has_prompt,
            transcript_from=ready.transcript_from,
        )

    def _end_of(self, ready: Ready, pane: Pane) -> Exit:
        driver = registry.of(ready.plan.agent)
        dead = settled_pane(self.tmux, pane.id) or pane
        handle = ready.plan.agent.handle
        rows = store.masked(self.plan.paths, handle, self.tmux.capture(pane.id, history=200))
        store.keep_capture(self.plan.paths, handle, time.time(), rows)
        return read_end(driver, dead, rows, time.time())


def queue_text(box: Mailbox, message: Message) -> None:
    """What a client takes none of with its start, as a message (its id is chosen here); one that waits is not doubled."""
    waits = ((p.message.kind, p.message.type, p.message.text) for p in box.waiting())
    if (message.kind, message.type, message.text) not in waits:
        identity = new_id(message.kind, message.created, int.from_bytes(os.urandom(8)))
        box.accept(msgspec.structs.replace(message, id=identity))


def forget_signals(paths: AgentPaths) -> None:
    """A new session has said nothing of itself yet."""
    for name in ("signal.json", "turn", "stops.json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(paths.dir, name))


def refresh_files(plan: Plan, agent: AgentPlan, record: AgentRecord) -> None:
    """Write settings and policies of a running agent anew; clients read them again by themselves."""
    for path, file in agent_files(plan, agent, record).items():
        write_atomic(path, file.data, file.mode)


def settled_pane(tmux: Tmux, pane_id: str) -> Pane | None:
    """The pane once tmux has its exit status (nudged: Debian's 3.3a loses it), or as it is after a second."""
    # It takes asyncio, which an `up` whose agents live need not wait for.
    import tenacity  # noqa: PLC0415

    def look() -> Pane | None:
        found = next((p for p in tmux.panes() if p.id == pane_id), None)
        if found is not None and (not found.dead or (found.status is None and found.signal is None)):
            tmux.nudge_sigchld(drained=found.dead)
            raise tenacity.TryAgain
        return found

    waiting = tenacity.Retrying(
        wait=tenacity.wait_exponential(multiplier=0.005, max=0.1), stop=tenacity.stop_after_delay(1.0)
    )
    try:
        return waiting(look)
    except tenacity.RetryError:
        return next((p for p in tmux.panes() if p.id == pane_id), None)


def _guard(driver: Driver, facts: Facts) -> None:
    owner = live_owner(driver, facts)
    if owner is not None:
        raise FleetError(
            f"session {facts.session_id} is open in another client (pid {owner})",
            hint="end that client, or begin afresh with `nbs-fleet restart --fresh`",
        )


def _failed(handle: str, message: str, hint: str | None = None) -> Launched:
    lines = tuple(line for line in (message, hint) if line)
    return Launched(handle, end=Exit(ExitKind.REFUSED, time.time(), lines=lines))
