"""Plays one test in a world of its own: up, its steps, its cleanup, down, and whether anything is left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from nbs_fleet.errors import FleetError, MissingError, TeamFileError
from nbs_fleet.launch import registry
from nbs_fleet.testing import artefacts
from nbs_fleet.testing.hands import Hands, StepError
from nbs_fleet.testing.load import Script
from nbs_fleet.testing.outcome import Kind, Outcome, StepDone, Trouble
from nbs_fleet.testing.schema import StepFile
from nbs_fleet.testing.steps import describe, filled
from nbs_fleet.testing.world import World, recipe_of

TIMEOUT = 120.0
"""Seconds that a test may take which says nothing of it."""
CLEANUP_SECONDS = 60.0

Tell = Callable[[StepDone], None]


async def play(
    script: Script, environ: Mapping[str, str], tell: Tell, *, driver: str | None = None, keep: str | None = None
) -> Outcome:
    """Play one test and take everything down again, whatever happens.

    `tell` hears of each step; `driver` stands in for all drivers; `keep` is a folder for its artefacts. A cancellation
    takes the world down before it goes on.
    """
    began = time.monotonic()
    try:
        world = await asyncio.to_thread(World.make, recipe_of(script), environ, driver=driver)
    except TeamFileError as error:
        return _early(script, Kind.FILE, error.message, began)
    except FleetError as error:
        kind = Kind.ENVIRONMENT if isinstance(error, MissingError) else Kind.FAILED
        return _early(script, kind, f"{error.message}{f'; {error.hint}' if error.hint else ''}", began)
    reason = lacks(script, world.drivers)
    if reason:
        await asyncio.to_thread(world.remove)
        return Outcome(script.name, script.file, Kind.SKIPPED, time.monotonic() - began, reason=reason)
    try:
        return await _Play(world, script, tell, keep, began).whole()
    finally:
        await asyncio.to_thread(world.remove)


def lacks(script: Script, drivers: tuple[str, ...]) -> str:
    """What the test needs and a client that plays can't do, in words; empty if nothing."""
    for driver in drivers:
        able = registry.get(driver).capabilities
        missing = [need for need in script.said.needs or () if not getattr(able, need)]
        if missing:
            return f"it needs {', '.join(missing)}, which the client of driver {driver} can't do"
    return ""


def _early(script: Script, kind: Kind, what: str, began: float) -> Outcome:
    """A test whose world could not be made."""
    return Outcome(script.name, script.file, kind, time.monotonic() - began, troubles=(Trouble(what),))


class _Play:
    """One test that is being played."""

    def __init__(self, world: World, script: Script, tell: Tell, keep: str | None, began: float) -> None:
        self.world = world
        self.hands = Hands(world)
        self.script = script
        self.tell = tell
        self.keep = keep
        self.began = began
        self.kept: dict[str, str] = {}
        self.done: list[StepDone] = []
        self.troubles: list[Trouble] = []

    async def whole(self) -> Outcome:
        """Everything, the end included."""
        kind = Kind.PASSED
        stored: str | None = None
        try:
            try:
                kind = await self._story()
            finally:
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLEANUP_SECONDS):
                        await self._clean_up()
                if self.keep is not None or self.troubles:
                    self.troubles[:1] = [await artefacts.explained(self.world, t) for t in self.troubles[:1]]
        finally:
            left = await asyncio.shield(asyncio.ensure_future(self.world.end()))
            if self.keep is not None:
                stored = await asyncio.to_thread(artefacts.store, self.world, self.keep, self.troubles)
        if left:
            self.troubles.append(Trouble("something was left when the team was down", saw=tuple(left)))
            kind = Kind.FAILED if kind is Kind.PASSED else kind
        if self.troubles and kind is Kind.PASSED:
            kind = Kind.FAILED
        seconds = time.monotonic() - self.began
        return Outcome(
            self.script.name,
            self.script.file,
            kind,
            seconds,
            steps=tuple(self.done),
            troubles=tuple(self.troubles),
            kept=stored,
        )

    async def _story(self) -> Kind:
        """Up and the steps; how it ended, with the trouble noted."""
        limit = self.script.said.timeout or TIMEOUT
        try:
            async with asyncio.timeout(limit):
                up = await self.world.up()
                if up.code != 0:
                    self.troubles.append(Trouble("the team did not come up", saw=tuple(str(up).splitlines())))
                    return {2: Kind.FILE, 3: Kind.ENVIRONMENT}.get(up.code or 0, Kind.FAILED)
                for number, (step, where) in enumerate(
                    zip(self.script.said.steps, self.script.steps_at, strict=True), 1
                ):
                    await self._step(number, step, where)
        except StepError as error:
            self.troubles.append(error.trouble)
            return Kind.FAILED
        except TimeoutError:
            last = f"; it was at: {self.doing[0]}" if self.doing[0] else ""
            trouble = Trouble(f"the test took longer than {limit:g} s{last}", where=self.doing[1])
            self.troubles.append(trouble)
            return Kind.TIMED_OUT
        return Kind.PASSED

    doing: tuple[str, str] = ("", "")
    """The step that is being made, and where it stands."""

    async def _clean_up(self) -> None:
        """The steps of `cleanup`, each whatever became of the others."""
        first = len(self.script.said.steps) + 1
        steps = zip(self.script.said.cleanup or (), self.script.cleanup_at, strict=True)
        for number, (step, where) in enumerate(steps, first):
            try:
                await self._step(number, step, where)
            except StepError as error:
                self.troubles.append(error.trouble)

    async def _step(self, number: int, step: StepFile, where: str) -> None:
        """Make one step; StepError if it goes wrong."""
        began = time.monotonic()
        step = filled(step, self.kept)
        what = describe(step)
        self.doing = (what, where)
        ok = False
        try:
            kept = await self.hands.make(step, where)
            if step.capture:
                self.kept[step.capture] = kept
            ok = True
        finally:
            done = StepDone(number, what, where, ok, time.monotonic() - began)
            self.done.append(done)
            self.tell(done)
