"""The supervisor process: owns the panes, hosts the sidecars, performs what its policy decides."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, assert_never

from nbs_fleet import __version__
from nbs_fleet.attention.budget import Over
from nbs_fleet.attention.queue import Need
from nbs_fleet.attention.remedies import Deed
from nbs_fleet.errors import FleetError
from nbs_fleet.launch.deathwatch import DeathWatch
from nbs_fleet.launch.processes import identify, moment
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.loop import Loop
from nbs_fleet.model import AgentState, Moment, ProcId
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.sharing import share_agents
from nbs_fleet.plan.types import Plan
from nbs_fleet.sidecar.actions import Report
from nbs_fleet.sidecar.recovery import Restart
from nbs_fleet.sidecar.sources import forget_signal, set_paused, settle_signal
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.attend import Attention
from nbs_fleet.supervisor.commands import CommandSocket
from nbs_fleet.supervisor.decide import decide
from nbs_fleet.supervisor.desk import Desk
from nbs_fleet.supervisor.fleet import (
    Action,
    Alarm,
    Asked,
    AwaitRest,
    Broke,
    Died,
    Ended,
    Event,
    Filled,
    Fleet,
    Found,
    LaunchedAll,
    Loaded,
    Metered,
    Reported,
    Save,
    Start,
    Stop,
    Ticked,
    Watch,
    broken,
)
from nbs_fleet.supervisor.handovers import Handovers
from nbs_fleet.supervisor.hosting import Sidecars
from nbs_fleet.supervisor.launches import Launches
from nbs_fleet.supervisor.meters import Meters
from nbs_fleet.supervisor.notifier import Notifier
from nbs_fleet.supervisor.panes import Panes
from nbs_fleet.supervisor.protocol import Answer, Request
from nbs_fleet.supervisor.resting import rested
from nbs_fleet.supervisor.rounds import Rounds
from nbs_fleet.supervisor.spending import Spending
from nbs_fleet.supervisor.starter import Starter, refresh_files
from nbs_fleet.supervisor.stopper import bury, stop
from nbs_fleet.supervisor.story import LEFT, Story
from nbs_fleet.supervisor.telling import tell
from nbs_fleet.supervisor.upkeep import Upkeep

WRITTEN_SECONDS = 1.0
"""After so long the last lines of a turn are in the client's file (Claude Code 2.1.197: 0.1 s, measured)."""


class Supervisor:
    """One team's supervisor; `run` returns the exit code."""

    def __init__(self, paths: RunPaths, plan: Plan, panes: Panes) -> None:
        self.paths, self.plan, self.panes = paths, plan, panes
        self.since = moment().wall
        self._stories: dict[str, Story] = {}
        self._records = store.Records(paths)
        self._watcher = Watcher()
        self._deaths = DeathWatch()
        self._meters = Meters()
        self._launches = Launches(lambda starts: Starter(self.plan, self.panes.tmux).start(starts))
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self.socket = CommandSocket(paths.socket, self.handle, self._everything)
        self.sidecars = Sidecars(panes, self._watcher, tell=self._reported, heard=self._heard, story=self.story)
        server = panes.tmux.server_pid()
        self._spending = Spending(paths.budget, identify(server) if server else None, act=self._reached)
        self.notifier = Notifier(panes.tmux, plan.team, tell=partial(self._tell_of, None), addresses=paths.addresses)
        self.attention = Attention(
            paths,
            answer=self.sidecars.answer,
            act=self._act,
            publish=self.socket.publish,
            notify=self.notifier.look,
            budgets=self._budgets,
            story=self.story,
        )
        self.desk = Desk(
            plan, self._watcher, tell=self.sidecars.see, all_idle=self._all_idle, rows=self._rows, story=self.story
        )
        self.loop: Loop[Fleet, Event, Action] = Loop(
            Fleet(),
            decide=decide,
            perform=self._perform,
            fault=self._fault,
            tick=Ticked,
            wake=lambda fleet: fleet.wake_at,
            record=self._record,
        )
        self._upkeep = Upkeep(
            plan,
            self._watcher,
            socket=self.socket,
            tmux=panes.tmux,
            lives=lambda: self.loop.state.lives,
            more=lambda: self.attention.files() | self._spending.files(),
            story=self.story(None),
        )
        self._rounds = Rounds(
            self.sidecars,
            self.desk,
            self.attention,
            self._upkeep,
            fleet=lambda: self.loop.state,
            measure=self._measure_soon,
        )
        self._handovers = Handovers(tell=self.desk.notify, post=self.loop.post, story=self._tell_of)

    async def run(self) -> int:
        """Decide, on what was posted before at first, until it is over."""
        await self.socket.start()
        self.panes.on_lost = self._tmux_lost
        self._open()
        deciding = asyncio.create_task(self.loop.run(), name="decide")
        self._rounds.open()
        try:
            either: set[asyncio.Future[Any]] = {deciding, self._over}
            done, _ = await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if deciding in done:
                deciding.result()
            return self._over.result()
        finally:
            await self._close(deciding)

    def end(self, code: int) -> None:
        """Leave: agents go on, panes stay."""
        if not self._over.done():
            self._over.set_result(code)

    def story(self, handle: str | None) -> Story:
        """The story of one agent, or of the team for None; known secret values are masked in it."""
        key = handle or ""
        if key not in self._stories:
            self._stories[key] = store.story(self.paths, handle) if handle else Story(self.paths.story)
        return self._stories[key]

    async def handle(self, request: Request) -> Answer:
        """Answer one request of the command socket."""
        if request.do in ("ping", "follow"):
            alarm = self.loop.state.alarm
            states = self.sidecars.states()
            return Answer(pid=os.getpid(), since=self.since, version=__version__, sidecars=states, alarm=alarm)
        if request.do == "apply":
            return self._apply(request)
        if request.do in ("start", "stop", "restart"):
            return self._ask(request)
        if request.do in ("answer", "skip", "snooze"):
            return await self.attention.ask(request)
        if request.do == "yield":
            self.loop.step(Asked("yield"))
            await self.loop.settled()
            asyncio.get_running_loop().call_soon(self.end, 0)
            return Answer(pid=os.getpid())
        return Answer(ok=False, error=f"unknown request {request.do!r}")

    def _open(self) -> None:
        """Work by this plan from now on."""
        self.story(None).hide_too(store.secrets(self.paths, [a.agent.handle for a in self.plan.agents]))
        self.desk.open(self.plan)
        self.notifier.open(self.plan.rules())
        self._upkeep.open(self.plan)

    def _apply(self, request: Request) -> Answer:
        plan = store.read_plan(self.paths)
        if plan is None:
            return Answer(ok=False, error="there is no plan to apply")
        before, self.plan = self.plan, share_agents(plan, self.plan)
        self._open()
        self._renew(before)
        # Decided at once: whoever follows after this answer sees what came of it.
        self.loop.step(Loaded(self.plan, only=request.handles, now=request.now, up=request.up))
        return Answer(pid=os.getpid())

    def _ask(self, request: Request) -> Answer:
        unknown = [h for h in request.handles or () if h not in self.loop.state.lives]
        if unknown:
            return Answer(ok=False, error=f"no such handle: {', '.join(unknown)}")
        self.loop.step(Asked(request.do, request.handles or (), fresh=request.fresh))
        return Answer(pid=os.getpid())

    def _act(self, handle: str, deed: Deed) -> None:
        """What a person chose where an agent (or, without a handle, the whole team) needed one."""
        handles = (handle,) if handle else tuple(self.loop.state.lives)
        if deed in (Deed.RESTART, Deed.STOP):
            self.loop.step(Asked(deed.value, handles))
            return
        for one in handles:
            signal = self.paths.agent(one).signal
            if deed is Deed.DISMISS:
                settle_signal(signal, moment().wall)
            else:
                forget_signal(signal)
            self.sidecars.settle(one)
            if deed is Deed.GO_ON:
                set_paused(self.paths.agent(one).dir, paused=False)
                self._handovers.let_go(self.loop.state.lives[one].record)
                self.desk.go_on(one)

    def _budgets(self, fleet: Fleet, now: float) -> dict[str, Need]:
        return self._spending.look(self.plan, [life.record for life in fleet.lives.values()], now)

    def _reached(self, over: Over) -> None:
        """A limit of a budget is reached: do what the team file wants."""
        self._tell_of(None, "budget reached", owner=over.owner or "team", text=over.text, then=over.then)
        for handle in (over.owner,) if over.owner else tuple(self.loop.state.lives):
            if over.then == "pause":
                set_paused(self.paths.agent(handle).dir, paused=True)
            elif over.then == "notice":
                self.desk.notify(handle, f"Your budget: {over.text}. Bring what you do to an end, and say so.")

    def _everything(self) -> tuple[Answer, ...]:
        records = tuple(Answer(record=life.record) for life in self.loop.state.lives.values())
        return (*records, Answer(queue=self.attention.queue))

    async def _perform(self, action: Action) -> Event | None:
        match action:
            case Start():
                return LaunchedAll(await self._launches.start(action.starts))
            case Stop():
                return await self._stop(action)
            case Save():
                self._save(action)
            case Watch():
                self._watch(action)
            case AwaitRest():
                return await asyncio.to_thread(rested, action)
            case Alarm():
                self.story(None).tell(moment().wall, "alarm", text=action.text)
            case _:
                assert_never(action)
        return None

    async def _stop(self, action: Stop) -> Ended:
        record = self.loop.state.lives[action.handle].record
        self.sidecars.end(action.handle)
        if record.proc is not None:
            self._deaths.discard(record.proc)
            self.desk.end(action.handle, client=record.proc.pid)
        self.story(action.handle).tell(moment().wall, "stopping", why=action.why)
        return await stop(self.plan, record, self.panes, remove=action.remove)

    def _save(self, action: Save) -> None:
        handle = action.record.handle
        if action.gone:
            store.forget(self.paths, handle)
            self.story(handle).tell(moment().wall, LEFT)
            self.socket.publish(Answer(gone=handle))
            return
        self._records.write(action.record)
        story = self.story(handle)
        if story.is_full():
            story.turn(moment().wall, action.record)
        self.socket.publish(Answer(record=action.record))

    def _watch(self, action: Watch) -> None:
        life = self.loop.state.lives[action.handle]
        proc = life.record.proc
        if proc is None:
            return
        secrets = store.secrets(self.paths, (action.handle,))
        for whose in (action.handle, None):
            self.story(whose).hide_too(secrets)
        self._deaths.add(proc, lambda gone: self._spawn(self._bury(action.handle, gone)))
        self.desk.begin(action.handle, client=proc.pid, fresh=action.died, session=life.record.session_id or "")
        agent = life.plan or self.plan.find(action.handle)
        if agent is not None:
            prompted = action.prompted and (agent.prompt is not None or action.died)
            self.sidecars.begin(self.plan, agent, life.record, prompted=prompted, adopted=not action.died)

    def _measure_soon(self, handle: str) -> None:
        if not self._over.done():
            self._spawn(self._measure(handle))

    async def _measure(self, handle: str) -> None:
        """Count what an agent used in the turn that has just ended, or so far."""
        life = self.loop.state.lives.get(handle)
        if life is None or life.plan is None:
            return
        found = await self._meters.measure(self.plan, life.plan, life.record)
        known = life.record
        if found is not None and (known.tokens.get(found.session), known.context) != (found.spent, found.context):
            self.loop.post(found)

    async def _bury(self, handle: str, proc: ProcId) -> None:
        life = self.loop.state.lives.get(handle)
        if life is None or life.flight == "stopping" or life.record.proc != proc:
            return
        self.sidecars.end(handle)
        self.desk.end(handle, client=proc.pid)
        end = await bury(self.plan, life.record, self.panes)
        self.loop.post(Died(handle, proc, end))

    def _heard(self, handle: str, text: str) -> None:
        self.desk.heard(handle, text)

    def _reported(self, handle: str, word: Report | Restart) -> None:
        if isinstance(word, Restart):
            self.story(handle).tell(moment().wall, "restart wanted", why=word.why)
            self.loop.post(Asked("restart", (handle,), fresh=not word.resume))
            return
        self.loop.post(Reported(handle, word))

    def _fault(self, action: Action, error: Exception) -> Event:
        what = error.message if isinstance(error, FleetError) else f"{type(error).__name__}: {error}"
        self.story(None).tell(moment().wall, "fault", action=type(action).__name__, error=what)
        if isinstance(action, Save):
            self._upkeep.doubt(action.record.handle)
        return broken(action, what)

    def _record(self, before: Fleet, after: Fleet, event: Event, actions: Sequence[Action], now: Moment) -> None:
        doing = [a for a in actions if not isinstance(a, Save | AwaitRest)]
        if doing or isinstance(event, (Loaded, Asked, Broke)):
            said = {"plan": "see plan.json"} if isinstance(event, Loaded) else event
            self.story(None).tell(
                now.wall, "decided", on=type(event).__name__, event=said, actions=doing, mono=round(now.mono, 3)
            )
        self._rounds.stir()
        self.attention.look(after, event)
        for handle, old, life in after.changes(before):
            # What was found was told by whoever did it.
            if not isinstance(event, Found) and (old is None or old.record is not life.record):
                tell(self.story(handle), old.record if old else None, life.record, now)
            moved = old is not None and old.record.state is not life.record.state
            if life.plan is not None and (moved or (isinstance(event, Metered | Filled) and event.handle == handle)):
                self._handovers.look(self.plan, life.plan, life.record)
            if moved and life.record.state is not AgentState.BUSY:
                asyncio.get_running_loop().call_later(WRITTEN_SECONDS, self._measure_soon, handle)

    async def _rows(self, handle: str) -> tuple[str, ...]:
        life = self.loop.state.lives.get(handle)
        return await self.panes.capture(life.record.pane) if life and life.record.pane else ()

    def _all_idle(self) -> bool:
        return all(life.record.state is not AgentState.BUSY for life in self.loop.state.lives.values())

    def _renew(self, before: Plan) -> None:
        """New files and a new sidecar, without a restart, for agents whose settings changed or whom nobody watches."""
        for handle, life in self.loop.state.lives.items():
            agent, old = self.plan.find(handle), before.find(handle)
            if not life.alive or life.flight or agent is None or old is None:
                continue
            changed = agent.agent != old.agent or not self.sidecars.watches(handle)
            if changed and life.record.fields == agent.fields:
                refresh_files(self.plan, agent, life.record)
                self.sidecars.begin(self.plan, agent, life.record, prompted=False, adopted=True)

    def _tell_of(self, handle: str | None, what: str, **more: object) -> None:
        self.story(handle).tell(moment().wall, what, **more)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _tmux_lost(self, why: str) -> None:
        """The panes are gone with their server: say it and leave; `up` brings them back."""
        self.story(None).tell(moment().wall, "alarm", text=f"the team's tmux server died ({why})")
        self.end(1)

    async def _close(self, deciding: asyncio.Task[None]) -> None:
        deciding.cancel()
        await asyncio.gather(deciding, return_exceptions=True)
        self._rounds.close()
        await self._upkeep.close()
        await self.desk.close()
        self.attention.close()
        await self.notifier.close()
        self._handovers.close()
        await self.sidecars.close()
        await self.socket.close()
        self._deaths.close()
        self._watcher.close()
        await self.panes.close()
