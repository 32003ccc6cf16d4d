"""What each agent has its sidecar watch: the seed of its life, its control inbox, lines in its own words."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from nbs_fleet.jsontext import MALFORMED
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.nbs import control, presence
from nbs_fleet.nbs.commands_in_text import find_commands
from nbs_fleet.nbs.control import Position, Registry
from nbs_fleet.nbs.control_commands import SET_POLL, Command, Problem
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.plan.types import Plan
from nbs_fleet.supervisor.board import Tray

INBOX = "control-inbox-"


class Heard(msgspec.Struct, frozen=True):
    """How far an agent's control inbox was read, and the interval it asked for (seconds; 0: the team file's)."""

    position: Position
    poll: int = 0


class Registrations:
    """The registries of all living agents of one root.

    `assign(handle, tray)` hears what is watched now; `refuse(handle, text)` what an agent asked for in vain;
    `tell(handle, what, ...)` goes into its story.
    """

    def __init__(
        self,
        plan: Callable[[], Plan],
        watcher: Watcher,
        *,
        assign: Callable[[str, Tray | None], None],
        refuse: Callable[[str, str], None],
        tell: Callable[..., None],
    ) -> None:
        self._plan, self._watcher, self._assign, self._refuse, self._tell = plan, watcher, assign, refuse, tell
        self._heard: dict[str, Heard] = {}
        self._folder = ""

    def open(self) -> None:
        """Watch the root's control inboxes."""
        folder = os.path.join(self._plan().root, ".nbs")
        if folder != self._folder:
            self.close()
            self._folder = folder
            self._watcher.add(folder, self._changed)

    def close(self) -> None:
        """Stop watching."""
        if self._folder:
            self._watcher.remove(self._folder, self._changed)

    def begin(self, handle: str, *, client: int, fresh: bool, session: str = "") -> None:
        """A client lives under this handle. `fresh`: a new life, which starts from the seed."""
        plan = self._plan()
        registry = Registry(plan.root, handle)
        agent = plan.find(handle)
        if agent is not None and (fresh or not registry.entries()):
            own = [c.path for c in plan.chats if c.name in agent.agent.chats]
            foreign = [c.path for c in plan.chats if c.name not in agent.agent.chats]
            registry.write(control.seed(plan.root, own, agent.agent.bus, foreign))
        inbox = control.inbox_path(plan.root, handle)
        saved = None if fresh else self._saved(handle)
        self._heard[handle] = saved or Heard(control.end_of(inbox))
        try:
            presence.claim(plan.root, handle, sidecar=os.getpid(), client=client)
            self._note_session(handle, client, session)
        except NbsFileError as error:
            self._tell(handle, "presence", error=error.message)
        self._share(handle)
        self._look(handle)

    def _note_session(self, handle: str, client: int, session: str) -> None:
        """Write what the nbs tools want to know of a session, once for each client."""
        plan = self._plan()
        known = presence.read_session(plan.root, handle)
        agent = plan.find(handle)
        if agent is None or (known is not None and known.pid == client):
            return
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment().wall))
        found = presence.Session(
            session, handle, agent.agent.model or "", started, plan.root, client, agent.prompt is not None, plan.team
        )
        presence.write_session(plan.root, found)

    def end(self, handle: str, *, client: int | None) -> None:
        """The client is gone; its marks too."""
        if self._heard.pop(handle, None) is not None:
            presence.release(self._plan().root, handle, sidecar=os.getpid(), client=client)
            self._assign(handle, None)

    def heard(self, handle: str, text: str) -> None:
        """An agent ended a turn with these words: commands in them are carried out."""
        if handle in self._heard:
            self._carry_out(handle, find_commands(text), "its own words")

    def _changed(self, name: str) -> None:
        if name == "":
            for handle in list(self._heard):
                self._look(handle)
        elif name.startswith(INBOX) and name[len(INBOX) :] in self._heard:
            self._look(name[len(INBOX) :])

    def _look(self, handle: str) -> None:
        """Read what is new in a control inbox; how far is written down, so that a restart reads nothing twice."""
        try:
            news = control.read_inbox(control.inbox_path(self._plan().root, handle), self._heard[handle].position)
        except NbsFileError as error:
            self._tell(handle, "control inbox", error=error.message)
            return
        if news.position == self._heard[handle].position:
            return
        self._keep(handle, replace(self._heard[handle], position=news.position))
        self._carry_out(handle, news.found, "control inbox")

    def _carry_out(self, handle: str, found: tuple[Command | Problem, ...], source: str) -> None:
        root = self._plan().root
        registry = Registry(root, handle)
        for item in found:
            if isinstance(item, Problem):
                self._tell(handle, "control refused", line=item.line, why=item.why, source=source)
                continue
            try:
                changed = control.apply(root, registry, item)
            except NbsFileError as error:
                self._tell(handle, "control refused", line=f"{item.verb} {item.argument}", why=error.message)
                self._refuse(handle, f"{item.verb} {item.argument} was refused: {error.message}")
                continue
            if item.verb == SET_POLL and item.seconds != self._heard[handle].poll:
                changed = True
                self._keep(handle, replace(self._heard[handle], poll=item.seconds))
            self._tell(handle, "control", verb=item.verb, argument=item.argument, changed=changed, source=source)
        self._share(handle)

    def _share(self, handle: str) -> None:
        registry = Registry(self._plan().root, handle)
        poll = self._heard[handle].poll or None
        self._assign(handle, Tray(registry.paths("chat"), registry.paths("bus"), poll))

    def _keep(self, handle: str, heard: Heard) -> None:
        self._heard[handle] = heard
        write_atomic(self._position_path(handle), msgspec.json.encode(heard))

    def _position_path(self, handle: str) -> str:
        return os.path.join(self._plan().paths.agent(handle).dir, "control-position.json")

    def _saved(self, handle: str) -> Heard | None:
        try:
            with open(self._position_path(handle), "rb") as file:
                return msgspec.json.decode(file.read(), type=Heard)
        except (OSError, *MALFORMED):
            return None
