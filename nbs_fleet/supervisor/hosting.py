"""Hosts one sidecar task per live client, restarts one that raises (with a bound), and stops them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from nbs_fleet.launch import registry
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.loop import keep
from nbs_fleet.model import Moment
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.sidecar.actions import Action, Event, Report
from nbs_fleet.sidecar.watcher import Ground, Sidecar
from nbs_fleet.supervisor.facts import gather
from nbs_fleet.supervisor.story import Story

FAULT_LIMIT = 5
"""Times a sidecar of one run may raise before it stays down; `ps` says so."""


class Sidecars:
    """The sidecars of all live clients, by handle."""

    def __init__(
        self,
        ground: Ground,
        watcher: Watcher,
        *,
        tell: Callable[[str, Report], None],
        story: Callable[[str], Story],
    ) -> None:
        self._ground, self._watcher, self._tell, self._story = ground, watcher, tell, story
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, Sidecar] = {}
        self._faults: dict[str, list[str]] = {}

    def begin(self, plan: Plan, agent: AgentPlan, record: AgentRecord, *, prompted: bool) -> None:
        """Watch the client that `record` describes; one that was watched before is let go."""
        handle = agent.agent.handle
        self.end(handle)
        self._faults[handle] = []
        task = asyncio.create_task(self._keep(plan, agent, record, prompted), name=f"sidecar {handle}")
        self._tasks[handle] = task
        task.add_done_callback(lambda done: self._forget(handle, done))

    def end(self, handle: str) -> None:
        """Stop watching."""
        task = self._tasks.pop(handle, None)
        self._running.pop(handle, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """End all sidecars and wait until they are gone."""
        tasks = list(self._tasks.values())
        for handle in list(self._tasks):
            self.end(handle)
        await asyncio.gather(*tasks, return_exceptions=True)

    def poll(self) -> None:
        """The slow poll: each sidecar looks at everything again."""
        for sidecar in self._running.values():
            sidecar.poll()

    def states(self) -> dict[str, str]:
        """What `ps` says of each sidecar: running, or what it fell over."""
        states = dict.fromkeys(self._tasks, "running")
        for handle, faults in self._faults.items():
            if faults:
                states[handle] = f"faulted {len(faults)}x: {faults[-1]}"
        return states

    async def _keep(self, plan: Plan, agent: AgentPlan, record: AgentRecord, prompted: bool) -> None:
        handle = agent.agent.handle

        async def run() -> None:
            sidecar = self._make(plan, agent, record, prompted)
            self._running[handle] = sidecar
            await sidecar.run()

        def fault(error: Exception) -> bool:
            faults = self._faults.setdefault(handle, [])
            faults.append(f"{type(error).__name__}: {error}")
            self._story(handle).tell(moment().wall, "sidecar faulted", error=faults[-1], number=len(faults))
            return len(faults) < FAULT_LIMIT

        await keep(run, fault)

    def _make(self, plan: Plan, agent: AgentPlan, record: AgentRecord, prompted: bool) -> Sidecar:
        if record.proc is None or record.pane is None:
            raise ValueError("nothing runs to be watched")
        facts = gather(
            plan,
            agent,
            session_id=record.session_id or "",
            resume=not prompted,
            has_prompt=prompted,
        )
        story = self._story(agent.agent.handle)

        def record_decision(event: Event, actions: Sequence[Action], now: Moment) -> None:
            if actions:
                story.tell(now.wall, "decided", event=event, actions=actions, mono=round(now.mono, 3))

        return Sidecar(
            registry.get(agent.agent.driver),
            facts,
            proc=record.proc,
            pane=record.pane,
            ready=record.ready,
            ground=self._ground,
            watcher=self._watcher,
            tell=lambda report: self._tell(agent.agent.handle, report),
            record=record_decision,
        )

    def _forget(self, handle: str, done: asyncio.Task[None]) -> None:
        if self._tasks.get(handle) is done:
            del self._tasks[handle]
            self._running.pop(handle, None)
