"""The team's regular business: standups by the clock, Pythia by the decisions. Effects; `sidecar/` decides."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import msgspec
from msgspec import Struct

from nbs_fleet.errors import FleetError
from nbs_fleet.jsontext import MALFORMED
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.nbs import presence, pythia_files, standup_file
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.plan.types import Plan
from nbs_fleet.sidecar import pythia, standup
from nbs_fleet.supervisor import lives
from nbs_fleet.supervisor.board import SIDECAR

RETRY = 60.0
"""Seconds until what could not be written is tried again."""


class Began(Struct, frozen=True):
    """Since when (wall seconds) a team has these standups; another chat or interval counts from anew."""

    at: float
    chat: str
    every: float


class Clockwork:
    """Posts standups and publishes checkpoints for one plan. `all_idle()` says whether the whole team rests."""

    def __init__(self, watcher: Watcher, all_idle: Callable[[], bool], tell: Callable[..., None]) -> None:
        self._watcher, self._all_idle, self._tell = watcher, all_idle, tell
        self._began = moment().wall
        self._rested = float("-inf")
        """When a standup was due and there was nothing to ask about."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._failed: dict[str, str] = {}
        """Per piece of business what keeps it from being done, so that this is told once."""
        self._chats: dict[str, Chat] = {}
        self.plan: Plan | None = None
        self._watched: str | None = None
        self._work: set[asyncio.Task[None]] = set()

    def open(self, plan: Plan) -> None:
        """Do the business of this plan from now on."""
        self.begin(plan)
        self._watch(plan.pythia.bus if plan.pythia else None)
        self._plan_standup()
        if plan.pythia is not None:
            self._spawn(self.count)

    def begin(self, plan: Plan) -> None:
        """Take up a plan; its first interval began when it was first taken up, by whichever supervisor."""
        self.plan = plan
        chat, now = self._path(), moment().wall
        if plan.standup is None or chat is None:
            return
        began = Began(now, chat, plan.standup.every)
        try:
            with open(plan.paths.began, "rb") as file:
                before = msgspec.json.decode(file.read(), type=Began)
        except (OSError, *MALFORMED):
            before = None
        if before is not None and (before.chat, before.every) == (began.chat, began.every):
            began = before
        else:
            try:
                write_atomic(plan.paths.began, msgspec.json.encode(began))
            except FleetError as error:
                self._tell("clockwork", error=error.message)
        self._began = began.at

    def close(self) -> None:
        """Do nothing any more."""
        self._watch(None)
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

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

    def _path(self) -> str | None:
        """The file of the chat for standups."""
        plan = self.plan
        if plan is None or plan.standup is None:
            return None
        wanted = plan.standup.chat
        return next((c.path for c in plan.chats if c.name == wanted), None)

    def _chat(self) -> Chat | None:
        path = self._path()
        return None if path is None else self._chats.setdefault(path, Chat(path, clock=lambda: moment().wall))

    def _plan_standup(self) -> None:
        """Wait for the next standup by one timer; nothing runs in between."""
        try:
            at = self.next_look()
            wait = None if at is None else max(1.0, at - moment().wall)
        except NbsFileError:
            # The look itself will say what keeps it.
            wait = RETRY
        self._later(self.stand_up, wait)

    def _later(self, work: Callable[[], None], wait: float | None) -> None:
        """Do a piece of business in `wait` seconds and not before; None: not at all."""
        timer = self._timers.pop(work.__name__, None)
        if timer is not None:
            timer.cancel()
        if wait is not None:
            self._timers[work.__name__] = asyncio.get_running_loop().call_later(wait, self._spawn, work)

    def next_look(self) -> float | None:
        """The wall second at which a standup may be due; None: there are none. Raises NbsFileError."""
        chat, plan = self._chat(), self.plan
        if chat is None or plan is None or plan.standup is None:
            return None
        board = standup.Board(self._last(chat), 0, all_idle=True)
        now, every = moment().wall, plan.standup.every
        at = standup.due(board, every, self._since(now), self._jitter(plan), now)
        return max(at, min(self._rested, now) + every)

    def _last(self, chat: Chat) -> float | None:
        return standup_file.last_standup(chat, SIDECAR, standup.TEXT)

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
        name, error = work.__name__, ""
        try:
            await asyncio.to_thread(work)
        except NbsFileError as refused:
            error = refused.message
            if self._failed.get(name) != error:
                self._tell("clockwork", error=error)
        self._failed[name] = error
        if error:
            self._later(work, RETRY)
        elif work == self.stand_up:
            self._plan_standup()

    def stand_up(self) -> None:
        """Post a standup if one is due and the turn is ours. Raises NbsFileError."""
        chat, plan = self._chat(), self.plan
        if chat is None or plan is None or plan.standup is None:
            return
        every = plan.standup.every
        last = self._last(chat)
        board = standup.Board(last, _news(chat, last), self._all_idle(), presence.paused(plan.root))
        now = moment().wall
        began, jitter = self._since(now), self._jitter(plan)
        if not standup.post(board, every, began, jitter, now):
            if now >= standup.due(board, every, began, jitter, now):
                # Nothing to ask about: the next look is a full interval away, as after a post.
                self._rested = now
            return
        if standup_file.hold(chat, SIDECAR, standup.TEXT, now, every):
            self._tell("standup", chat=os.path.basename(chat.path))

    def count(self) -> None:
        """Count the decisions; a bucket that is full is one checkpoint, whoever sees it first. Raises NbsFileError."""
        plan = self.plan
        if plan is None or plan.pythia is None:
            return
        rule = plan.pythia
        chat = plan.chats[0].name if plan.chats else None
        found = pythia_files.count_decisions(plan.root, chat, rule.bus)
        who = f"@{rule.agent} from {SIDECAR}: " if rule.agent else ""
        payload = f"{who}Decision count: {found.count}. Please assess where the team stands."

        def decide(before: int | None) -> tuple[int | None, str | None]:
            verdict = pythia.checkpoint(pythia.Count(found.count, before), rule.every)
            return verdict.bucket, payload if verdict.fire else None

        for name in pythia_files.advance(plan.root, Bus(rule.bus), decide):
            self._tell("pythia checkpoint", decisions=found.count, event=name)


def _news(chat: Chat, last: float | None) -> int:
    """How many messages by others are newer than the last standup."""
    since = last or 0.0
    return sum(1 for m in chat.messages() if m.handle != SIDECAR and m.at > since)
