"""The sidecar of one agent: its sources are read here, its decisions performed; nothing is decided here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Protocol, assert_never

from nbs_fleet.drivers.base import Driver, Facts, Reading, Screen, StateFile
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import processes
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.loop import Loop
from nbs_fleet.model import AgentState, Moment, ProcId
from nbs_fleet.sidecar.actions import (
    Action,
    Event,
    Faulted,
    Flickered,
    Look,
    Press,
    Pressed,
    ReadTranscript,
    Report,
    ScreenSeen,
    StateFileSeen,
    Ticked,
    TranscriptSeen,
)
from nbs_fleet.sidecar.decide import Mind, Watching, decide

EDGE_BYTES = 65_536
"""How much of a transcript's head and tail is read."""


class Ground(Protocol):
    """What a sidecar stands on: the pane's screen and keys."""

    async def look(self, pane: str) -> Screen:
        """The pane as it is now."""
        ...

    async def press(self, pane: str, keys: Sequence[str]) -> None:
        """Press keys, by their tmux names."""
        ...

    async def subscribe(self, pane: str, fmt: str, changed: Callable[[str], None]) -> None:
        """Call `changed` when the value of this tmux format changes in the pane."""
        ...


STARTUP_FLICKER = "#{history_size} #{cursor_x},#{cursor_y} #{window_activity} #{pane_title}"
"""Moves with the screen; tmux looks at it once a second and only speaks when it changed."""


class Sidecar:
    """Watches the run of one client in one pane until it is cancelled.

    `ready`: it was found ready before (a sidecar that takes over a running client). `facts` are those of the run (session, environment). `tell` takes each report; `record` each decision.
    """

    def __init__(
        self,
        driver: Driver,
        facts: Facts,
        *,
        proc: ProcId,
        pane: str,
        ready: bool,
        ground: Ground,
        watcher: Watcher,
        tell: Callable[[Report], None],
        record: Callable[[Event, Sequence[Action], Moment], None],
    ) -> None:
        self.driver, self.facts, self.proc, self.pane = driver, facts, proc, pane
        self._ground, self._watcher, self._tell, self._record = ground, watcher, tell, record
        self._places = driver.places(facts)
        self._state_name: str | None = None
        self._watched: list[tuple[str, Callable[[str], None]]] = []
        watching = Watching(driver.capabilities, expects_prompt=facts.has_prompt)
        self._loop: Loop[Mind, Event, Action] = Loop(
            Mind(watching, report=Report(AgentState.STARTING, 0.0, ready=ready)),
            decide=decide,
            perform=self._perform,
            fault=lambda action, error: Faulted(f"{type(action).__name__}: {error}"),
            tick=Ticked,
            wake=lambda _mind: None,
            record=lambda _before, _after, event, actions, now: self._record(event, actions, now),
        )

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            self._watch(self._places.state_dir, self._state_dir_changed)
            if self._places.transcript:
                self._watch(os.path.dirname(self._places.transcript), self._transcript_changed)
            await self._ground.subscribe(self.pane, self.driver.flicker or STARTUP_FLICKER, self._flickered)
            self._find_state_file()
            self._loop.post(Ticked())
            await self._loop.run()
        finally:
            for directory, callback in self._watched:
                self._watcher.remove(directory, callback)

    def poll(self) -> None:
        """The slow poll, for file systems that give no notice."""
        self._find_state_file()
        self._loop.post(Ticked())

    def _watch(self, directory: str | None, callback: Callable[[str], None]) -> None:
        if directory is not None:
            self._watcher.add(directory, callback)
            self._watched.append((directory, callback))

    def _flickered(self, _value: str) -> None:
        self._loop.post(Flickered())

    def _transcript_changed(self, name: str) -> None:
        transcript = self._places.transcript or ""
        if not self._loop.state.acknowledged and name in ("", os.path.basename(transcript)):
            self._loop.post(self._read_transcript())

    def _state_dir_changed(self, name: str) -> None:
        if name == "":
            self._find_state_file()
        elif name == self._state_name or (self._state_name is None and self._is_mine(name)):
            self._read_state_file(name)

    def _is_mine(self, name: str) -> bool:
        """Whether a state file is of our client, or of one that a wrapper around it started."""
        stem, _, ending = name.rpartition(".")
        if ending != "json" or not stem.isdigit():
            return False
        return int(stem) == self.proc.pid or self.proc in processes.ancestry(int(stem))

    def _find_state_file(self) -> None:
        directory = self._places.state_dir
        if directory is None:
            return
        names = [f"{self.proc.pid}.json"] if self._state_name is None else [self._state_name]
        if not os.path.exists(os.path.join(directory, names[0])):
            with contextlib.suppress(OSError):
                names = [n for n in os.listdir(directory) if self._is_mine(n)]
        for name in names:
            self._read_state_file(name)

    def _read_state_file(self, name: str) -> None:
        file = self._parse_state_file(name)
        if file is not None:
            self._state_name = name
        elif self._state_name is None:
            return
        self._loop.post(StateFileSeen(file))

    def _parse_state_file(self, name: str) -> StateFile | None:
        try:
            with open(os.path.join(self._places.state_dir or "", name), encoding="utf-8") as file:
                found = self.driver.read_state_file(file.read(EDGE_BYTES))
        except (OSError, UnicodeDecodeError):
            return None
        if found is None:
            return None
        owner = processes.identify(found.pid)
        stale = owner is None or (found.start is not None and owner.start != found.start)
        return None if stale else found

    def _read_transcript(self) -> TranscriptSeen:
        head, tail = edges(self._places.transcript)
        return TranscriptSeen(self.driver.read_transcript(head, tail))

    async def _perform(self, action: Action) -> Event | None:
        match action:
            case Look():
                return await self._look()
            case ReadTranscript():
                return self._read_transcript()
            case Press():
                return await self._press(action)
            case Report():
                self._tell(action)
                return None
            case _:
                assert_never(action)

    async def _look(self) -> ScreenSeen:
        reading = self._read(await self._ground.look(self.pane))
        answer = None
        if reading.dialog is not None:
            answer = self.driver.answer(reading.dialog, self.facts.agent.dialogs)
        return ScreenSeen(reading, answer)

    def _read(self, screen: Screen) -> Reading:
        return self.driver.read_screen(screen)

    async def _press(self, action: Press) -> Pressed:
        """Press only if what is on the screen right now is still the dialog that was decided on."""
        reading = self._read(await self._ground.look(self.pane))
        if reading.state is not AgentState.BLOCKED or reading.dialog is None or reading.dialog.text != action.dialog:
            return Pressed(ok=False, why="the dialog changed before it could be answered")
        try:
            await self._ground.press(self.pane, action.keys)
        except FleetError as error:
            return Pressed(ok=False, why=error.message)
        return Pressed(ok=True)


def edges(path: str | None) -> tuple[str, str]:
    """Head and tail of a file as whole lines where possible; two empty strings if it is not there."""
    if path is None:
        return "", ""
    try:
        with open(path, "rb") as file:
            head = file.read(EDGE_BYTES)
            size = os.fstat(file.fileno()).st_size
            if size <= EDGE_BYTES:
                text = head.decode("utf-8", "replace")
                return text, text
            file.seek(size - EDGE_BYTES)
            tail = file.read(EDGE_BYTES)
    except OSError:
        return "", ""
    whole_head, _, _ = head.rpartition(b"\n")
    _, _, whole_tail = tail.partition(b"\n")
    return whole_head.decode("utf-8", "replace"), whole_tail.decode("utf-8", "replace")
