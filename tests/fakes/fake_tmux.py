"""A tmux server in memory, with the interface of `launch.tmux.Tmux`; passes the same suite as the real one.

It understands the commands that `launch.layout.start_lines` makes. A pane whose command is `/bin/sh FILE` plays
that file: `echo TEXT` shows a row, `exit N` ends, everything else lives on.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from nbs_fleet.errors import TmuxError
from nbs_fleet.launch import tmux_text
from nbs_fleet.launch.tmux_text import Pane, check_pane


class FakePane(Struct):
    """One pane, as a test may change it."""

    id: str
    pid: int
    argv: tuple[str, ...]
    options: dict[str, str]
    rows: list[str]
    title: str = "host"
    dead: bool = False
    status: int | None = None
    signal: int | None = None
    in_mode: bool = False


class FakeWindow(Struct):
    """One window: its panes in order; the first one is selected."""

    id: str
    name: str
    panes: list[FakePane]


class FakeTmux:
    """See the module; `room` is how many panes a window holds."""

    def __init__(self, socket: str = "fake", conf: str = os.devnull, *, room: int = 100) -> None:
        self.socket, self.conf, self.room = socket, conf, room
        self.session = ""
        self.size = (200, 50)
        self.windows: list[FakeWindow] = []
        self.nudges = 0
        self.on_end: list[Callable[[], None]] = []
        self._numbers = itertools.count()
        self._pids = itertools.count(4_000_000)
        self._server: int | None = None

    def version(self) -> tuple[int, int] | None:
        return (3, 3)

    def server_pid(self) -> int | None:
        return self._server

    def start(
        self, session: str, size: tuple[int, int], first_command: Sequence[str], environ: Mapping[str, str]
    ) -> None:
        if self._server is not None and self.session == session:
            raise TmuxError(f"tmux new-session: duplicate session: {session}")
        self._server = next(self._pids)
        self.session, self.size = tmux_text.check_session(session), size
        self._new_window("fleet", tuple(first_command))

    def has_session(self, session: str) -> bool:
        return self._server is not None and self.session == session

    def source(self, lines: Iterable[str], timeout: float = 30.0) -> list[str]:
        given = list(lines)
        if not given:
            return []
        self._alive("source-file")
        out: list[str] = []
        failed: list[str] = []
        for text in given:
            try:
                out += self._command(tmux_text.words(text))
            except TmuxError as error:
                failed.append(error.message)
        if failed:
            raise TmuxError(f"tmux source-file: {failed[0]}")
        return out

    def source_and_look(self, lines: Sequence[str], timeout: float = 30.0) -> tuple[Pane, ...]:
        self.source(lines, timeout)
        return self.panes()

    def run(self, *args: str, input: str | None = None, timeout: float = 10.0) -> str:  # noqa: A002 -- as Tmux
        self._alive(args[0])
        try:
            return "".join(f"{line}\n" for line in self._command(list(args)))
        except TmuxError as error:
            raise TmuxError(f"tmux {args[0]}: {error.message}") from error

    def panes(self) -> tuple[Pane, ...]:
        return tuple(self._told(window, pane) for window in self.windows for pane in window.panes)

    def capture(self, pane: str, history: int = 0) -> tuple[str, ...]:
        _, found = self._find(check_pane(pane), "capture-pane")
        return tuple((found.rows + [""] * self.size[1])[: self.size[1]])

    def capture_all(self, panes: Iterable[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for pane in panes:
            with suppress(TmuxError):
                found[pane] = self.capture(pane)
        return found

    def kill_pane(self, pane: str) -> None:
        window, found = self._find(check_pane(pane), "kill-pane")
        window.panes.remove(found)
        self._tidy()

    def kill_window(self, window_id: str) -> None:
        self.windows = [window for window in self.windows if window.id != window_id]
        self._tidy()

    def kill_server(self, timeout: float = 10.0) -> None:
        self.windows = []
        self._tidy()

    def nudge_sigchld(self, *, drained: bool = False) -> bool:
        self.nudges += 1
        return self._server is not None

    def clients(self) -> tuple[str, ...]:
        return ()

    def pane(self, pane: str) -> FakePane:
        """The pane, for a test to change."""
        return self._find(pane, "fake")[1]

    def die(self, pane: str, *, status: int | None = None, signal: int | None = None) -> None:
        """The pane's client ends."""
        found = self.pane(pane)
        found.dead, found.status, found.signal = True, status, signal

    def _alive(self, name: str) -> None:
        if self._server is None:
            raise TmuxError(f"tmux {name}: no server running on {self.socket}")

    def _command(self, words: list[str]) -> list[str]:
        match words:
            case ["new-window", "-d", "-t", _, "-n", name, "--", *argv]:
                self._new_window(name, tuple(argv))
            case ["set-option", "-p", "-t", target, name, value]:
                self._target(target)[1].options[name] = value
            case ["join-pane", "-d", "-s", source, "-t", target]:
                self._join(source, target)
            case ["select-layout", "-t", target, _]:
                self._target(target)
            case ["rename-window", "-t", target, name]:
                self._target(target)[0].name = name
            case ["select-pane", "-t", target, "-T", title]:
                self._target(target)[1].title = title
            case ["respawn-pane", "-k", "-t", target, "--", *argv]:
                pane = self._target(target)[1]
                pane.pid, pane.argv, pane.rows = next(self._pids), tuple(argv), []
                pane.dead, pane.status, pane.signal = False, None, None
                self._play(pane)
            case ["copy-mode", "-t", target]:
                self._target(target)[1].in_mode = True
            case ["display-message", "-p", text]:
                return [text]
            case _:
                raise TmuxError(f"unknown command: {shlex.join(words)}")
        return []

    def _new_window(self, name: str, argv: tuple[str, ...]) -> None:
        number = next(self._numbers)
        pane = FakePane(f"%{number}", next(self._pids), argv, {}, [])
        self.windows.append(FakeWindow(f"@{number}", name, [pane]))
        self._play(pane)

    def _play(self, pane: FakePane) -> None:
        if len(pane.argv) != 2 or pane.argv[0] != "/bin/sh":
            return
        with open(pane.argv[1], encoding="utf-8") as file:
            for command in file:
                words = shlex.split(command)
                if words[:1] == ["echo"]:
                    pane.rows.append(" ".join(words[1:]))
                elif words[:1] == ["exit"]:
                    pane.dead, pane.status = True, int(words[1])

    def _join(self, source: str, target: str) -> None:
        origin, moved = self._target(source)
        window, after = self._target(target)
        if len(window.panes) >= self.room:
            raise TmuxError("create pane failed: pane too small")
        origin.panes.remove(moved)
        window.panes.insert(window.panes.index(after) + 1, moved)
        self._tidy()

    def _target(self, target: str) -> tuple[FakeWindow, FakePane]:
        if target.startswith("%"):
            return self._find(target, "")
        name = target.removeprefix(f"={self.session}:=")
        for window in self.windows:
            if window.name == name:
                return window, window.panes[0]
        raise TmuxError(f"can't find window: {name}")

    def _find(self, pane: str, command: str) -> tuple[FakeWindow, FakePane]:
        for window in self.windows:
            for found in window.panes:
                if found.id == pane:
                    return window, found
        raise TmuxError(f"tmux {command}: can't find pane: {pane}" if command else f"can't find pane: {pane}")

    def _tidy(self) -> None:
        self.windows = [window for window in self.windows if window.panes]
        if not self.windows:
            self._server = None
            for callback in tuple(self.on_end):
                callback()

    def _told(self, window: FakeWindow, pane: FakePane) -> Pane:
        return Pane(
            id=pane.id,
            handle=pane.options.get("@nbs_handle", ""),
            team=pane.options.get("@nbs_team", ""),
            window_id=window.id,
            window=window.name,
            pid=pane.pid,
            dead=pane.dead,
            status=pane.status,
            signal=pane.signal,
            title=pane.title,
            width=self.size[0],
            height=self.size[1],
            command=os.path.basename(re.sub(r"\s.*", "", pane.argv[0])),
            in_mode=pane.in_mode,
            active=window.panes[0] is pane,
        )
