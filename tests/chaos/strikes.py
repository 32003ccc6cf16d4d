"""Performs the faults: signals, tmux commands, a full disk, other times, damaged files, commands against each other."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from nbs_fleet.supervisor import store
from tests.chaos.damage import Damaged, damage, read
from tests.chaos.ground import TEAM, Ground, handles
from tests.chaos.kinds import PASSING, Kind, file_kind
from tests.chaos.schedule import Strike
from tests.chaos.traffic import Traffic

LOOK = 0.05
PATIENCE = 5.0
"""Seconds in which a process or file that is to be struck may come."""
GLANCE = 1.0
"""The same for files that are there for a moment."""
MINUTES = (1, 7, 60, 600)


class Striker:
    """Performs strikes. `done` counts those that happened, `files` damage by the kind of file."""

    def __init__(self, ground: Ground, traffic: Traffic) -> None:
        self._ground, self._traffic = ground, traffic
        self.done: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.damaged: list[Damaged] = []
        self.deaths: dict[str, list[float]] = {handle: [] for handle in handles()}
        self.unknown: set[str] = set()
        self._how: dict[Kind, Callable[[Strike], bool]] = {
            Kind.KILL_CLIENT: self._kill_client,
            Kind.STOP_CLIENT: self._stop_client,
            Kind.KILL_SUPERVISOR: lambda s: self._kill(self._ground.supervisor),
            Kind.STOP_SUPERVISOR: lambda s: self._stop(self._ground.supervisor, s.span),
            Kind.KILL_CONTROL: lambda s: self._kill(self._ground.control),
            Kind.STOP_CONTROL: lambda s: self._stop(self._ground.control, s.span),
            Kind.KILL_PANE: self._kill_pane,
            Kind.KILL_SERVER: self._kill_server,
            Kind.DISK_FULL: self._disk_full,
            Kind.UP_UP: lambda s: self._together(s, "up", "up"),
            Kind.UP_DOWN: lambda s: self._together(s, "up", "down"),
            Kind.CLOCK_BACK: lambda s: self._clock(-60 * MINUTES[s.number % len(MINUTES)]),
            Kind.CLOCK_ON: lambda s: self._clock(60 * MINUTES[s.number % len(MINUTES)]),
            Kind.DAMAGE: self._damage,
        }

    def strike(self, one: Strike) -> bool:
        """Do it; False if there was nothing to be struck."""
        happened = self._how[one.kind](one)
        if happened:
            self.done[one.kind] += 1
        else:
            self.missed[f"{one.kind} {one.file}".strip()] += 1
        return happened

    # -- processes

    def _awaited(self, find: Callable[[], psutil.Process | None]) -> psutil.Process | None:
        end = time.monotonic() + PATIENCE
        while (found := find()) is None and time.monotonic() < end:
            time.sleep(LOOK)
        return found

    def _kill(self, find: Callable[[], psutil.Process | None]) -> bool:
        process = self._awaited(find)
        with suppress(psutil.NoSuchProcess):
            if process is not None:
                process.kill()
                return True
        return False

    def _stop(self, find: Callable[[], psutil.Process | None], span: float) -> bool:
        process = self._awaited(find)
        with suppress(psutil.NoSuchProcess):
            if process is not None:
                process.suspend()
                time.sleep(span)
                process.resume()
                return True
        return False

    def _client(self, one: Strike) -> psutil.Process | None:
        found = self._ground.clients()
        if not found:
            return None
        handle = sorted(found)[one.number % len(found)]
        self.deaths[handle].append(time.monotonic())
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(found[handle])
        return None

    def _kill_client(self, one: Strike) -> bool:
        return self._kill(lambda: self._client(one))

    def _stop_client(self, one: Strike) -> bool:
        """With its tmux server, which would set it going again at once."""
        server, client = self._ground.server(), self._client(one)
        if server is None or client is None:
            return False
        with suppress(psutil.NoSuchProcess):
            server.suspend()
            try:
                client.suspend()
                time.sleep(one.span)
                client.resume()
            finally:
                server.resume()
            return True
        return False

    def _tmux(self, *args: str) -> bool:
        argv = ["tmux", "-S", self._ground.world.eyes.paths.tmux, *args]
        with suppress(subprocess.TimeoutExpired):
            return subprocess.run(argv, capture_output=True, timeout=10, check=False).returncode == 0
        return False

    def _kill_pane(self, one: Strike) -> bool:
        handle = handles()[one.number % len(handles())]
        record = store.read_record(self._ground.world.eyes.paths, handle)
        self.deaths[handle].append(time.monotonic())
        return record is not None and record.pane is not None and self._tmux("kill-pane", "-t", record.pane)

    def _kill_server(self, one: Strike) -> bool:
        self._everybody_dies()
        return self._tmux("kill-server")

    def _everybody_dies(self) -> None:
        for times in self.deaths.values():
            times.append(time.monotonic())

    # -- the machine

    def _disk_full(self, one: Strike) -> bool:
        with self._ground.full():
            time.sleep(one.span)
        return True

    def _clock(self, by: int) -> bool:
        if self._ground.clock is None:
            return False
        self._ground.clock.set(self._ground.clock.offset + by)
        return True

    # -- commands

    def _together(self, one: Strike, *verbs: str) -> bool:
        """Two commands at once; the second one a moment later."""
        if "down" in verbs:
            self._everybody_dies()
        ground = self._ground
        argvs = {"up": ("up", ground.world.file, "--timeout", "60s"), "down": ("down", "--team", TEAM)}
        begun = []
        for verb in verbs:
            begun.append((ground.start(*argvs[verb]), argvs[verb]))
            time.sleep((one.number % 8) * 0.1)
        for process, argv in begun:
            ground.finish(process, *argv)
        if "down" in verbs:
            self._everybody_dies()
        return True

    # -- files

    def _files(self, kind: str) -> list[str]:
        paths = self._ground.world.eyes.paths
        found: list[str] = []
        for top, _, names in (*os.walk(paths.run), *os.walk(paths.runtime)):
            for path in (os.path.relpath(os.path.join(top, name), paths.run) for name in names):
                its = file_kind(path)
                if its is None:
                    self.unknown.add(path)
                elif its == kind:
                    found.append(path)
        return sorted(found)

    def _damage(self, one: Strike) -> bool:
        if one.file == "message":
            return self._damage_message(one)
        if one.file == "mark of a pause":
            return self._damage_pause(one)
        end = time.monotonic() + (GLANCE if one.file in PASSING else PATIENCE)
        while time.monotonic() < end:
            if (found := self._files(one.file)) and self._spoil(one, found[one.number % len(found)]):
                return True
            time.sleep(LOOK)
        return False

    def _damage_message(self, one: Strike) -> bool:
        """A message that waits for a paused agent, and that its sidecar has seen."""
        ground, handle = self._ground, handles()[one.number % len(handles())]
        if ground.command("pause", "--team", TEAM, handle).code != 0:
            return False
        try:
            sent = self._traffic.send("directive", handle)
            if sent is None or not self._is_known(handle, sent.id):
                return False
            return self._spoil(one, f"agents/{sent.to}/queue/{sent.id}.json")
        finally:
            ground.command("resume", "--team", TEAM, handle)

    def _damage_pause(self, one: Strike) -> bool:
        """The mark of an agent that is paused, and is taken up again although its mark is gone."""
        ground, handle = self._ground, handles()[one.number % len(handles())]
        if ground.command("pause", "--team", TEAM, handle).code != 0:
            return False
        try:
            return self._spoil(one, f"agents/{handle}/paused")
        finally:
            ground.command("resume", "--team", TEAM, handle)

    def _is_known(self, handle: str, message_id: str) -> bool:
        """Whether the sidecar comes to know of this message: what nobody had seen, nobody can miss."""
        folder = Path(self._ground.run_dir, "agents", handle)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if any(message_id.encode() in read(str(path)) for path in folder.glob("story*.jsonl")):
                return True
            time.sleep(LOOK)
        return False

    def _spoil(self, one: Strike, path: str) -> bool:
        found = damage(self._ground.run_dir, path, one.file, one.way, one.number)
        if found is None:
            return False
        self.damaged.append(found)
        self.files[one.file] += 1
        return True
