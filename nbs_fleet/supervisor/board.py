"""The team's chats and events as they are now: what waits for whom. One reader for all sidecars."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import Priority
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.bus_format import Event
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.plan.types import Plan
from nbs_fleet.sidecar.notices import Pending, Unread, Waiting

SIDECAR = "sidecar"
"""The handle under which machines post: it wakes nobody."""
URGENT_TYPES = ("chat-mention", "chat-interrupt", "chat-query", "human-input")


class Board:
    """Watches the chats and event folders of a plan and tells what waits for each handle.

    `tell(handle, waiting)` is called for each agent at the start and whenever something of it may have changed;
    `problem(text)` once for each file that is no chat or no event.
    """

    def __init__(
        self,
        watcher: Watcher,
        tell: Callable[[str, Waiting], None],
        problem: Callable[[str], None],
    ) -> None:
        self._watcher, self._tell, self._problem = watcher, tell, problem
        self._plan: Plan | None = None
        self.chats: dict[str, Chat] = {}
        self.buses: dict[str, Bus] = {}
        self._watched: set[str] = set()
        self._soon = False
        self._told: set[str] = set()

    def open(self, plan: Plan) -> None:
        """Watch what this plan names; what an earlier one named is let go."""
        self._plan = plan
        self.chats = {c.name: Chat(c.path) for c in plan.chats}
        folders = {bus for a in plan.agents for bus in a.agent.bus} | set(plan.bus)
        self.buses = {folder: Bus(folder) for folder in sorted(folders)}
        wanted = {os.path.dirname(c.path) for c in plan.chats} | folders
        for folder in self._watched - wanted:
            self._watcher.remove(folder, self._changed)
        for folder in wanted - self._watched:
            self._watcher.add(folder, self._changed)
        self._watched = wanted
        self.look()

    def look(self) -> None:
        """Read everything and tell everyone."""
        self._soon = False
        if self._plan is None:
            return
        events = {folder: self._events(bus) for folder, bus in self.buses.items()}
        roster = tuple(a.agent.handle for a in self._plan.agents)
        for agent in self._plan.agents:
            handle = agent.agent.handle
            unread = tuple(u for name in agent.agent.chats if (u := self._unread(name, handle)) is not None)
            mine = [e for folder in agent.agent.bus for e in events.get(folder, ()) if e.concerns(handle, roster)]
            self._tell(handle, Waiting(unread, pending(mine)))

    def _changed(self, name: str) -> None:
        """Several changes of one moment are one look."""
        if not self._soon and not name.startswith(".") and not name.endswith((".lock", ".tmp")):
            self._soon = True
            asyncio.get_running_loop().call_soon(self.look)

    def _unread(self, name: str, handle: str) -> Unread | None:
        chat = self.chats.get(name)
        if chat is None:
            return None
        try:
            found = chat.unread(handle)
        except NbsFileError as error:
            self._say(error.message)
            return None
        others = {who: number for who, number in found.senders.items() if who != handle}
        by_others = sum(number for who, number in others.items() if who != SIDECAR)
        return Unread(name, sum(others.values()), tuple(others), by_others, found.first + found.count - 1)

    def _events(self, bus: Bus) -> tuple[Event, ...]:
        try:
            found = bus.pending()
        except NbsFileError as error:
            self._say(error.message)
            return ()
        for problem in found.problems:
            self._say(problem)
        return found.events

    def _say(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            self._problem(problem)


def pending(events: list[Event]) -> Pending:
    """The events of one agent, counted; `events` are most urgent first."""
    types: dict[str, int] = {}
    for event in events:
        types[event.type] = types.get(event.type, 0) + 1
    urgent = tuple(e.name for e in events if e.priority is Priority.CRITICAL or is_call(e))
    newest = max((e.name for e in events), default="")
    return Pending(tuple(types.items()), min((e.priority for e in events), key=_rank, default=None), urgent, newest)


def is_call(event: Event) -> bool:
    """A mention by anyone but a machine: it waits for no cooldown."""
    return event.type in URGENT_TYPES and f"from {SIDECAR}:" not in event.payload.partition("\n")[0]


def _rank(priority: Priority) -> int:
    return list(Priority).index(priority)
