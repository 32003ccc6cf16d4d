"""The ground of a soak: a world of its own, its disk small, its clock settable; and its processes."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from nbs_fleet.launch.locks import holder
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.testing.world import Done, Recipe, World
from tests.chaos.clock import Clock

DISK = "48m"
COMMAND_SECONDS = 150.0
"""Two commands may queue behind each other, each with 40 s for a supervisor that was just killed."""
AGENTS = 12
TEAM = "soak"
SKILLED = ("a11", "a12")
"""Agents whose notices call a skill, and so are typed."""


def team_text() -> str:
    """The team file: twelve simulated clients, whose own files lie in their home, outside of the run directory."""
    agents = "".join(
        f"  - {{handle: {handle}, prompt_text: hello, env: {{NBS_SIM_LOG: '${{HOME}}/sim-{handle}.log'}}"
        f"{', skills: [nbs-notify]' if handle in SKILLED else ''}}}\n"
        for handle in handles()
    )
    return (
        f"version: 1\nteam: {TEAM}\ndriver: sim\nchats: [live]\nbus: [.nbs/events]\n"
        "restart: {max: 1000, backoff: {first: 200ms, max: 2s}}\n"
        "budget: {tokens: 1000000000}\n"
        "standup: {every: 15m, chat: live}\n"
        "permissions: {allow: [Bash]}\n"
        'env: {CLAUDE_CONFIG_DIR: "${HOME}/client"}\n'
        f"agents:\n{agents}"
    )


def handles() -> tuple[str, ...]:
    """The agents."""
    return tuple(f"a{number}" for number in range(1, AGENTS + 1))


class Ground:
    """One world. `disk` says how a full disk is made; `clock` sets the time, or is None."""

    def __init__(self) -> None:
        self.world = World.make(Recipe(name=TEAM, folder="/", team_path=None, inline=team_text()), os.environ)
        self.said: list[Done] = []
        self.clock = self._make_clock()
        self.mounted = self._mount()

    @property
    def run_dir(self) -> str:
        return self.world.eyes.paths.run

    # -- the clock

    def _make_clock(self) -> Clock | None:
        """Everything below tmux and each command gets the clock; None where nothing can be compiled."""
        if not Clock.possible():
            return None
        made = Clock(self.world.folders.base)
        # Put in by the person's own settings for the team's tmux, and by the environment of commands.
        folder = os.path.join(self.world.folders.home, ".config", "nbs-fleet")
        os.makedirs(folder)
        with open(os.path.join(folder, "tmux.conf"), "w", encoding="utf-8") as file:
            file.writelines(f"set-environment -g {name} '{value}'\n" for name, value in made.environment.items())
        self.world.env.update(made.environment)
        return made

    # -- the disk

    def _mount(self) -> bool:
        """Put the state directory on a small disk of its own; False where that is not allowed."""
        argv = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0700", "chaos", self.world.folders.state]
        return subprocess.run(argv, stderr=subprocess.DEVNULL, timeout=10, check=False).returncode == 0

    @contextmanager
    def full(self) -> Iterator[None]:
        """The disk is full: really, or, where no disk can be mounted, for the supervisor's own writes."""
        if not self.mounted:
            with self._limited():
                yield
            return
        ballast = os.path.join(self.world.folders.state, ".ballast")
        fd = os.open(ballast, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            for size in (1_000_000, 4096, 1):
                with suppress(OSError):
                    while True:
                        os.write(fd, bytes(size))
            yield
        finally:
            os.close(fd)
            os.unlink(ballast)

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """No file that the supervisor writes may have a byte."""
        process = self.supervisor()
        before = None
        if process is not None:
            with suppress(psutil.Error):
                before = process.rlimit(psutil.RLIMIT_FSIZE)
                process.rlimit(psutil.RLIMIT_FSIZE, (0, before[1]))
        try:
            yield
        finally:
            if process is not None and before is not None:
                with suppress(psutil.Error):
                    process.rlimit(psutil.RLIMIT_FSIZE, before)

    # -- processes

    def supervisor(self) -> psutil.Process | None:
        """The supervisor, if one runs; also one whose lock was taken away."""
        found = holder(self.world.eyes.paths.lock)
        with suppress(psutil.Error):
            if found and found.pid:
                return psutil.Process(found.pid)
        for process in self.world.processes():
            with suppress(psutil.Error):
                if process.cmdline()[-2:] == ["nbs_fleet.supervisor", self.run_dir]:
                    return process
        return None

    def server(self) -> psutil.Process | None:
        """The tmux server, if one answers."""
        paths = self.world.eyes.paths
        pid = Tmux(paths.tmux, paths.tmux_conf).server_pid()
        with suppress(psutil.Error):
            return psutil.Process(pid) if pid else None
        return None

    def control(self) -> psutil.Process | None:
        """The supervisor's control client of tmux."""
        supervisor = self.supervisor()
        with suppress(psutil.Error):
            for child in supervisor.children() if supervisor else ():
                if "-C" in child.cmdline() or "-CC" in child.cmdline():
                    return child
        return None

    def clients(self) -> dict[str, int]:
        """The process of each agent's client that lives, by handle: as the system knows them, not our records."""
        found: dict[str, int] = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                line = process.cmdline()
                if "sim" in line and "nbs_fleet" in line and process.status() != psutil.STATUS_ZOMBIE:
                    env = process.environ()
                    if env.get("NBS_FLEET_RUN") == self.run_dir:
                        found[env["NBS_HANDLE"]] = process.pid
        return found

    # -- commands

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Begin one of our own commands, as a person."""
        return subprocess.Popen(
            [sys.executable, "-I", "-m", "nbs_fleet", *args],
            cwd=self.world.folders.root,
            env=self.world.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def finish(self, process: subprocess.Popen[str], *args: str) -> Done:
        """Wait for a command that was begun."""
        try:
            out, _ = process.communicate(timeout=COMMAND_SECONDS)
            done = Done(args, process.returncode, out)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            done = Done(args, None, out)
        self.said.append(done)
        return done

    def command(self, *args: str) -> Done:
        """Run a command to its end."""
        return self.finish(self.start(*args), *args)

    def up(self) -> Done:
        """What a person does when the team is not up, or not whole."""
        return self.command("up", self.world.file, "--timeout", "60s")

    def copy(self, target: Path) -> None:
        """Copy the files of the world there, as they are, to be looked at; sockets and pipes are left out."""

        def special(folder: str, names: list[str]) -> list[str]:
            return [name for name in names if not _is_plain(os.lstat(os.path.join(folder, name)).st_mode)]

        shutil.copytree(self.world.folders.base, target, symlinks=True, ignore=special, dirs_exist_ok=True)

    def close(self) -> None:
        """Remove the disk and the folders, and whatever still runs here after a soak that went wrong itself."""
        left = self.world.processes()
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, 10.0)
        if self.mounted:
            subprocess.run(["umount", self.world.folders.state], timeout=10, check=True)
        self.world.remove()


def _is_plain(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
