"""Puts right what others do to the run directory of a running team: its sockets, rendered files and records."""

from __future__ import annotations

import asyncio
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from nbs_fleet import jsontext
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import processes
from nbs_fleet.launch.files import stamp, write_atomic
from nbs_fleet.launch.locks import FileLock
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.plan.types import Plan
from nbs_fleet.sidecar.sources import is_json
from nbs_fleet.supervisor.commands import CommandSocket
from nbs_fleet.supervisor.fleet import Life
from nbs_fleet.supervisor.panes import server_of
from nbs_fleet.supervisor.rendering import File, agent_files, team_files
from nbs_fleet.supervisor.story import Story

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
        self._told: set[tuple[str, int]] = set()
        self._plan = plan
        self._team: dict[str, File] = {}

    def open(self, plan: Plan) -> None:
        """Keep the files of this plan from now on."""
        self._plan, self._team = plan, team_files(plan)
        paths = plan.paths
        folders = {paths.run, paths.bin, *(paths.agent(a.agent.handle).dir for a in plan.agents)}
        for folder in folders - self._watched:
            with suppress(FleetError):  # the limit of watches: the poll remains
                self._watcher.add(folder, self._changed)
                self._watched.add(folder)
        self._later(SOON)

    def look(self) -> None:
        """The slow poll."""
        self._later(0.0)

    async def close(self) -> None:
        """Stop; the watcher is its owner's."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _changed(self, name: str) -> None:
        if name not in _OWN_APPENDS:
            self._later(SOON)

    def _later(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._timer = None
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look(), name="upkeep")

    def _tell_damage(self) -> None:
        """Say of a file that only its writer knows, and that its reader will take for none, that it is damaged."""
        paths = self._plan.paths
        for path in (paths.began, paths.budget, *(paths.agent(handle).signal for handle in self._lives())):
            if not is_json(path) and (seen := (path, stamp(path, "st_mtime_ns"))) not in self._told:
                self._told.add(seen)
                self._story.tell(moment().wall, "file damaged", file=os.path.relpath(path, paths.run))

    async def _look(self) -> None:
        self._tell_damage()
        wrong = differing(self._wanted())
        sockets = self._sockets()
        if not wrong and not sockets:
            return
        try:
            if not self._lock.try_acquire():
                self._later(AGAIN)
                return
            try:
                await self._mend_sockets(sockets)
                # Once more, as an `up` may have come and gone since.
                self._mend(differing(self._wanted()))
            finally:
                self._lock.release()
        except (FleetError, OSError) as error:
            what = error.message if isinstance(error, FleetError) else str(error)
            self._story.tell(moment().wall, "not put right", error=what)

    def _wanted(self) -> Iterator[tuple[str, File]]:
        """Every file that can be put right now, with what it should hold."""
        yield from self._team.items()
        yield from self._more().items()
        for handle, life in self._lives().items():
            if life.flight or life.plan is None:
                continue
            paths = self._plan.paths.agent(handle)
            yield paths.state, File(jsontext.encode(life.record))
            if life.alive:
                with suppress(FleetError):
                    yield from agent_files(self._plan, life.plan, life.record).items()

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


_OWN_APPENDS = frozenset({"story.jsonl", "supervisor.log", "waiting", "turn"})
"""Names whose change alone is no reason to look."""


def differing(wanted: Iterable[tuple[str, File]]) -> list[tuple[str, File]]:
    """Those files that are missing, or hold something else than they should."""
    return [(path, file) for path, file in wanted if _content(path) != file.data]


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
