"""Hosts one sidecar task per live client, restarts one that raises (with a bound), and stops them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from nbs_fleet.drivers.base import Driver, able
from nbs_fleet.launch import registry
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.loop import keep
from nbs_fleet.model import Moment
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.sidecar.actions import Action, Event, Report
from nbs_fleet.sidecar.answering import Wish
from nbs_fleet.sidecar.delivery import Means
from nbs_fleet.sidecar.ground import Ground, Run
from nbs_fleet.sidecar.mind import Mind, Watching, first_mind
from nbs_fleet.sidecar.notices import NoticeRules, Waiting
from nbs_fleet.sidecar.polling import has_turns, is_quiet
from nbs_fleet.sidecar.recovery import Restart, Rules
from nbs_fleet.sidecar.replay import DECIDED, MIND, SEEN
from nbs_fleet.sidecar.sources import transcript_of
from nbs_fleet.sidecar.watcher import Sidecar
from nbs_fleet.supervisor.facts import earlier_transcripts, gather
from nbs_fleet.supervisor.story import Story

FAULT_LIMIT = 5
"""Times a sidecar of one run may raise before it stays down; `ps` says so."""


class Polled(NamedTuple):
    """The sidecars that look at everything again, and those that do not, by handle."""

    looking: frozenset[str]
    others: frozenset[str]


class Sidecars:
    """The sidecars of all live clients, by handle."""

    def __init__(
        self,
        ground: Ground,
        watcher: Watcher,
        *,
        tell: Callable[[str, Report | Restart], None],
        heard: Callable[[str, str], None],
        story: Callable[[str], Story],
    ) -> None:
        self._ground, self._watcher, self._tell, self._heard, self._story = ground, watcher, tell, heard, story
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, Sidecar] = {}
        self._faults: dict[str, list[str]] = {}
        self._waiting: dict[str, Waiting] = {}
        self.stirred: Callable[[], None] = lambda: None
        """Called after each decision of a sidecar."""
        self._restless: set[str] = set()
        """Those that have each turn, as it was after the last decision: a poll then touches nobody else."""

    def begin(self, plan: Plan, agent: AgentPlan, record: AgentRecord, *, prompted: bool, adopted: bool) -> None:
        """Watch the client that `record` describes; one that was watched before is let go.

        `adopted`: this very client was watched before, so what is known of its failures holds.
        """
        handle = agent.agent.handle
        self.end(handle)
        self._faults[handle] = []
        run = partial(self._run, plan, agent, record, prompted=prompted, adopted=adopted)
        task = asyncio.create_task(keep(run, partial(self._fault, handle)), name=f"sidecar {handle}")
        self._tasks[handle] = task
        task.add_done_callback(partial(self._forget, handle))

    def end(self, handle: str) -> None:
        """Stop watching."""
        task = self._tasks.pop(handle, None)
        self._running.pop(handle, None)
        self._restless.discard(handle)
        if task is not None:
            task.cancel()

    def watches(self, handle: str) -> bool:
        """Whether this agent has a sidecar; one that faulted too often is down."""
        return handle in self._tasks

    async def close(self) -> None:
        """End all sidecars and wait until they are gone."""
        tasks = list(self._tasks.values())
        for handle in list(self._tasks):
            self.end(handle)
        await asyncio.gather(*tasks, return_exceptions=True)

    def poll(self, number: int) -> Polled | None:
        """Slow poll `number`: each sidecar whose turn it is looks at everything again.

        None: it is nobody's, and changes are told.
        """
        told = self._watcher.tells
        asked = self._running.keys() if has_turns(number) or not told else self._restless & self._running.keys()
        looking = frozenset(handle for handle in asked if self._running[handle].poll(number, told=told))
        return Polled(looking, frozenset(self._running) - looking) if looking or not told else None

    def note(self, handle: str, mind: Mind) -> None:
        """A sidecar knows this now: whether it rests."""
        if is_quiet(mind):
            self._restless.discard(handle)
        elif handle in self._running:
            self._restless.add(handle)
        self.stirred()

    def see(self, handle: str, waiting: Waiting) -> None:
        """Tell one sidecar what waits for its agent; one that begins later is told then."""
        self._waiting[handle] = waiting
        sidecar = self._running.get(handle)
        if sidecar is not None:
            sidecar.see(waiting)

    async def answer(self, handle: str, wish: Wish) -> str:
        """Answer an agent's dialog for a person; why it could not be done, or nothing."""
        sidecar = self._running.get(handle)
        return await sidecar.answer(wish) if sidecar is not None else f"nobody watches {handle} now"

    def settle(self, handle: str) -> None:
        """A person says that what was in this agent's way is settled."""
        if handle in self._running:
            self._running[handle].settle()

    def states(self) -> dict[str, str]:
        """What `ps` says of each sidecar: running, or what it fell over."""
        states = dict.fromkeys(self._tasks, "running")
        for handle, faults in self._faults.items():
            if faults:
                states[handle] = f"faulted {len(faults)}x: {faults[-1]}"
        return states

    def _run(
        self, plan: Plan, agent: AgentPlan, record: AgentRecord, *, prompted: bool, adopted: bool
    ) -> Coroutine[None, None, None]:
        handle = agent.agent.handle
        watching = watching_of(agent, registry.of(agent.agent), prompted, plan.versions.get(agent.agent.driver))
        # After a fault the record is old news.
        mind = first_mind(watching, record, adopted=adopted and not self._faults.get(handle))
        sidecar = self._make(plan, agent, record, mind)
        self._running[handle] = sidecar
        self._restless.add(handle)
        if handle in self._waiting:
            sidecar.see(self._waiting[handle])
        return sidecar.run()

    def _fault(self, handle: str, error: Exception) -> bool:
        faults = self._faults.setdefault(handle, [])
        faults.append(f"{type(error).__name__}: {error}")
        self._story(handle).tell(moment().wall, "sidecar faulted", error=faults[-1], number=len(faults))
        return len(faults) < FAULT_LIMIT

    def _make(self, plan: Plan, agent: AgentPlan, record: AgentRecord, mind: Mind) -> Sidecar:
        if record.proc is None or record.pane is None:
            raise ValueError("nothing runs to be watched")
        handle = agent.agent.handle
        driver = registry.of(agent.agent)
        prompted = mind.watching.expects_prompt
        facts = gather(plan, agent, session_id=record.session_id or "", resume=not prompted, has_prompt=prompted)
        addressed = driver.capabilities.session_id or transcript_of(driver.places(facts)) is not None
        scribe = _Scribe(self._story(handle), partial(self.note, handle))
        run = Run(
            proc=record.proc,
            pane=record.pane,
            # With the paths that the facts hold.
            paths=replace(plan.paths.agent(handle), dir=facts.agent_dir),
            root=plan.root,
            ready=record.ready,
            earlier=earlier_transcripts(driver, facts, record.sessions),
            transcript_from=record.transcript_from,
        )
        return Sidecar(
            driver,
            facts,
            run,
            replace(mind, watching=_once(replace(mind.watching, addressed=addressed))),
            ground=self._ground,
            watcher=self._watcher,
            tell=partial(self._tell, handle),
            record=scribe.record,
            heard=partial(self._heard, handle),
            story=scribe.tell,
        )

    def _forget(self, handle: str, done: asyncio.Task[None]) -> None:
        if self._tasks.get(handle) is done:
            del self._tasks[handle]
            self._running.pop(handle, None)


class _Scribe:
    """Writes into one agent's story for its sidecar; `note` hears what that knows after each decision."""

    __slots__ = ("_note", "_segment", "_story")

    def __init__(self, story: Story, note: Callable[[Mind], None]) -> None:
        self._story, self._note = story, note
        self._segment = -1

    def record(self, before: Mind, after: Mind, event: Event, actions: Sequence[Action], now: Moment) -> None:
        """What `replay` needs: all that was known at the start of each segment, then all that changed it."""
        self._note(after)
        if self._segment != self._story.segment:
            self._segment = self._story.segment
            self._story.tell(now.wall, MIND, mind=before)
        # Exact times: a decision may hang on a thousandth of a second.
        times = {"wall": now.wall, "mono": now.mono}
        if actions:
            self._story.tell(now.wall, DECIDED, event=event, actions=actions, **times)
        elif after != before:
            self._story.tell(now.wall, SEEN, event=event, **times)

    def tell(self, what: str, **more: Any) -> None:
        """Add a line."""
        self._story.tell(moment().wall, what, **more)


@lru_cache(maxsize=64)
def _once(watching: Watching) -> Watching:
    """The same object for equal ones: most agents of a team are watched alike."""
    return watching


def watching_of(agent: AgentPlan, driver: Driver, prompted: bool, version: str | None = None) -> Watching:
    """What a sidecar of this agent works by."""
    told, can = agent.agent, able(driver, version)
    means = Means(
        mail=can.mail,
        inbox=can.native_inbox and not can.mail,
        stop_hook=can.stop_block or can.context_before_tool or can.context_after_tool,
        keys_only=told.sidecar.delivery == "keys",
        stash=told.sidecar.draft == "stash" and can.stash,
        # What can be resumed is kept in a transcript.
        confirm=can.resume,
    )
    rules = Rules(
        on_idle=told.on_idle,
        on_error=told.on_error,
        on_prompt=told.on_prompt,
        must_signal=told.stop == "signal",
        grace=told.sidecar.idle_grace,
    )
    nbs = told.sidecar
    notices = NoticeRules(
        startup_grace=nbs.startup_grace,
        cooldown=nbs.notify_cooldown,
        poll=nbs.poll,
        poll_always=nbs.poll_mode == "always",
        nag_critical=nbs.nag.critical,
        nag_high=nbs.nag.high,
        enabled=nbs.notices,
        fail_threshold=nbs.notify_fail_threshold,
    )
    return Watching(can, expects_prompt=prompted and can.prompt, means=means, rules=rules, notices=notices)
