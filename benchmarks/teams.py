"""Teams to measure: worlds of their own (folders, tmux server), with stubs or simulated agents in the panes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec import Struct

from nbs_fleet.launch.locks import holder
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.model import AgentState
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.supervisor import store
from nbs_fleet.testing.teamfile import inline_text
from nbs_fleet.testing.world import Recipe, World

T = TypeVar("T")
WITHIN = 120.0
CHAT = "main"
BUS = ".nbs/events"
LOOK = 0.002
"""Seconds between two looks where nothing can be waited for; what is measured has times of its own."""
STARTED = "started"
STUB = ("sh", "-c", f': >{STARTED}/$$; printf "> "; exec sleep 1000000')
"""A client that says when it began, shows an input, and does nothing."""
EAGER = {"startup_grace": "0s", "notify_cooldown": "0s"}
"""Notices at once, not gathered for some seconds as by default: measured is the way, not the pause."""


class BenchmarkError(Exception):
    """Something that is measured did not happen; the figure would mean nothing."""


class Machinery(Struct, frozen=True):
    """The process ids of all that a team runs beside its agents."""

    server: int
    supervisor: int
    controls: tuple[int, ...]
    """Control clients: that of the commands, and one that listens to output, while there is one."""

    @property
    def ours(self) -> tuple[int, ...]:
        """Those that are not tmux's server."""
        return (self.supervisor, *self.controls)

    @property
    def all(self) -> tuple[int, ...]:
        """All of them."""
        return (self.server, *self.ours)


class Team:
    """One team in a world of its own; `begun` is the wall second at which `up` was called."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.paths = world.eyes.paths
        self.tmux = Tmux(self.paths.tmux)
        self.begun = 0.0

    @property
    def root(self) -> str:
        """Its project directory."""
        return self.world.folders.root

    @property
    def handles(self) -> list[str]:
        """All of its agents."""
        return [agent.handle for agent in self.world.team.agents]

    @property
    def chat(self) -> Chat:
        """Its chat, as another process sees it."""
        return Chat(os.path.join(self.root, ".nbs", "chat", f"{CHAT}.chat"))

    def command(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        """Run one of our commands as a person would. Raises BenchmarkError unless it succeeds."""
        # No timeout: with one, Python looks for the end in growing steps of up to 50 ms.
        argv = [os.path.join(os.path.dirname(sys.executable), "nbs-fleet"), *args]
        done = subprocess.run(argv, cwd=self.root, env=self.world.env, capture_output=True, check=False)
        if done.returncode != 0:
            raise BenchmarkError(f"nbs-fleet {' '.join(args)}: exit {done.returncode}\n{done.stderr.decode()[-500:]}")
        return done

    def up(self, *, wait: bool) -> float:
        """Bring it up; the seconds the command took. With `wait` all agents are idle then."""
        self.begun = time.time()
        began = time.perf_counter()
        self.command("up", self.world.file, *(() if wait else ("--no-wait",)))
        return time.perf_counter() - began

    def wait_idle(self) -> None:
        """Wait until each agent is idle."""
        until(lambda: all(self.state(handle) is AgentState.IDLE for handle in self.handles), "all agents are idle")

    def state(self, handle: str) -> AgentState | None:
        """The state of one agent, as its record says it."""
        record = store.read_record(self.paths, handle)
        return record.state if record else None

    def started(self) -> float:
        """The seconds from `up` to the moment at which the last stub ran."""
        return last_start(os.path.join(self.root, STARTED), len(self.handles)) - self.begun

    def machinery(self) -> Machinery:
        """Its processes; waits for a supervisor that is just starting."""

        def find() -> Machinery | None:
            server, supervisor = self.tmux.server_pid(), holder(self.paths.lock)
            if server is None or supervisor is None:
                return None
            rows = self.tmux.run("list-clients", "-F", "#{client_control_mode} #{client_pid}").splitlines()
            controls = tuple(int(row.split()[1]) for row in rows if row.startswith("1 "))
            return Machinery(server, supervisor.pid, controls) if controls else None

        return until(find, "the supervisor and its control client run")

    def story(self, handle: str | None) -> Story:
        """What is told of an agent, or of the team, from now on."""
        return Story(self.paths.agent(handle).story if handle else self.paths.story)


class Story:
    """The lines that are appended to one story from now on."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._offset = os.stat(path).st_size
        except OSError:
            self._offset = 0

    def news(self) -> Iterator[dict[str, Any]]:
        """The lines that were added since the last call."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        yield from map(json.loads, whole.splitlines())

    def wait(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Wait for a line. What was told before it is passed over."""
        return until(lambda: next((line for line in self.news() if wanted(line)), None), what)

    def wait_word(self, word: str) -> dict[str, Any]:
        """Wait for a line about this."""
        return self.wait(lambda line: line["what"] == word, f'the story says "{word}"')

    def wait_event(self, kind: str, after: float = 0.0) -> dict[str, Any]:
        """Wait for a line about an event that changed something; its `wall` is exact, and later than `after`."""

        def fits(line: dict[str, Any]) -> bool:
            return (line.get("event") or {}).get("type") == kind and line["wall"] > after

        return self.wait(fits, f"{kind} was decided on")


def until(look: Callable[[], T | None], what: str, *, within: float = WITHIN) -> T:
    """Look again and again until it answers with something true. Raises BenchmarkError after `within` seconds."""
    end = time.monotonic() + within
    while not (found := look()):
        if time.monotonic() > end:
            raise BenchmarkError(f"not within {within:g} s: {what}")
        time.sleep(LOOK)
    return found


def last_start(folder: str, number: int) -> float:
    """The wall second at which the last of so many stubs began to run; waits for it."""
    until(lambda: len(os.listdir(folder)) >= number, f"{number} stubs run")
    return max(os.stat(os.path.join(folder, name)).st_mtime for name in os.listdir(folder))


def stubs(number: int) -> dict[str, Any]:
    """The team file of so many stubs."""
    agents = [{"handle": "a", "count": number, "command": list(STUB), "client": {"ready": "^> "}}]
    return {"version": 1, "team": "bench", "driver": "generic", "sidecar": EAGER, "agents": agents}


def simulated(number: int, **more: Any) -> dict[str, Any]:
    """The team file of so many simulated agents."""
    agents = [{"handle": "a", "count": number, **more}]
    places = {"chats": [CHAT], "bus": [BUS]}
    return {"version": 1, "team": "bench", "driver": "sim", "sidecar": EAGER, **places, "agents": agents}


@contextmanager
def team_of(content: Mapping[str, Any], more: Mapping[str, str] | None = None) -> Iterator[Team]:
    """A team that is not up yet, with `more` in its environment; in the end nothing is left of it."""
    recipe = Recipe(name="bench", folder=os.sep, team_path=None, inline=inline_text(content, os.sep))
    environ = {name: value for name, value in os.environ.items() if name not in ("NBS_HANDLE", "NBS_FLEET_RUN")}
    environ |= more or {}
    world = World.make(recipe, environ)
    try:
        os.mkdir(os.path.join(world.folders.root, STARTED))
        yield Team(world)
    finally:
        try:
            asyncio.run(world.end())
        finally:
            world.remove()


@contextmanager
def running(content: Mapping[str, Any], more: Mapping[str, str] | None = None) -> Iterator[Team]:
    """A team whose agents are all idle."""
    with team_of(content, more) as team:
        team.up(wait=False)
        team.wait_idle()
        yield team
