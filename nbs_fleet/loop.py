"""observe -> decide -> perform -> record: the one place where time enters and effects run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from nbs_fleet.launch.processes import moment
from nbs_fleet.model import Moment

S = TypeVar("S")
E = TypeVar("E")
A = TypeVar("A")


class Loop(Generic[S, E, A]):
    """Feeds events to a pure `decide` and performs what it answers.

    decide(state, event, now) -> (state, actions). `perform(action)` may answer with one event, which is fed
    back; it runs as a task of its own, so `decide` must remember what is in flight. `wake(state)` is the
    monotonic second at which `tick(state)` is due, or None. `record` sees each event with what followed.
    An effect that raises becomes the event that `fault(action, error)` makes of it.
    """

    def __init__(
        self,
        state: S,
        *,
        decide: Callable[[S, E, Moment], tuple[S, Sequence[A]]],
        perform: Callable[[A], Awaitable[E | None]],
        fault: Callable[[A, Exception], E],
        tick: Callable[[], E],
        wake: Callable[[S], float | None],
        record: Callable[[S, S, E, Sequence[A], Moment], None],
    ) -> None:
        self.state = state
        self._decide, self._perform, self._fault = decide, perform, fault
        self._tick, self._wake, self._record = tick, wake, record
        self._events: asyncio.Queue[E] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    def post(self, event: E) -> None:
        """Hand in one event; it is decided on in order of arrival."""
        self._events.put_nowait(event)

    async def run(self) -> None:
        """Decide until cancelled; effects that are still running are cancelled with it."""
        try:
            while True:
                self.step(await self._next())
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Return when no effect is running and all their answers were decided on (for an orderly end)."""
        while self._tasks or not self._events.empty():
            await asyncio.gather(*self._tasks, return_exceptions=True)
            while not self._events.empty():
                self.step(self._events.get_nowait())

    def step(self, event: E) -> None:
        """Decide on one event and start what follows from it."""
        now = moment()
        before = self.state
        self.state, actions = self._decide(before, event, now)
        self._record(before, self.state, event, actions, now)
        for action in actions:
            task = asyncio.create_task(self._act(action))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _next(self) -> E:
        due = self._wake(self.state)
        if due is None:
            return await self._events.get()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, due - moment().mono)):
                return await self._events.get()
        return self._tick()

    async def _act(self, action: A) -> None:
        try:
            answer = await self._perform(action)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - the loop owns the broad except: a fault becomes an event
            answer = self._fault(action, error)
        if answer is not None:
            self.post(answer)


async def keep(run: Callable[[], Awaitable[None]], fault: Callable[[Exception], bool]) -> None:
    """Run `run` again each time it raises, as long as `fault(error)` says so; cancellation ends it."""
    while True:
        try:
            await run()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - the loop owns the broad except: one fault must not end the rest
            if not fault(error):
                return
        else:
            return
