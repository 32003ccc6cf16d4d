"""Plays one test in a world of its own: up, its steps, its cleanup, down, and whether anything is left."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from nbs_fleet.errors import FleetError, MissingError, TeamFileError
from nbs_fleet.launch import registry
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.testing import artefacts
from nbs_fleet.testing.expect import Verdict, judge, wanted
from nbs_fleet.testing.load import Script
from nbs_fleet.testing.outcome import Kind, Outcome, StepDone, Trouble
from nbs_fleet.testing.schema import AttentionSeen, ExpectFile, StepFile
from nbs_fleet.testing.seen import Seen
from nbs_fleet.testing.steps import ITEM, Action, Call, Line, Strike, Up, Watch, action_of, describe, filled
from nbs_fleet.testing.strike import StrikeError, strike
from nbs_fleet.testing.world import Done, World

WITHIN = 30.0
"""Seconds that a step may take which says nothing of it."""
TIMEOUT = 120.0
"""Seconds that a test may take which says nothing of it."""
POLL = 1.0
"""Seconds after which a look is taken anyway: a process that dies, or a network file system, tells nothing."""
SCREEN_POLL = 0.2
"""The same for screens, whose changes no file tells."""
CLEANUP_SECONDS = 60.0

Tell = Callable[[StepDone], None]


class StepError(Exception):
    """A step went wrong."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.what)
        self.trouble = trouble


async def play(
    script: Script, environ: Mapping[str, str], tell: Tell, *, driver: str | None = None, keep: str | None = None
) -> Outcome:
    """Play one test and take everything down again, whatever happens.

    `tell` hears of each step; `driver` stands in for all drivers; `keep` is a folder for its artefacts. A cancellation
    takes the world down before it goes on.
    """
    began = time.monotonic()
    try:
        world = await asyncio.to_thread(World.make, script, environ, driver=driver)
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
            bus = self.world.team.bus[0] if self.world.team.bus else ".nbs/events"
            await self._act(action_of(step, bus=bus), step, what, where)
            ok = True
        finally:
            done = StepDone(number, what, where, ok, time.monotonic() - began)
            self.done.append(done)
            self.tell(done)

    async def _act(self, action: Action, step: StepFile, what: str, where: str) -> None:
        within = WITHIN if step.within is None else float(step.within)
        if isinstance(action, Watch):
            verdict = await self._watch(action.expected, within)
            if not verdict.met:
                raise StepError(_unmet(action.expected, verdict, within, what, where))
            if step.capture:
                self.kept[step.capture] = verdict.kept
        elif isinstance(action, Call):
            if ITEM in action.args and step.answer is not None:
                action = await self._with_item(action, step.answer.agent, within, what, where)
            done = await self.world.run(*self._team(action), stdin=action.stdin, as_agent=action.as_agent)
            if done.code != 0:
                raise StepError(_refused(done, what, where))
        elif isinstance(action, Up):
            done = await self.world.up()
            if done.code != 0:
                raise StepError(_refused(done, what, where))
        elif isinstance(action, Line):
            path = os.path.join(self.world.team.root, ".nbs", f"control-inbox-{action.agent}")
            await asyncio.to_thread(_append, path, action.text + "\n")
        else:
            await self._strike(action, within, what, where)

    def _team(self, call: Call) -> tuple[str, ...]:
        """The arguments, with the team named where the command takes one."""
        if call.as_agent is not None or call.args[0] == "bus":
            return call.args
        head = 2 if call.args[0] == "chat" else 1
        return (*call.args[:head], "--team", self.world.team.name, *call.args[head:])

    async def _with_item(self, call: Call, agent: str, within: float, what: str, where: str) -> Call:
        """The call with the id of what the agent has in the queue, once it is there."""
        expected = ExpectFile(attention=AttentionSeen(agent=agent))
        verdict = await self._watch(expected, within)
        items = [item for item in self.world.eyes.items() if item.agent == agent]
        if not verdict.met or not items:
            raise StepError(_unmet(expected, verdict, within, what, where))
        return Call(tuple(items[0].id if arg == ITEM else arg for arg in call.args), call.stdin)

    async def _strike(self, action: Strike, within: float, what: str, where: str) -> None:
        """Signal a process; one that has just died is waited for: it is to come back."""
        try:
            async with asyncio.timeout(within):
                await strike(self.world.eyes, action)
        except (StrikeError, TimeoutError) as error:
            saw = str(error) or f"{action.target} has no process"
            raise StepError(Trouble(what, where, f"{action.target} can be signalled", (saw,))) from None

    async def _watch(self, expected: ExpectFile, within: float) -> Verdict:
        """Look at each change until the expectation is met or can't be; `nothing` is looked at for its whole span."""
        eyes = self.world.eyes
        lasting = expected.nothing is not None
        span = float(expected.nothing.span) if expected.nothing is not None else within
        changed = asyncio.Event()
        watcher = Watcher()
        before: Seen | None = None
        end = time.monotonic() + span
        poll = SCREEN_POLL if expected.screen is not None else POLL
        try:
            for folder in eyes.folders(expected):
                watcher.add(folder, lambda _: changed.set())
            while True:
                changed.clear()
                seen = await asyncio.to_thread(eyes.look, expected)
                verdict = judge(expected, seen, before)
                before = before or seen
                left = end - time.monotonic()
                if verdict.over or (verdict.met and not lasting) or left <= 0:
                    return verdict
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, poll)):
                        await changed.wait()
        finally:
            watcher.close()


def _append(path: str, text: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def _unmet(expected: ExpectFile, verdict: Verdict, within: float, what: str, where: str) -> Trouble:
    """The trouble of an expectation: what was expected, how long, and what was there."""
    if expected.nothing is not None:
        return Trouble(what, where, wanted(expected), verdict.saw)
    never = "and it can't come about any more" if verdict.over else f"within {within:g} s"
    return Trouble(what, where, f"{wanted(expected)}, {never}", verdict.saw)


def _refused(done: Done, what: str, where: str) -> Trouble:
    return Trouble(what, where, "the command does it", tuple(str(done).splitlines()))
