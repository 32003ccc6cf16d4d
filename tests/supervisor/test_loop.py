from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nbs_fleet.launch.processes import moment
from nbs_fleet.loop import Loop
from nbs_fleet.model import Moment


def loop_of(wake: list[float | None]) -> tuple[Loop[list[str], str, str], list[str]]:
    """A loop that only remembers its events, and is due at the first of `wake`."""
    seen: list[str] = []

    def decide(state: list[str], event: str, _now: Moment) -> tuple[list[str], Sequence[str]]:
        seen.append(event)
        return [*state, event], ()

    async def perform(_action: str) -> None: ...

    loop = Loop[list[str], str, str](
        [],
        decide=decide,
        perform=perform,
        fault=lambda _action, _error: "fault",
        tick=lambda: "tick",
        wake=lambda _state: wake.pop(0) if wake else None,
        record=lambda *_: None,
    )
    return loop, seen


async def until(seen: list[str], number: int) -> None:
    async with asyncio.timeout(10):
        while len(seen) < number:  # noqa: ASYNC110 -- the loop under test tells nobody
            await asyncio.sleep(0)


async def test_events_are_decided_on_in_order_and_a_time_that_comes_is_one() -> None:
    loop, seen = loop_of([moment().mono + 0.05])
    loop.post("one")
    loop.post("two")
    running = asyncio.create_task(loop.run())
    await until(seen, 3)
    loop.post("three")
    await until(seen, 4)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert seen == ["one", "two", "tick", "three"]


async def test_an_event_that_another_decided_on_is_no_time_that_came() -> None:
    loop, seen = loop_of([None])
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    loop.post("one")
    await loop.settled()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    loop.post("two")
    await until(seen, 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert seen == ["one", "two"]


async def test_a_time_is_forgotten_when_an_event_comes_first() -> None:
    loop, seen = loop_of([moment().mono + 0.05, None, None])
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    loop.post("one")
    await until(seen, 1)
    await asyncio.sleep(0.1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert seen == ["one"]
