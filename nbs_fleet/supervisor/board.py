"""The team's chats and events as they are now: what waits for whom. One reader for all sidecars."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable

from msgspec import Struct

from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import Priority
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.bus_format import Event
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.sidecar.notices import Pending, Unread, Waiting

SIDECAR = "sidecar"
"""The handle under which machines post: it wakes nobody."""
CALLS = ("chat-mention", "human-input")
ANSWERED = ("chat-query", "chat-interrupt")
"""Events that the sidecar answers itself: they wait for no agent."""


_BY_SIDECAR = re.compile(rf"\s*@[A-Za-z0-9_-]+ from {SIDECAR}:")


class Tray(Struct, frozen=True):
    """What is watched for one agent: paths of chats and of event folders; how often it wants a look (seconds)."""

    chats: tuple[str, ...] = ()
    buses: tuple[str, ...] = ()
    poll: float | None = None


class Board:
    """Watches chats and event folders and tells what waits for each handle.

    `tell(handle, waiting)` is called whenever something of it may have changed; `problem(text)` once for each file
    that is no chat or no event. `roster()` are the handles that `@team` stands for;
    `calls(handle, bus, events)` hears of all events that concern an agent.
    """

    def __init__(
        self,
        watcher: Watcher,
        *,
        tell: Callable[[str, Waiting], None],
        problem: Callable[[str], None],
        roster: Callable[[], tuple[str, ...]],
        calls: Callable[[str, Bus, tuple[Event, ...]], None],
    ) -> None:
        self._watcher, self._tell, self._problem, self._roster = watcher, tell, problem, roster
        self._calls = calls
        self._trays: dict[str, Tray] = {}
        self._chats: dict[str, Chat] = {}
        self._buses: dict[str, Bus] = {}
        self._watched: set[str] = set()
        self._soon = False
        self._told: set[str] = set()

    def assign(self, handle: str, tray: Tray | None) -> None:
        """Watch this for an agent from now on; None: nothing any more."""
        if self._trays.get(handle) == tray:
            return
        if tray is None:
            self._trays.pop(handle, None)
        else:
            self._trays[handle] = tray
        self._watch()
        self._changed("")

    def chat(self, path: str) -> Chat:
        """The chat at `path`, read once for all."""
        if path not in self._chats:
            self._chats[path] = Chat(path)
        return self._chats[path]

    def look(self, others: frozenset[str] = frozenset()) -> None:
        """Read everything and tell everyone but `others`."""
        self._soon = self._soon and bool(others)
        trays = {handle: tray for handle, tray in self._trays.items() if handle not in others}
        folders = {folder for tray in trays.values() for folder in tray.buses}
        events = {folder: self._events(self._buses[folder]) for folder in sorted(folders)}
        roster = self._roster()
        for handle, tray in trays.items():
            unread = tuple(u for path in tray.chats if (u := self._unread(path, handle)) is not None)
            mine: list[Event] = []
            for folder in tray.buses:
                found = tuple(e for e in events.get(folder, ()) if e.concerns(handle, roster))
                self._calls(handle, self._buses[folder], found)
                mine.extend(e for e in found if e.type not in ANSWERED)
            self._tell(handle, Waiting(unread, pending(mine), tray.poll))

    def first_chat(self, handle: str) -> str | None:
        """The chat in which the sidecar of this agent speaks."""
        tray = self._trays.get(handle)
        return tray.chats[0] if tray is not None and tray.chats else None

    def _watch(self) -> None:
        chats = {path for tray in self._trays.values() for path in tray.chats}
        buses = {path for tray in self._trays.values() for path in tray.buses}
        self._buses = {folder: self._buses.get(folder) or Bus(folder) for folder in sorted(buses)}
        wanted = {os.path.dirname(path) for path in chats} | buses
        for folder in self._watched - wanted:
            self._watcher.remove(folder, self._changed)
        for folder in wanted - self._watched:
            self._watcher.add(folder, self._changed)
        self._watched = wanted

    def _changed(self, name: str) -> None:
        """Several changes of one moment are one look."""
        if not self._soon and not name.startswith(".") and not name.endswith((".lock", ".tmp")):
            self._soon = True
            asyncio.get_running_loop().call_soon(self.look)

    def _unread(self, path: str, handle: str) -> Unread | None:
        try:
            found = self.chat(path).unread(handle)
        except NbsFileError as error:
            self._say(error.message)
            return None
        others = {who: number for who, number in found.senders.items() if who != handle}
        by_others = sum(number for who, number in others.items() if who != SIDECAR)
        last = max((found.newest[who] for who in others if who != SIDECAR), default=-1)
        name = os.path.basename(path).removesuffix(".chat")
        return Unread(name, sum(others.values()), tuple(others), by_others, last)

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
    top = min((e.priority for e in events), key=_rank, default=None)
    return Pending(tuple(types.items()), top, urgent, tuple(e.name for e in events))


def is_call(event: Event) -> bool:
    """A mention by anyone but a machine: it waits for no cooldown."""
    return event.type in CALLS and not _BY_SIDECAR.match(event.payload)


def _rank(priority: Priority) -> int:
    return list(Priority).index(priority)
