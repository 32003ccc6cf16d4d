"""Puts right what others do to the run directory of a running team: its sockets, rendered files and records."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from nbs_fleet import jsontext
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import processes, registry, rundir
from nbs_fleet.launch.environment import read_values
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.locks import FileLock
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.plan.types import AgentRecord, Plan
from nbs_fleet.sidecar.sources import is_json
from nbs_fleet.supervisor.commands import CommandSocket
from nbs_fleet.supervisor.fleet import Life
from nbs_fleet.supervisor.panes import server_of
from nbs_fleet.supervisor.rendering import File, agent_files, own_files, team_files
from nbs_fleet.supervisor.story import Story

Signature = bytes
SOON = 0.3
"""Seconds after a change until it is looked at: several come at once."""
AGAIN = 2.0
"""Seconds until another look while an `up` or `down` is at work, whose files are none of our business."""
TIMES = 5
"""So often a file is put right; one that is spoiled again and again is told and then left alone."""


class Upkeep:
    """The run directory while this supervisor runs. `lives` are the agents; `more` other files that are in memory.

    What is damaged is put right at a change that is notified, else at the slow poll, and told in the team's story.
    """

    def __init__(
        self,
        plan: Plan,
        watcher: Watcher,
        *,
        socket: CommandSocket,
        tmux: Tmux,
        lives: Callable[[], Mapping[str, Life]],
        more: Callable[[], Mapping[str, File]],
        story: Story,
    ) -> None:
        self._watcher, self._socket, self._tmux = watcher, socket, tmux
        self._lives, self._more, self._story = lives, more, story
        self._server = server_of(tmux)
        self._lock = FileLock(plan.paths.up_lock)
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._times: Counter[str] = Counter()
        self._watched: set[str] = set()
        self._looked: dict[str, Signature | None] = {}
        self._due: set[str] = set()
        """Agents whose files are looked at next: something changed there, or it is their turn."""
        self.stirred: Callable[[], None] = lambda: None
        """Called when there is something to be looked at in the next slow poll."""
        self._plan = plan
        self._names: frozenset[str] = frozenset()
        self._signs: dict[str, File] = {}
        self._known: dict[str, Known] = {}

    def open(self, plan: Plan) -> None:
        """Keep the files of this plan from now on."""
        paths = plan.paths
        self._plan = plan
        self._known.clear()
        self._due.update(a.agent.handle for a in plan.agents)
        # Known by what it says itself: who made `.nbs`.
        self._signs = {path: File(data) for path, data in rundir.signs(paths, plan.root).items()}
        others = (paths.plan, paths.attention, paths.budget, paths.began, paths.socket, paths.tmux)
        known = (*own_files(plan), *self._signs, *others)
        self._names = frozenset(os.path.basename(path) for path in known)
        # Sockets lie elsewhere where the path to the run directory is too long for one.
        for folder in dict.fromkeys((paths.run, paths.bin, os.path.dirname(paths.socket), os.path.dirname(paths.tmux))):
            self._watch(folder, None)
        for handle in (a.agent.handle for a in plan.agents):
            self._watch(paths.agent(handle).dir, handle)
        self._later(SOON)

    def look(self, others: frozenset[str] = frozenset()) -> None:
        """The slow poll, but for agents whose turn it is not: changes of their files were told."""
        self._due |= self._lives().keys() - others
        self._later(0.0)

    def glance(self) -> None:
        """The slow poll while the team rests: what was told since, and sockets, whose folders may not be watched."""
        if self._due or self._sockets():
            self._later(0.0)

    def doubt(self, handle: str) -> None:
        """The record of this agent could not be written: news that no file tells of."""
        self._due.add(handle)
        self.stirred()

    async def close(self) -> None:
        """Stop; the watcher is its owner's."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _watch(self, folder: str, handle: str | None) -> None:
        if folder not in self._watched:
            with suppress(FleetError):  # the limit of watches: the poll remains
                self._watcher.add(folder, partial(self._changed, handle), writes=False)
                self._watched.add(folder)

    def _changed(self, handle: str | None, name: str) -> None:
        """Only what others wrote is worth a look at once; records change with each state, and are polled.

        `handle`: whose folder it is; None: the team's.
        """
        if handle is not None:
            self._due.add(handle)
            self.stirred()
        if not name or name in (self._names if handle is None else _AGENTS_NAMES):
            self._later(SOON)

    def _later(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._timer = None
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look(), name="upkeep")

    def _tell_damage(self, due: AbstractSet[str]) -> None:
        """Say of files that only their writers know that they are damaged: their readers take some for none."""
        paths = self._plan.paths
        agents = [paths.agent(handle) for handle in self._lives() if handle in due]
        for path in (paths.began, paths.budget, *(agent.signal for agent in agents)):
            if self._is_new(path) and not is_json(path):
                self._tell_damaged(path, why="it is no JSON")
        for values in (agent.values for agent in agents):
            if self._is_new(values) and (fault := _fault_of(values)):
                self._tell_damaged(values, why=fault, do=f"nbs-fleet up {self._plan.file} writes it again")

    def _is_new(self, path: str) -> bool:
        """Whether the file was not looked at as it is now."""
        now = signature(path)
        before, self._looked[path] = self._looked.get(path), now
        return before != now

    def _tell_damaged(self, path: str, **more: str) -> None:
        inside = path.startswith(self._plan.paths.run + "/")
        name = os.path.relpath(path, self._plan.paths.run) if inside else os.path.basename(path)
        self._story.tell(moment().wall, "file damaged", file=name, **more)

    async def _look(self) -> None:
        due, self._due = self._due, set()
        # A start makes its agent's files itself.
        self._due |= {handle for handle, life in self._lives().items() if life.flight and handle in due}
        self._tell_damage(due)
        wrong = self._differing(due)
        sockets = self._sockets()
        if not wrong and not sockets:
            return
        if wrong:
            # Until they are seen to be right.
            self._due |= due
        try:
            if not self._lock.try_acquire():
                self._later(AGAIN)
                return
            try:
                await self._mend_sockets(sockets)
                # Once more, as an `up` may have come and gone since.
                self._mend(self._differing(due))
            finally:
                self._lock.release()
        except (FleetError, OSError) as error:
            what = error.message if isinstance(error, FleetError) else str(error)
            self._story.tell(moment().wall, "not put right", error=what)

    def _sources(self, due: AbstractSet[str]) -> Iterator[tuple[str, object, Callable[[], Mapping[str, File]]]]:
        """What files there should be, by name: of what they are made, and how. Made anew only when needed."""
        plan = self._plan
        yield "team", plan, lambda: team_files(plan) | self._signs
        more = dict(self._more())
        yield "more", more, lambda: more
        for handle, life in self._lives().items():
            if handle not in due or life.flight or life.plan is None:
                continue
            paths, agent, record = plan.paths.agent(handle), life.plan, life.record
            yield f"record {handle}", record, partial(_record_file, paths.state, record)
            # Other clients write into their settings themselves, or are given what depends on how the start began.
            if life.alive and registry.of(agent.agent).capabilities.state_file:
                of = (record.session_id, signature(paths.values))
                yield f"{_AGENT}{handle}", of, partial(agent_files, plan, agent, record)

    def _differing(self, due: AbstractSet[str]) -> list[tuple[str, File]]:
        """The files that are missing, or hold something else than they should: the team's, and those of these agents."""
        wrong: list[tuple[str, File]] = []
        for name, of, make in self._sources(due):
            known = self._known.get(name)
            with suppress(FleetError):  # an agent whose values are gone
                if known is None or not _same(known.of, of):
                    made = {path: Sign(digest(file.data)) for path, file in make().items()}
                    known = self._known[name] = Known(of, made)
                    self._watch_files(name, made)
                spoiled = [path for path, sign in known.files.items() if not sign.fits(path)]
                files = make() if spoiled else {}
                wrong += [(path, files[path]) for path in spoiled if path in files]
        return wrong

    def _watch_files(self, source: str, made: Mapping[str, Sign]) -> None:
        """Some files of an agent have folders of their own, as skills do."""
        if source.startswith(_AGENT):
            for folder in {os.path.dirname(path) for path in made}:
                self._watch(folder, source.removeprefix(_AGENT))

    def _mend(self, wrong: Iterable[tuple[str, File]]) -> None:
        for path, file in wrong:
            self._times[path] += 1
            name = os.path.relpath(path, self._plan.paths.run)
            if self._times[path] <= TIMES:
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                write_atomic(path, file.data, file.mode, durable=file.durable)
                self._story.tell(moment().wall, "file put right", file=name)
            elif self._times[path] == TIMES + 1:
                self._story.tell(moment().wall, "file left as it is", file=name, why=f"spoiled {TIMES} times")

    def _sockets(self) -> tuple[str, ...]:
        paths = (self._plan.paths.socket, self._tmux.socket)
        return tuple(path for path in paths if not _is_socket(path))

    async def _mend_sockets(self, missing: tuple[str, ...]) -> None:
        for path in missing:
            if path == self._plan.paths.socket:
                await self._socket.renew()
            elif self._server is not None and processes.alive(self._server):
                self._tmux.mend_socket(self._server.pid)
            else:
                continue
            self._story.tell(moment().wall, "socket put right", file=os.path.basename(path))


_AGENT = "agent "
_SIGNATURE = struct.Struct("=QQq")
"""Three numbers as an object of a third of their size; there are five of them for each agent."""
_AGENTS_NAMES = frozenset({"signal.json", "settings.json", "hooks.json"})


class Sign:
    """What a file should hold, by its digest, and how it looked when it last did: it is read only when that changed."""

    __slots__ = ("_digest", "_seen")

    def __init__(self, wanted: bytes) -> None:
        self._digest = wanted
        self._seen: Signature | None = None

    def fits(self, path: str) -> bool:
        """Whether it holds what it should."""
        now = signature(path)
        if now is not None and now == self._seen:
            return True
        content = _content(path)
        fits = content is not None and digest(content) == self._digest
        self._seen = now if fits else None
        return fits


class Known(NamedTuple):
    """Files by path, and of what they were made."""

    of: object
    files: dict[str, Sign]


def signature(path: str) -> Signature | None:
    """What changes with a file: inode, size, and the time of its last change (ns); None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return _SIGNATURE.pack(found.st_ino, found.st_size, found.st_mtime_ns)


def digest(data: bytes) -> bytes:
    """Stands for the content of a file: that of many agents is not kept in memory twice."""
    return hashlib.blake2b(data, digest_size=16).digest()


def _same(one: object, other: object) -> bool:
    """Plans and records are the same only if they are one: comparing costs more than rendering."""
    return one is other or (isinstance(one, tuple | dict) and one == other)


def _record_file(path: str, record: AgentRecord) -> dict[str, File]:
    return {path: File(jsontext.encode(record))}


def _fault_of(values: str) -> str | None:
    """Why an agent's environment can't be had; None if it can."""
    try:
        read_values(values)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _content(path: str) -> bytes | None:
    try:
        # Without O_NONBLOCK, a named pipe in the place of a file would hang the supervisor.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(fd).st_mode) else None


def _is_socket(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    return False
