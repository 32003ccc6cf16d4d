"""Plays many tests, some at once; interrupted, it takes all of them down before it ends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.testing.load import Script
from nbs_fleet.testing.outcome import Outcome, StepDone
from nbs_fleet.testing.play import play

TellStep = Callable[[Script, int, StepDone], None]
TellEnd = Callable[[Outcome], None]


class Orders(Struct, frozen=True):
    """How to play: how many at once, how often each, with which driver, and where artefacts go."""

    at_once: int = 1
    repeat: int = 1
    driver: str | None = None
    keep: str | None = None


def run_all(
    scripts: Sequence[Script], environ: Mapping[str, str], orders: Orders, step: TellStep, end: TellEnd
) -> tuple[Outcome, ...]:
    """Play all tests; the outcomes in the order in which they ended. KeyboardInterrupt once all is down."""
    return asyncio.run(_run_all(scripts, environ, orders, step, end))


async def _run_all(
    scripts: Sequence[Script], environ: Mapping[str, str], orders: Orders, step: TellStep, end: TellEnd
) -> tuple[Outcome, ...]:
    gate = asyncio.Semaphore(orders.at_once)
    outcomes: list[Outcome] = []

    async def one(script: Script, run: int) -> None:
        async with gate:
            outcome = await play(
                script, environ, lambda done: step(script, run, done), driver=orders.driver, keep=orders.keep
            )
        outcomes.append(replace(outcome, run=run))
        end(outcomes[-1])

    loop = asyncio.get_running_loop()
    own = asyncio.current_task()
    # A CI ends a job with TERM; what was started must not stay behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        with suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, own.cancel if own else lambda: None)
    try:
        async with asyncio.TaskGroup() as group:
            for run in range(1, orders.repeat + 1):
                for script in scripts:
                    group.create_task(one(script, run))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    return tuple(outcomes)
