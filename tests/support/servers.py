"""Real tmux servers for tests: private sockets, own configuration, and people who attach through a pty."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path

from nbs_fleet.launch.layout import PaneWanted, conf, start_lines
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.spec.team import Layout

SLEEPS = "exec sleep 1000\n"


class Server:
    """A team's tmux in `folder`, with the home of one person."""

    def __init__(self, folder: Path, layout: Layout | None = None, wishes: str = "") -> None:
        self.folder, self.layout = folder, layout or Layout()
        self.home = folder / "home"
        own = self.home / ".config" / "nbs-fleet"
        own.mkdir(parents=True, exist_ok=True)
        (own / "tmux.conf").write_text(wishes, encoding="utf-8")
        file = folder / "tmux.conf"
        file.write_text(conf(self.layout, "team"), encoding="utf-8")
        self.tmux = Tmux(os.fspath(folder / "s"), os.fspath(file))
        self.environ = {"PATH": os.environ["PATH"], "HOME": os.fspath(self.home), "SHELL": "/bin/sh"}

    def start(self, **more: str) -> None:
        """Start it with nothing but the window `fleet`."""
        self.tmux.start("team", self.layout.size, ["sleep", "1000"], {**self.environ, **more})

    def up(self, handles: Sequence[str], text: str = SLEEPS, per_window: int = 1) -> dict[str, Pane]:
        """Start agents whose launch.sh is `text`; our panes by handle."""
        wanted = []
        for number, handle in enumerate(handles):
            script = self.folder / f"{handle}.sh"
            script.write_text(text, encoding="utf-8")
            window, slot = divmod(number, per_window)
            wanted.append(
                PaneWanted(handle, handle if per_window == 1 else f"agents-{window}", slot, os.fspath(script))
            )
        self.tmux.source(start_lines("team", wanted, self.tmux.panes(), self.layout))
        return self.ours()

    def ours(self) -> dict[str, Pane]:
        return {pane.handle: pane for pane in self.tmux.panes() if pane.handle}

    def show(self, fmt: str, target: str = "=team:") -> str:
        """The value of a tmux format."""
        return self.tmux.run("display-message", "-p", "-t", target, fmt).rstrip("\n")


class Person:
    """Somebody with a terminal of `columns` x `rows` who runs `argv` in it."""

    def __init__(self, argv: Sequence[str], environ: dict[str, str], columns: int = 100, rows: int = 30) -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        os.set_blocking(self._main, False)
        self.process = subprocess.Popen(
            argv,
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
            env={**environ, "TERM": "xterm-256color"},
        )
        os.close(side)

    def read(self) -> bytes:
        """What the terminal got since the last look."""
        try:
            return os.read(self._main, 1_000_000)
        except (BlockingIOError, OSError):
            return b""

    def write(self, keys: bytes) -> None:
        """Type."""
        os.write(self._main, keys)

    def leave(self) -> None:
        """Close the terminal; once is enough."""
        if self._main >= 0:
            self.process.kill()
            self.process.wait()
            os.close(self._main)
            self._main = -1
