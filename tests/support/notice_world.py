"""A team in virtual time: the real chats, bus, board and deciding code; clients and clock are simulated."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from nbs_fleet.drivers.base import Capabilities, Dialog, Option, Reading, StateFile
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import AgentState, BlockedKind, Moment
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.bus_format import Event as BusEvent
from nbs_fleet.sidecar.actions import Event, Look, ScreenSeen, StateFileSeen, Ticked, WaitingSeen
from nbs_fleet.sidecar.decide import decide
from nbs_fleet.sidecar.delivery import Counted
from nbs_fleet.sidecar.mind import Mind, Watching
from nbs_fleet.sidecar.notices import NoticeRules, Notify, Waiting
from nbs_fleet.supervisor.board import Board, Tray
from tests.support.notice_model import CALLS, Model, Person
from tests.support.notice_traffic import HANDLES, MEMBERS, Traffic

RULES = NoticeRules(startup_grace=5.0, cooldown=15.0)
SLACK = 0.2
"""Seconds a notice may come late: the pause in which a message and its mention become one notice."""
READINGS = {
    "idle": Reading(AgentState.IDLE),
    "busy": Reading(AgentState.BUSY),
    "compacting": Reading(AgentState.COMPACTING),
    "dialog": Reading(
        AgentState.BLOCKED,
        blocked=BlockedKind.PERMISSION,
        dialog=Dialog(BlockedKind.PERMISSION, "may I?", (Option("Yes", "1"), Option("No", "2")), 0),
    ),
}


class Still(Watcher):
    """Watches nothing: the world tells the board to look."""

    def __init__(self) -> None:
        """Nothing to set up."""

    def add(self, directory: str, callback: Callable[[str], None], *, writes: bool = True) -> None:
        """Watch nothing."""

    def remove(self, directory: str, callback: Callable[[str], None] | None = None) -> None:
        """Forget nothing."""


class QuietBoard(Board):
    """A board that looks when it is told to."""

    def _changed(self, name: str) -> None:
        pass


class World:
    """Five agents, two chats, a bus, and what should come of it (`model`)."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)  # repeatable, not secret
        self.now = 1_777_626_000.0
        self.steps = 0
        self.model = Model(MEMBERS, RULES.startup_grace, RULES.cooldown)
        self.traffic = Traffic(
            folder, self.model, chance=self.random, clock=lambda: self.now, marks=("", "", "", "!", "?")
        )
        self.called: list[tuple[str, str]] = []
        """Queries and interrupts: (whom, the event)."""
        self.board = QuietBoard(
            Still(), tell=self._waits, problem=self._problem, roster=lambda: HANDLES, calls=self._calls
        )
        can = Watching(Capabilities(state_file=True), expects_prompt=False, notices=RULES)
        self.minds = dict.fromkeys(HANDLES, Mind(can))
        for handle in HANDLES:
            mine = {name: 0 for name, people in MEMBERS.items() if handle in people}
            self.model.people[handle] = Person(idle_since=self.now, began=self.now, read=mine)
            paths = tuple(self.traffic.chats[name].path for name in mine)
            self.board.assign(handle, Tray(paths, (self.traffic.bus.folder,)))
            self.turn(handle, "idle")

    # -- what the real code says

    def _problem(self, text: str) -> None:
        raise AssertionError(text)

    def _waits(self, handle: str, waiting: Waiting) -> None:
        if waiting != self.minds[handle].waiting:
            self.tell(handle, WaitingSeen(waiting))

    def _calls(self, handle: str, _bus: Bus, events: tuple[BusEvent, ...]) -> None:
        for event in events:
            assert self.model.events[event.name][1] == handle, f"{handle} is given {event}"
            if event.type in CALLS and (handle, event.name) not in self.called:
                self.called.append((handle, event.name))

    def tell(self, handle: str, event: Event) -> None:
        """Let the sidecar of an agent decide, and do what it asks."""
        before = self.minds[handle]
        mind, actions = decide(before, event, Moment(self.now, self.now - 1e9))
        self.minds[handle] = mind
        for action in actions:
            if isinstance(action, Notify):
                self.model.told(handle, action.summary, action.why, self.now)
                self.tell(handle, Counted(()))
            elif isinstance(action, Look):
                self.tell(handle, ScreenSeen(READINGS[self.model.people[handle].state]))

    # -- what happens

    def turn(self, handle: str, state: str) -> None:
        """The agent's client goes into a state."""
        person = self.model.people[handle]
        if state == "idle" != person.state:
            person.idle_since = self.now
        person.state = state
        own = READINGS["busy" if state == "compacting" else state]
        self.tell(handle, StateFileSeen(StateFile(1, 1, "s", own, at=self.now)))
        self.tell(handle, ScreenSeen(READINGS[state]))

    def pass_time(self, seconds: float) -> None:
        """Let time go by; what becomes due on the way is done at its second."""
        end = self.now + seconds
        while True:
            wakes = {h: m.wake_at + 1e9 for h, m in self.minds.items() if m.wake_at is not None}
            first = min(wakes, key=lambda handle: wakes[handle], default=None)
            if first is None or wakes[first] > end:
                break
            self.now = max(self.now, wakes[first])
            self.tell(first, Ticked())
            self.model.check(self.now, SLACK)
        self.now = end
        self.model.check(self.now, SLACK)

    def tidy(self) -> None:
        """Somebody acknowledges what is for nobody here, and the sidecars what they answered."""
        self.traffic.tidy()
        for _, name in self.called:
            if name in self.model.events:
                self.traffic.acknowledge(name)

    def step(self) -> None:
        """One thing happens, the board sees it, and some time goes by."""
        self.steps += 1
        handle = self.random.choice(HANDLES)
        chance = self.random.random()
        if chance < 0.35:
            self.traffic.post()
        elif chance < 0.55:
            self.traffic.publish()
        elif chance < 0.8:
            self.turn(handle, self.random.choice(("idle", "idle", "busy", "busy", "dialog", "compacting")))
        else:
            busy = [h for h in HANDLES if self.model.people[h].state == "busy"]
            for worker in busy:
                self.traffic.work(worker)
        if self.steps % 20 == 0:
            self.tidy()
        self.board.look()
        self.pass_time(self.random.choice((0.0, 0.01, 0.5, 3.0, 20.0)))

    def settle(self) -> None:
        """Everybody becomes idle, and in the end all was told to whom it was for, and to nobody else."""
        for handle in HANDLES:
            self.turn(handle, "idle")
        self.board.look()
        self.pass_time(RULES.startup_grace + RULES.cooldown + 1)
        for handle, person in self.model.people.items():
            assert all(item.covered for item in person.items.values()), handle
        self.tidy()
        self.traffic.untouched()
        assert all(to in HANDLES for _, to in self.model.events.values())
