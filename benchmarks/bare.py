"""What teams are measured beside: a bare tmux server with panes, shell loops as sidecars, files watched by inotify."""

from __future__ import annotations

import ctypes
import os
import pty
import select
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.machine import cost, cpu_with_children
from benchmarks.teams import CHAT, STARTED, BenchmarkError, until
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.tmux_text import Pane, line
from nbs_fleet.nbs.chat import Chat

SCRIPT = Path(__file__).with_name("sidecar.sh")
SESSION = "bare"
SIZE = (200, 50)
_WRITTEN = 0x00000008 | 0x00000080 | 0x00000002
"""IN_CLOSE_WRITE, IN_MOVED_TO and IN_MODIFY of inotify(7)."""


class Bare:
    """A tmux server that nobody supervises, on a socket in `folder`, which is where its panes run."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.tmux = Tmux(os.path.join(folder, "tmux.sock"))
        self.env = {"PATH": os.environ["PATH"], "HOME": folder, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        os.mkdir(self.started)

    @property
    def started(self) -> str:
        """Where stubs say that they run."""
        return os.path.join(self.folder, STARTED)

    @property
    def server(self) -> int:
        """The process id of the server."""
        return until(self.tmux.server_pid, "the bare tmux server runs")

    def start(self) -> None:
        """Start the server, with one pane that does nothing; dead panes stay."""
        width, height = (str(number) for number in SIZE)
        argv = self.tmux.argv("new-session", "-d", "-s", SESSION, "-x", width, "-y", height, "sleep", "1000000")
        subprocess.run(argv, env=self.env, cwd=self.folder, check=True, timeout=30)
        self.tmux.run("set-option", "-g", "remain-on-exit", "on")

    def open(self, commands: Sequence[Sequence[str]]) -> None:
        """A window for each command, by one call."""
        where = ("new-window", "-d", "-t", f"={SESSION}:", "-c", self.folder, "--")
        self.tmux.source([line(*where, *command) for command in commands])

    def panes(self) -> list[Pane]:
        """All panes but the first."""
        return sorted(self.tmux.panes(), key=lambda pane: int(pane.id[1:]))[1:]

    def close(self) -> None:
        """End the server and what runs in it."""
        self.tmux.kill_server()


@contextmanager
def bare_server() -> Iterator[Bare]:
    """A bare server that has started; nothing of it is left in the end."""
    with tempfile.TemporaryDirectory(prefix="nbs-bench-") as folder:
        bare = Bare(folder)
        bare.start()
        try:
            yield bare
        finally:
            bare.close()


class Loops:
    """A shell loop as sidecar for each pane of a bare server, with a chat and a folder of events for all of them."""

    def __init__(self, bare: Bare, panes: Sequence[Pane]) -> None:
        self.bare = bare
        self.chat = Chat(os.path.join(bare.folder, f"{CHAT}.chat"))
        self.chat.create()
        self.events = os.path.join(bare.folder, "events")
        os.mkdir(self.events)
        self.logs = [os.path.join(bare.folder, f"{index}.log") for index in range(len(panes))]
        self._processes: list[subprocess.Popen[bytes]] = []
        for index, (pane, log) in enumerate(zip(panes, self.logs, strict=True)):
            what = (bare.tmux.socket, pane.id, f"a-{index + 1}", self.chat.path, self.events, log)
            argv = ["bash", str(SCRIPT), *what]
            self._processes.append(subprocess.Popen(argv, env=bare.env, start_new_session=True))

    @property
    def pids(self) -> list[int]:
        """Their process ids."""
        return [process.pid for process in self._processes]

    def cpu(self) -> float:
        """Seconds of a core that all loops, what they started, and the tmux server have taken."""
        return sum(map(cpu_with_children, self.pids)) + cost([self.bare.server]).cpu

    def told(self, word: str, count: int, *, each: bool = True) -> list[float]:
        """The wall seconds of the last lines with this word, once each log (or one of them) has `count` of them."""

        def look() -> list[float] | None:
            found = [_times(log, word) for log in self.logs]
            enough = [len(times) >= count for times in found]
            return [times[-1] for times in found if times] if (all(enough) if each else any(enough)) else None

        return until(look, f"the shell loops say {word}")

    def close(self) -> None:
        """End them all; what each of them has started is in a session of its own."""
        for process in self._processes:
            # A loop's current child ends by itself within a second.
            process.kill()
            process.wait()


@contextmanager
def loops(bare: Bare, panes: Sequence[Pane]) -> Iterator[Loops]:
    """Shell loops for these panes."""
    made = Loops(bare, panes)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def looped(number: int, command: Sequence[str]) -> Iterator[Loops]:
    """So many panes with this command, and a shell loop for each, which are in their stride."""
    with ExitStack() as stack:
        bare = stack.enter_context(bare_server())
        bare.open([command] * number)
        until(lambda: len(bare.panes()) == number, f"{number} panes are there")
        yield stack.enter_context(loops(bare, bare.panes()))


class Noticed:
    """The floor of every notice: a thread that blocks on inotify of one folder and takes the time of each event."""

    def __init__(self, folder: str) -> None:
        self.times: list[float] = []
        """The wall seconds of what was seen, oldest first."""
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = libc.inotify_init1(os.O_CLOEXEC)
        if self._fd < 0 or libc.inotify_add_watch(self._fd, os.fsencode(folder), _WRITTEN) < 0:
            raise BenchmarkError(f"inotify: {os.strerror(ctypes.get_errno())}")
        self._over, self._end = os.pipe()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        poller = select.poll()
        for fd in (self._fd, self._over):
            poller.register(fd, select.POLLIN)
        while not any(fd == self._over for fd, _ in poller.poll()):
            at = time.time()
            os.read(self._fd, 65536)
            self.times.append(at)

    def after(self, at: float) -> float:
        """The first event at or after this wall second."""
        return until(lambda: next((seen for seen in self.times if seen >= at), None), "inotify speaks")

    def close(self) -> None:
        """Stop."""
        os.close(self._end)
        self._thread.join(5)
        for fd in (self._fd, self._over):
            os.close(fd)


class Drawn:
    """The floor of what is seen of a terminal: a thread that blocks on one of its own and takes the time of each output."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._main, self.side = pty.openpty()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while True:
            try:
                os.read(self._main, 65536)
            except OSError:
                return  # the other side was closed
            self.times.append(time.time())

    def after(self, at: float) -> float:
        """The first output at or after this wall second."""
        return until(lambda: next((seen for seen in self.times if seen >= at), None), "the terminal speaks")

    def close(self) -> None:
        """Stop."""
        os.close(self.side)
        self._thread.join(5)
        os.close(self._main)


class Attached:
    """What tmux itself makes of output: a thread that blocks on a bare control client and takes the time of what it tells."""

    def __init__(self, bare: Bare) -> None:
        self.times: list[float] = []
        pane = bare.tmux.run("list-panes", "-a", "-F", "#{pane_tty}").split()[0]
        self.side = os.open(pane, os.O_WRONLY | os.O_NOCTTY)
        argv = bare.tmux.argv("-C", "attach-session", "-t", f"={SESSION}")
        self._heard, told = os.pipe()
        self._client = subprocess.Popen(argv, env=bare.env, stdin=subprocess.PIPE, stdout=told)
        os.close(told)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while said := os.read(self._heard, 65536):
            if b"%output" in said:
                self.times.append(time.time())

    def after(self, at: float) -> float:
        """The first output at or after this wall second."""
        return until(lambda: next((seen for seen in self.times if seen >= at), None), "the control client speaks")

    def close(self) -> None:
        """Stop."""
        os.close(self.side)
        with self._client:
            self._client.kill()
        self._thread.join(5)
        os.close(self._heard)


def settle(number: int) -> None:
    """Let the loops see screens at rest, and meet them at another point of their second in each round."""
    time.sleep(2.2 + number * 0.37 % 1.0)


def typed(command: Sequence[str]) -> str:
    """A command as it is typed into a shell so that the shell becomes it."""
    return f"exec {shlex.join(command)}"


def _times(log: str, word: str) -> list[float]:
    try:
        with open(log, encoding="utf-8") as file:
            return [float(line.split()[1]) for line in file if line.startswith(word) and line.endswith("\n")]
    except FileNotFoundError:
        return []
