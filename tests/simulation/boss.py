"""A simulated supervisor: the real policy and attention queue, its effects in steps that a crash may cut off."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nbs_fleet.attention import needs
from nbs_fleet.attention import queue as queueing
from nbs_fleet.attention.queue import Seen
from nbs_fleet.errors import FleetError
from nbs_fleet.model import AgentState, Exit, ExitKind, Moment, ProcId
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Desired
from nbs_fleet.sidecar import polling, recovery
from nbs_fleet.sidecar.actions import Report
from nbs_fleet.supervisor import decide as deciding
from nbs_fleet.supervisor import fleet as of
from nbs_fleet.supervisor.fleet import Action, Event, Fleet
from tests.simulation.station import Station

if TYPE_CHECKING:
    from tests.simulation.client import Client
    from tests.simulation.world import World


class Boss:
    """The supervisor of one team, as long as it lives."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.alive = False
        self.fleet = Fleet()
        self.stations: dict[str, Station] = {}
        self._life = 0
        self._wake_at: float | None = None
        self._wakes = 0
        self._polls = 0
        self._heard: set[str] = set()
        self._looked = Moment(0.0, 0.0)

    def start(self, *, up: bool = False) -> None:
        """A new supervisor takes over what it finds; `up`: a person asked for the team."""
        if self.alive:
            if up:
                self.post(of.Loaded(self.world.disk.plan, up=True))
            return
        self.alive = True
        self._life += 1
        self._heard = set()
        self.fleet = Fleet()
        self.stations = {}
        self._polls = 0
        disk, now = self.world.disk, self.world.line.now()
        records = tuple(self._mended(r) for r in disk.records.values())
        alive = tuple(r.handle for r in records if self._living(r) is not None)
        deaths = [
            of.Died(r.handle, r.proc, self.world.end_of(r))
            for r in records
            if r.proc is not None and r.handle not in alive
        ]
        self.post(of.Found(records, alive, now.boot))
        self.post(of.Loaded(disk.plan, up=up))
        for death in deaths:
            self.post(death)
        self.soon(polling.POLL_SECONDS, self._poll)

    def _living(self, record: AgentRecord) -> Client | None:
        client = self.world.panes.get(record.handle)
        return client if client is not None and client.alive and client.proc == record.proc else None

    def _mended(self, record: AgentRecord) -> AgentRecord:
        """As the real one does it: the pane knows a process whose start was not written down to the end."""
        client = self.world.panes.get(record.handle)
        if client is None or not client.alive or client.proc == record.proc or self._living(record) is not None:
            return record
        return replace(record, proc=client.proc, pane="%1", ready=False)

    def die(self) -> None:
        """It is killed, with all its sidecars; clients and files stay."""
        self.alive = False
        self._life += 1
        for station in self.stations.values():
            station.end()
        self.stations = {}

    def soon(self, delay: float, work: Callable[..., None], *args: Any) -> None:
        """A step of an effect: not done if this supervisor is dead by then."""
        self.world.line.after(delay, self._step, self._life, work, args)

    def _step(self, life: int, work: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.world.doom_draws_near()
        if self.alive and life == self._life:
            work(*args)
        else:
            self.world.laws.count("effect of the supervisor cut off")

    def post(self, event: Event) -> None:
        """Decide on one event, and begin what follows."""
        if not self.alive:
            return
        now = self.world.line.now()
        before = self.fleet
        self.fleet, actions = deciding.decide(before, event, now)
        self.world.laws.ruled(before, self.fleet, event, actions, now)
        for action in actions:
            self.soon(0.0, self._perform, action)
        self._attend(event, before)
        at = self.fleet.wake_at
        if at != self._wake_at:
            self._wake_at = at
            self._wakes += 1
            if at is not None:
                self.soon(max(0.0, at - now.mono), self._tick, self._wakes)

    def _tick(self, number: int) -> None:
        if number == self._wakes:
            self._wake_at = None
            self.post(of.Ticked())

    def _poll(self) -> None:
        self._polls += 1
        for handle, station in self.stations.items():
            # Only where something was missed: what needs a poll without that shows.
            if station.missed and polling.is_due(station.mind, handle, self._polls, told=True):
                station.poll()
        self._attend(None, Fleet())
        self.soon(polling.POLL_SECONDS, self._poll)

    # effects

    def _perform(self, action: Action) -> None:
        match action:
            case of.Save():
                self._save(action)
            case of.Start():
                self.soon(self.world.chance(0.02, 0.5), self._prepare, action.starts, [])
            case of.Stop():
                self._stop(action)
            case of.Watch():
                self._watch(action)
            case of.AwaitRest():
                resting = {handle: proc for handle, proc in action.clients.items() if self.world.odds(0.3)}
                self.soon(self.world.chance(0.02, 0.3), self.post, of.Rested(resting))
            case of.Alarm():
                self.world.laws.count("alarm of a mass death")

    def _save(self, action: of.Save) -> None:
        try:
            self.world.disk.write()
        except FleetError as error:
            self.post(of.Broke(error.message))
            self.world.unsaved.add(action.record.handle)
            return
        self.world.unsaved.discard(action.record.handle)
        if action.gone:
            self.world.disk.records.pop(action.record.handle, None)
        else:
            self.world.disk.records[action.record.handle] = action.record

    def _prepare(self, starts: tuple[of.StartOne, ...], ready: list[tuple[of.StartOne, AgentRecord]]) -> None:
        """The files of each start are written; then all panes are made."""
        results: list[of.Launched] = []
        for one in starts:
            record = self.world.disk.records.get(one.handle) or AgentRecord(one.handle)
            session = self._session(record, fresh=one.fresh)
            try:
                self.world.disk.write()
            except FleetError as error:
                end = Exit(ExitKind.REFUSED, self.world.line.now().wall, lines=(error.message,))
                results.append(of.Launched(one.handle, end=end))
                continue
            sessions = record.sessions
            if record.session_id and record.session_id != session:
                sessions = (*(s for s in sessions if s != record.session_id), record.session_id)[-20:]
            intent = replace(record, session_id=session, sessions=sessions)
            self.world.disk.records[one.handle] = intent
            ready.append((one, intent))
        self.soon(self.world.chance(0.01, 0.2), self._open, ready, results)

    def _session(self, record: AgentRecord, *, fresh: bool) -> str:
        """Resume the newest session with a turn, else begin a new one."""
        transcripts = self.world.disk.folders[record.handle].transcripts
        known = [record.session_id, *reversed(record.sessions)] if not fresh else []
        for session in known:
            if session and session in transcripts and transcripts[session].prompts:
                return session
        return self.world.new_session()

    def _open(self, ready: list[tuple[of.StartOne, AgentRecord]], results: list[of.Launched]) -> None:
        for one, intent in ready:
            session = intent.session_id or ""
            if self.world.odds(0.02):
                end = Exit(ExitKind.CRASH, self.world.line.now().wall, code=1, lines=("no luck",))
                results.append(
                    of.Launched(one.handle, pane="%1", session_id=session, sessions=intent.sessions, end=end)
                )
                continue
            client = self.world.spawn(one.handle, session)
            resumed = self.world.disk.folders[one.handle].transcript(session).prompts > 0
            results.append(
                of.Launched(
                    one.handle,
                    proc=client.proc,
                    pane="%1",
                    session_id=session,
                    sessions=intent.sessions,
                    fields=self._plan(one.handle).fields,
                    resumed=resumed,
                    prompted=not resumed and self.world.prompted[one.handle],
                )
            )
        self.soon(self.world.chance(0.005, 0.2), self.post, of.LaunchedAll(tuple(results)))

    def _plan(self, handle: str) -> AgentPlan:
        return next(a for a in self.world.disk.plan.agents if a.agent.handle == handle)

    def _stop(self, action: of.Stop) -> None:
        self._unwatch(action.handle)
        client = self.world.panes.get(action.handle)
        if client is None or not client.alive:
            self.soon(0.05, self._ended, action.handle, None)
            return
        self.soon(5.0 if client.frozen else self.world.chance(0.1, 3.0), self._ended, action.handle, client)

    def _ended(self, handle: str, client: Client | None) -> None:
        end = client.die(ExitKind.STOPPED) if client is not None else None
        if end is None:
            end = Exit(ExitKind.STOPPED, self.world.line.now().wall)
        self.soon(0.02, self.post, of.Ended(handle, end))

    def _watch(self, action: of.Watch) -> None:
        life = self.fleet.lives.get(action.handle)
        client = self.world.panes.get(action.handle)
        if life is None or life.record.proc is None or client is None or client.proc != life.record.proc:
            return
        if not client.alive:
            self.gone(client)
            return
        self._unwatch(action.handle)
        plan = life.plan or self._plan(action.handle)
        prompted = action.prompted and (self.world.prompted[action.handle] or action.died)
        watching = self.world.watching(plan, prompted=prompted, client=client)
        self.stations[action.handle] = Station(self.world, client, life.record, watching, adopted=not action.died)

    def _unwatch(self, handle: str) -> None:
        station = self.stations.pop(handle, None)
        if station is not None:
            station.end()

    # what it is told

    def gone(self, client: Client) -> None:
        """A client's end is noticed."""
        self.soon(self.world.chance(0.005, 0.2), self._bury, client)

    def _bury(self, client: Client) -> None:
        life = self.fleet.lives.get(client.handle)
        if life is None or life.flight == "stopping" or life.record.proc != client.proc:
            return
        self._unwatch(client.handle)
        self.post(of.Died(client.handle, client.proc, client.end))

    def reported(self, station: Station, report: Report) -> None:
        """A sidecar's report."""
        if self.stations.get(station.handle) is station:
            self.post(of.Reported(station.handle, report))

    def wants_restart(self, station: Station, wish: recovery.Restart) -> None:
        """A sidecar asks for a restart of its agent."""
        if self.stations.get(station.handle) is station:
            self.post(of.Asked("restart", (station.handle,), fresh=not wish.resume))

    # attention, as the real one keeps it

    def _attend(self, event: Event | None, before: Fleet) -> None:
        if self.fleet.plan is None or (event is not None and before.lives is self.fleet.lives):
            return
        if isinstance(event, of.Reported):
            self._heard.add(event.handle)
        if isinstance(event, of.LaunchedAll):
            self._heard.update(result.handle for result in event.results)
        now = self.world.line.now().wall
        seen: dict[str, Seen] = {}
        for handle, life in self.fleet.lives.items():
            if life.plan is None:
                continue
            one = needs.seen(life.record, now)
            keeps = None if life.alive and handle not in self._heard else one.keeps
            seen[handle] = Seen(one.needs, keeps)
        queue = queueing.reconcile(self.world.disk.queue, seen, now)
        if queue != self.world.disk.queue and not self.world.disk.full:
            self.world.laws.queued(queue)
            self.world.disk.queue = queue

    def living(self) -> list[ProcId]:
        """The processes it believes to run."""
        return [life.record.proc for life in self.fleet.lives.values() if life.alive and life.record.proc]

    def resting(self, handle: str) -> bool:
        """Whether nobody wants this agent up, or it has failed for good."""
        life = self.fleet.lives.get(handle)
        return life is None or life.record.desired is Desired.STOPPED or life.record.state is AgentState.FAILED
