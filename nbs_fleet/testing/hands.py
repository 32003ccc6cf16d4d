"""Acts on one team under test and watches it: each step, each expectation, on the world's own commands and files."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress

from nbs_fleet.launch.watch import Watcher
from nbs_fleet.testing.expect import Verdict, judge, wanted
from nbs_fleet.testing.outcome import Trouble
from nbs_fleet.testing.schema import AttentionSeen, ExpectFile, StepFile
from nbs_fleet.testing.seen import Seen
from nbs_fleet.testing.steps import ITEM, Call, Line, Strike, Up, Watch, action_of, describe
from nbs_fleet.testing.strike import StrikeError, strike
from nbs_fleet.testing.world import Done, World

WITHIN = 30.0
"""Seconds that a step may take which says nothing of it."""
POLL = 1.0
"""Seconds after which a look is taken anyway: a process that dies, or a network file system, tells nothing."""
SCREEN_POLL = 0.2
"""The same for screens, whose changes no file tells."""


class StepError(Exception):
    """A step went wrong."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.what)
        self.trouble = trouble


class Hands:
    """Makes steps in one world."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def make(self, step: StepFile, where: str = "") -> str:
        """Make one step; returns what `as:` would keep of it (empty: nothing). Raises StepError if it goes wrong."""
        what = describe(step)
        within = WITHIN if step.within is None else float(step.within)
        bus = self.world.team.bus[0] if self.world.team.bus else ".nbs/events"
        action = action_of(step, bus=bus)
        match action:
            case Watch(expected):
                verdict = await self.watch(expected, within)
                if not verdict.met:
                    raise StepError(_unmet(expected, verdict, within, what, where))
                return verdict.kept
            case Call():
                if ITEM in action.args and step.answer is not None:
                    action = await self._with_item(action, step.answer.agent, within, what, where)
                args = self._with_team(action)
                done = await self.world.run(*args, stdin=action.stdin, as_agent=action.as_agent)
                if done.code != 0:
                    raise StepError(_refused(done, what, where))
            case Up():
                done = await self.world.up()
                if done.code != 0:
                    raise StepError(_refused(done, what, where))
            case Line(agent, text):
                path = os.path.join(self.world.team.root, ".nbs", f"control-inbox-{agent}")
                await asyncio.to_thread(_append, path, text + "\n")
            case Strike():
                await self._strike(action, within, what, where)
        return ""

    async def watch(self, expected: ExpectFile, within: float) -> Verdict:
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

    def _with_team(self, call: Call) -> tuple[str, ...]:
        """The arguments, with the team named where the command takes one."""
        if call.as_agent is not None or call.args[0] == "bus":
            return call.args
        head = 2 if call.args[0] == "chat" else 1
        return (*call.args[:head], "--team", self.world.team.name, *call.args[head:])

    async def _with_item(self, call: Call, agent: str, within: float, what: str, where: str) -> Call:
        """The call with the id of what the agent has in the queue, once it is there."""
        expected = ExpectFile(attention=AttentionSeen(agent=agent))
        verdict = await self.watch(expected, within)
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
