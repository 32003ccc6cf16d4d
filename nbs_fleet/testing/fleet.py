"""A team under test for Python tests: what a test file can do and expect, as methods that wait and explain."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from nbs_fleet.errors import FleetError
from nbs_fleet.testing import artefacts
from nbs_fleet.testing.artefacts import lines_of
from nbs_fleet.testing.hands import Hands, StepError
from nbs_fleet.testing.outcome import Trouble
from nbs_fleet.testing.schema import GivenFile, OverridesFile, StepFile
from nbs_fleet.testing.seen import AgentNow, ItemNow, MessageNow
from nbs_fleet.testing.teamfile import inline_text
from nbs_fleet.testing.world import Done, Recipe, World

T = TypeVar("T")
WITHIN = 30.0
END_SECONDS = 120.0


class NotAsExpectedError(AssertionError):
    """An expectation was not met, or a step went wrong; the message has what was seen, the story and the screens."""


class Chat:
    """One chat of the team."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self._fleet = fleet
        self.name = name

    def read(self) -> list[MessageNow]:
        """All messages: each has `sender` and `text`."""
        return list(self._fleet.world.eyes.messages(self.name) or ())

    def post(self, text: str, *, sender: str = "tester") -> None:
        """Post a message; `@ana` in it calls ana."""
        self._fleet.step(chat={"to": self.name, "from": sender, "text": text})

    def wait(self, matches: str, *, sender: str | None = None, count: int | None = None, within: float = WITHIN) -> str:
        """Wait for a message that holds the pattern; returns its first group, else its text."""
        wanted = {"chat": self.name, "matches": matches, "from": sender, "count": count}
        return self._fleet.expect(within=within, messages=wanted)


class Fleet:
    """One team under test. All times in seconds. What goes wrong is a NotAsExpectedError that explains itself.

    `name` is the test's, `folder` the one from which relative paths count, `driver` stands in for all drivers.
    """

    def __init__(self, *, name: str, folder: str, driver: str | None = None, keep: str | None = None) -> None:
        self._name = name
        self._folder = folder
        self._driver = driver
        self._keep = keep
        self._world: World | None = None
        self._troubles: list[Trouble] = []
        # A loop of its own: the test may have one that runs.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True)
        self._thread.start()

    # -- up and down

    def up(
        self,
        team: str | os.PathLike[str] | Mapping[str, Any],
        *,
        driver: str | None = None,
        scenario: str | os.PathLike[str] | None = None,
        overrides: Mapping[str, Any] | None = None,
        given: Mapping[str, str] | None = None,
    ) -> None:
        """Bring a team up: a team file (a path beside the test), or its content as a mapping.

        `driver` and `scenario` are for all agents; `overrides` is as in a test file; `given` are files (path below
        the root -> text) that are there first. Returns when the team was started; wait for what the test needs.
        """
        if self._world is not None:
            raise FleetError("this fleet is up already; one test has one team")
        more = {"driver": driver, "scenario": None if scenario is None else os.fspath(scenario)}
        said = {**(overrides or {}), **{name: value for name, value in more.items() if value is not None}}
        inline = isinstance(team, Mapping)
        recipe = Recipe(
            name=self._name,
            folder=self._folder,
            team_path=None if inline else os.path.realpath(os.path.join(self._folder, os.fspath(team))),  # type: ignore[arg-type]
            inline=inline_text(team, self._folder) if isinstance(team, Mapping) else None,
            overrides=OverridesFile.model_validate(said),
            given=tuple(GivenFile(path=path, text=text) for path, text in (given or {}).items()),
        )
        self._world = World.make(recipe, os.environ, driver=self._driver)
        done = self._await(self._world.up())
        if done.code != 0:
            raise NotAsExpectedError(f"the team did not come up\n{done}")

    @property
    def world(self) -> World:
        """The world of the team that is up."""
        if self._world is None:
            raise FleetError("there is no team yet", hint='begin with fleet.up("team.yaml")')
        return self._world

    @property
    def root(self) -> Path:
        """The team's project directory: empty at first, but for what was given."""
        return Path(self.world.folders.root)

    def close(self) -> list[str]:
        """Take everything down; returns what was left behind, a line each."""
        try:
            return [] if self._world is None else self._end(self._world)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()

    def _end(self, world: World) -> list[str]:
        try:
            left = self._await(world.end())
            if self._keep is not None:
                artefacts.store(world, os.path.abspath(self._keep), self._troubles)
            return left
        finally:
            world.remove()

    # -- looking

    def agent(self, handle: str) -> AgentNow:
        """One agent as it is now: `state`, `detail`, `blocked`, `restarts`, `exit`, ..."""
        self._known(handle)
        found = [agent for agent in self.world.eyes.agents() if agent.handle == handle]
        return found[0] if found else AgentNow(handle, "stopped")

    def state(self, handle: str) -> str:
        """Its state now."""
        return self.agent(handle).state

    def prompts(self, handle: str) -> list[str]:
        """What it was given and its client acknowledged, oldest first."""
        self._known(handle)
        return list(self.world.eyes.prompts(handle))

    def screen(self, handle: str) -> str:
        """What its screen shows now; empty if it has none."""
        self._known(handle)
        return "\n".join(self.world.eyes.screens().get(handle, ()))

    def queue(self) -> list[ItemNow]:
        """What waits for a person: each has `id`, `agent`, `kind`, `title`, `text`."""
        return list(self.world.eyes.items())

    def chat(self, name: str) -> Chat:
        """One of the team's chats."""
        return Chat(self, name)

    # -- waiting

    def wait_state(self, handle: str, state: str, *, within: float = WITHIN) -> AgentNow:
        """Wait until an agent is in a state."""
        self._known(handle)
        self.expect(within=within, agent={"handle": handle, "state": state})
        return self.agent(handle)

    def wait_prompt(self, handle: str, matches: str, *, count: int | None = None, within: float = WITHIN) -> str:
        """Wait until an agent was given a prompt that holds the pattern; returns its first group, else its text."""
        self._known(handle)
        return self.expect(within=within, prompts={"agent": handle, "matches": matches, "count": count})

    def wait_file(self, path: str, matches: str | None = None, *, within: float = WITHIN) -> str:
        """Wait for a file below the root, and for what is in it; returns its text."""
        self.expect(within=within, file={"path": path, "matches": matches})
        return self.world.eyes.file(path) or ""

    def expect(self, *, within: float = WITHIN, **what: Mapping[str, Any]) -> str:
        """Any expectation of a test file: `fleet.expect(agent={"handle": "ana", "restarts": 1})`."""
        wanted = {name: {k: v for k, v in said.items() if v is not None} for name, said in what.items()}
        return self.step(within=within, expect=wanted)

    def nothing(self, seconds: float, *agents: str) -> None:
        """Nothing happens for so long: no agent changes its state, and no message, event or prompt comes."""
        about: dict[str, Any] = {"for": _span(seconds)}
        self.expect(nothing={**about, "agents": list(agents)} if agents else about)

    # -- acting

    def send(self, handle: str, text: str, *, priority: str = "normal") -> None:
        """Send a directive."""
        self._known(handle)
        self.step(send={"to": handle, "text": text, "priority": priority})

    def event(self, type_: str, text: str = "", *, priority: str = "normal") -> None:
        """Publish an event on the team's bus."""
        said = {"type": type_, "priority": priority}
        self.step(event={**said, "text": text} if text else said)

    def answer(self, handle: str, choice: str, text: str | None = None, *, within: float = WITHIN) -> None:
        """Answer what an agent asks, once it asks: `approve`, `deny`, or an option's key or label."""
        self._known(handle)
        said = {"agent": handle, "choice": choice}
        self.step(within=within, answer=said if text is None else {**said, "text": text})

    def kill(self, target: str) -> None:
        """SIGKILL for an agent's client, `supervisor` or `tmux`; it is gone when this returns."""
        self._strike("kill", target)

    def stop(self, target: str) -> None:
        """SIGTERM for it."""
        self._strike("stop", target)

    def freeze(self, target: str) -> None:
        """SIGSTOP for it."""
        self._strike("freeze", target)

    def go_on(self, target: str) -> None:
        """SIGCONT for it."""
        self._strike("continue", target)

    def pause(self, handle: str) -> None:
        """Leave an agent in peace until `resume`."""
        self._known(handle)
        self.step(pause=handle)

    def resume(self, handle: str) -> None:
        """End a pause."""
        self._known(handle)
        self.step(resume=handle)

    def run(self, *args: str, stdin: str = "") -> Done:
        """Run any command of nbs-fleet in this world, as a person; returns its `code` and `out`."""
        return self._await(self.world.run(*args, stdin=stdin))

    def step(self, *, within: float | None = None, **what: Any) -> str:
        """Any step of a test file: `fleet.step(control={"agent": "ana", "line": "..."})`."""
        said = what if within is None else {**what, "within": _span(within)}
        hands = Hands(self.world)
        try:
            return self._await(hands.make(StepFile.model_validate(said)))
        except StepError as error:
            trouble = self._await(artefacts.explained(self.world, error.trouble))
            self._troubles.append(trouble)
            raise NotAsExpectedError("\n".join(lines_of(trouble))) from None

    def _strike(self, verb: str, target: str) -> None:
        if target not in ("supervisor", "tmux"):
            self._known(target)
        said: dict[str, Any] = {verb: target}
        self.step(**said)

    def _known(self, handle: str) -> None:
        handles = [agent.handle for agent in self.world.team.agents]
        if handle not in handles:
            raise FleetError(f'"{handle}" is not in the team', hint=f"there are {', '.join(handles)}")

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it on the fleet's own loop; interrupted, it is cancelled."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            # Nothing happens to one that has ended.
            future.cancel()


def _span(seconds: float) -> str:
    return f"{int(seconds * 1000)}ms"
