"""Where the dashboard's observations come from: the same files, sockets and panes that the commands read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from nbs_fleet.cli import logs, peek
from nbs_fleet.cli.lookup import Found
from nbs_fleet.cli.panes import find_pane, screen
from nbs_fleet.cli.places import Place, chat_names
from nbs_fleet.cli.queue import current
from nbs_fleet.cli.stories import last
from nbs_fleet.errors import FleetError, UnknownNameError
from nbs_fleet.launch.deathwatch import DeathWatch
from nbs_fleet.launch.locks import holder
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import ProcId
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.chat_format import ChatMessage
from nbs_fleet.nbs.chat_select import Filters
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.supervisor.status import FleetStatus, status
from nbs_fleet.top.look import Look, Mirror, Told, Wish

MESSAGES = 100
"""Newest messages of a chat that are shown."""
ENTRIES = 200
"""Newest entries of a story that are shown."""


QUIET = (".lock", ".log")
"""Ends of names that say nothing new; a look itself opens the lock, which would be heard as a change."""


class Source(Protocol):
    """Something that a dashboard can show. `look` and `mirror` may block and run in a thread; all else on the loop."""

    def look(self, wish: Wish) -> Look:
        """The team as it is now. Raises FleetError."""
        ...

    def mirror(self, handle: str) -> Mirror:
        """The screen of one agent as it is now. Raises FleetError."""
        ...

    def watch(self, look: Look, changed: Callable[[], None]) -> None:
        """Call `changed` whenever something that a look at this team reads has changed."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class TeamSource:
    """A team of this machine, with or without a live supervisor."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._chats: dict[str, Chat] = {}
        self._watched: set[str] = set()
        self._watcher: Watcher | None = None
        self._deaths: DeathWatch | None = None
        self._supervisor: ProcId | None = None

    def look(self, wish: Wish) -> Look:
        now = time.time()
        fleet = status(self._found.paths, now)
        if fleet is None:
            raise UnknownNameError(f"{self._found.team} was never up", hint="nbs-fleet up FILE starts it")
        chats = chat_names(Place(self._found.root, self._found, fleet.plan))
        chat = wish.chat if wish.chat in chats else next(iter(chats), "")
        handle = _chosen(fleet, wish.handle)
        return Look(
            fleet,
            queue=current(self._found),
            chats=tuple(chats),
            chat=chat,
            messages=self._messages(chats[chat]) if chat else (),
            handle=handle,
            story=self._story(handle, now) if handle else (),
        )

    def mirror(self, handle: str) -> Mirror:
        pane = find_pane(self._found, handle)
        if pane is not None:
            return Mirror(handle, screen(self._found, pane))
        try:
            at, rows = peek.last_capture(self._found, handle)
        except FleetError:
            return Mirror(handle, remark=f"{handle} has no pane, and no screen of it was kept.")
        return Mirror(handle, rows, at=at)

    def watch(self, look: Look, changed: Callable[[], None]) -> None:
        self._watcher = self._watcher or Watcher()
        self._deaths = self._deaths or DeathWatch()
        paths = self._found.paths
        handles = [row.handle for row in look.fleet.agents]
        chats = chat_names(Place(self._found.root, self._found, look.fleet.plan))
        folders = {paths.run, os.path.join(paths.run, "agents"), os.path.dirname(paths.socket)}
        folders |= {paths.agent(handle).dir for handle in handles} | {os.path.dirname(path) for path in chats.values()}
        for folder in folders - self._watched:
            # What can't be watched is left to the slow poll.
            with suppress(FleetError):
                self._watcher.add(folder, lambda name: None if name.endswith(QUIET) else changed())
        self._watched |= folders
        owner = holder(paths.lock)
        if owner is not None and owner != self._supervisor:
            with suppress(FleetError):
                self._deaths.add(owner, lambda _: changed())
        self._supervisor = owner

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
        if self._deaths is not None:
            self._deaths.close()

    def _messages(self, path: str) -> tuple[ChatMessage, ...]:
        chat = self._chats.setdefault(path, Chat(path))
        try:
            return chat.read(filters=Filters(last=MESSAGES)).messages
        except NbsFileError:
            return ()

    def _story(self, handle: str, now: float) -> tuple[Told, ...]:
        path = self._found.paths.agent(handle).story
        lines = last({handle: path}, ENTRIES, wanted=logs.for_people)
        return tuple(Told(line.at, *logs.told_of(line, now)) for line in lines)


def _chosen(fleet: FleetStatus, wanted: str) -> str:
    handles = [row.handle for row in fleet.agents]
    return wanted if wanted in handles else next(iter(handles), "")
