"""Carries out what follows as contexts fill up: texts to agents, fresh sessions, the looks at handover files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from nbs_fleet.launch.processes import moment
from nbs_fleet.model import AgentState
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Filling, Plan
from nbs_fleet.supervisor.fleet import Asked, Event, Filled
from nbs_fleet.supervisor.handover import Sight, Turn, due, let_go, step

WARN = "{share} % of your context are used ({context:,} of {limit:,} tokens). Bring what you do to a point where it can be left."
ASK = (
    "{share} % of your context are used: you are about to begin afresh, without what is in it. Write into {file} all "
    "that you need to go on: what is to be done, what is done, what you found out, what comes next. End your turn then."
)
BEGIN = (
    "You began afresh, because your context was full. Your own handover is in {file}: read it, and go on where it ends."
)


class Handovers:
    """`tell(handle, text)` gets a text to an agent, `post(event)` an event to the supervisor's loop."""

    def __init__(
        self, *, tell: Callable[[str, str], None], post: Callable[[Event], None], story: Callable[..., None]
    ) -> None:
        self._tell, self._post, self._story = tell, post, story
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def look(self, plan: Plan, agent: AgentPlan, record: AgentRecord) -> None:
        """See to one agent, after its context was measured, at the end of a turn, or when its time is over."""
        rules = agent.agent.context
        if record.session_id is None or (rules.warn is None and rules.handover is None):
            return
        path = place(plan, agent)
        resting = record.state is AgentState.IDLE
        now = moment().wall
        known = record.tokens.get(record.session_id) is not None
        sight = Sight(record.session_id, record.context if known else 0, resting, written(path))
        filling, turns = step(record.filling, rules, sight, now)
        if filling != record.filling:
            self._post(Filled(record.handle, filling))
        for turn in turns:
            self._do(turn, agent, record, path)
        self._wait(agent, record, filling, now)

    def let_go(self, record: AgentRecord) -> None:
        """A person lets an agent go on as it is."""
        self._post(Filled(record.handle, let_go(record.filling)))

    def close(self) -> None:
        """Nobody looks any more."""
        for timer in self._timers.values():
            timer.cancel()

    def _do(self, turn: Turn, agent: AgentPlan, record: AgentRecord, path: str) -> None:
        limit = agent.agent.context.limit
        words = {"share": 100 * record.context // limit, "context": record.context, "limit": limit, "file": path}
        self._story(record.handle, f"context: {turn.value}", context=record.context, limit=limit)
        if turn is Turn.WARN:
            self._tell(record.handle, WARN.format(**words))
        elif turn is Turn.ASK:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._tell(record.handle, ASK.format(**words))
        elif turn is Turn.BEGIN:
            self._tell(record.handle, BEGIN.format(**words))
            self._post(Asked("restart", (record.handle,), fresh=True))

    def _wait(self, agent: AgentPlan, record: AgentRecord, filling: Filling, now: float) -> None:
        timer = self._timers.pop(record.handle, None)
        if timer is not None:
            timer.cancel()
        at = due(filling, agent.agent.context)
        if at is not None:
            later = max(0.1, at - now)
            self._timers[record.handle] = asyncio.get_running_loop().call_later(
                later, lambda: self._post(Filled(record.handle, filling))
            )


def place(plan: Plan, agent: AgentPlan) -> str:
    """Where this agent's handover is written."""
    told = agent.agent.context.file or os.path.join(".nbs", f"handover-{agent.agent.handle}.md")
    return os.path.join(plan.root, told)


def written(path: str) -> float | None:
    """When this file was last written; None: there is none, or nothing in it."""
    with suppress(OSError):
        there = os.stat(path)
        return there.st_mtime if there.st_size else None
    return None
