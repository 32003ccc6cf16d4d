"""The team's regular business: standups by the clock, Pythia by the decisions. Effects; `sidecar/` decides."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import Priority
from nbs_fleet.nbs import presence, pythia_files, standup_file
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.plan.types import Plan
from nbs_fleet.sidecar import pythia, standup
from nbs_fleet.spec.team import Pythia as PythiaRule
from nbs_fleet.supervisor import lives
from nbs_fleet.supervisor.board import SIDECAR

CHECKPOINT = "pythia-checkpoint"


class Clockwork:
    """Posts standups and publishes checkpoints for one plan. `all_idle()` says whether the whole team rests."""

    def __init__(self, watcher: Watcher, all_idle: Callable[[], bool], tell: Callable[..., None]) -> None:
        self._watcher, self._all_idle, self._tell = watcher, all_idle, tell
        self._began = moment().wall
        self._rested = float("-inf")
        """When a standup was due and there was nothing to ask about."""
        self._timer: asyncio.TimerHandle | None = None
        self.plan: Plan | None = None
        self._watched: str | None = None
        self._work: set[asyncio.Task[None]] = set()

    def open(self, plan: Plan) -> None:
        """Do the business of this plan from now on."""
        self.plan = plan
        self._watch(plan.pythia.bus if plan.pythia else None)
        self._plan_standup()
        if plan.pythia is not None:
            self._spawn(self.count)

    def close(self) -> None:
        """Do nothing any more."""
        self._watch(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self, bus: str | None) -> None:
        if self._watched == bus:
            return
        if self._watched is not None:
            self._watcher.remove(self._watched, self._changed)
        if bus is not None:
            self._watcher.add(bus, self._changed)
        self._watched = bus

    def _changed(self, name: str) -> None:
        if name == "" or pythia_files.DECISION in name:
            self._spawn(self.count)

    def _chat(self) -> str | None:
        plan = self.plan
        if plan is None or plan.standup is None:
            return None
        wanted = plan.standup.chat
        return next((c.path for c in plan.chats if c.name == wanted), None)

    def _plan_standup(self) -> None:
        """Wait for the next standup by one timer; nothing runs in between."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self.next_look()
        if at is not None:
            wait = max(1.0, at - moment().wall)
            self._timer = asyncio.get_running_loop().call_later(wait, self._spawn, self.stand_up)

    def next_look(self) -> float | None:
        """The wall second at which a standup may be due; None: there are none. Raises NbsFileError."""
        chat, plan = self._chat(), self.plan
        if chat is None or plan is None or plan.standup is None:
            return None
        board = standup.Board(standup_file.last_standup(chat), 0, all_idle=True)
        now, every = moment().wall, plan.standup.every
        at = standup.due(board, every, self._since(now), self._jitter(plan), now)
        return max(at, min(self._rested, now) + every)

    def _since(self, now: float) -> float:
        """When this team began; a clock that was set back meanwhile makes it now."""
        self._began = min(self._began, now)
        return self._began

    def _jitter(self, plan: Plan) -> float:
        return lives.spread(plan.team, int(self._began))

    def _spawn(self, work: Callable[[], None]) -> None:
        task = asyncio.create_task(self._run(work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _run(self, work: Callable[[], None]) -> None:
        """One piece of business in a thread: it may wait for a lock of the nbs tools."""
        try:
            await asyncio.to_thread(work)
        except NbsFileError as error:
            self._tell("clockwork", error=error.message)
        finally:
            if work == self.stand_up:
                self._plan_standup()

    def stand_up(self) -> None:
        """Post a standup if one is due and the turn is ours. Raises NbsFileError."""
        chat, plan = self._chat(), self.plan
        if chat is None or plan is None or plan.standup is None:
            return
        every = plan.standup.every
        last = standup_file.last_standup(chat)
        board = standup.Board(last, self._news(chat, last), self._all_idle(), presence.paused(plan.root))
        now = moment().wall
        began, jitter = self._since(now), self._jitter(plan)
        if not standup.post(board, every, began, jitter, now):
            if now >= standup.due(board, every, began, jitter, now):
                # Nothing to ask about: the next look is a full interval away, as after a post.
                self._rested = now
            return
        if standup_file.take_turn(chat, now, every):
            Chat(chat).send(SIDECAR, standup.TEXT)
            self._tell("standup", chat=os.path.basename(chat))

    def _news(self, chat: str, last: float | None) -> int:
        since = last or 0.0
        return sum(1 for m in Chat(chat).messages() if m.handle != SIDECAR and m.at > since)

    def count(self) -> None:
        """Count the decisions; a bucket that is full is one checkpoint, whoever sees it first."""
        plan = self.plan
        if plan is None or plan.pythia is None:
            return
        rule = plan.pythia
        chat = plan.chats[0].name if plan.chats else None
        found = pythia_files.count_decisions(plan.root, chat, rule.bus)

        def decide(before: int | None) -> int | None:
            verdict = pythia.checkpoint(pythia.Count(found.count, before), rule.every)
            if verdict.fire:
                # Before the bucket is written: what can't be published is tried again at the next look.
                self._checkpoint(rule, found.count)
            return verdict.bucket

        pythia_files.change_bucket(plan.root, decide)

    def _checkpoint(self, rule: PythiaRule, decisions: int) -> None:
        who = f"@{rule.agent} from {SIDECAR}: " if rule.agent else ""
        payload = f"{who}Decision count: {decisions}. Please assess where the team stands."
        name = Bus(rule.bus).publish(SIDECAR, CHECKPOINT, Priority.HIGH, payload, dedup_window=0)
        self._tell("pythia checkpoint", decisions=decisions, event=name)
