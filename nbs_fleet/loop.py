"""observe -> decide -> perform -> record: the one place where time enters and effects run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
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
        self._events: list[E] = []
        """Those to be decided on, oldest first. No queue of asyncio: it takes 3 kB, and each agent has a loop."""
        self._waiting: asyncio.Future[bool] | None = None
        """Done when an event comes (False), or the time at which something is due (True)."""
        self._tasks: list[asyncio.Task[None]] = []
        """Effects that are still running. A set that was not empty keeps its room: half a kB."""

    def post(self, event: E) -> None:
        """Hand in one event; it is decided on in order of arrival."""
        self._events.append(event)
        self._awake(due=False)

    async def run(self) -> None:
        """Decide until cancelled; effects that are still running are cancelled with it."""
        # One coroutine while nothing happens: those that it would wait for take a quarter of a kB each.
        try:
            while True:
                due = False
                while not (due or self._events):
                    waiting, alarm = self._wait()
                    try:
                        due = await waiting
                    finally:
                        self._waiting = None
                        if alarm is not None:
                            alarm.cancel()
                self.step(self._tick() if due else self._events.pop(0))
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Return when no effect is running and all their answers were decided on (for an orderly end)."""
        while self._tasks or self._events:
            await asyncio.gather(*self._tasks, return_exceptions=True)
            while self._events:
                self.step(self._events.pop(0))

    def step(self, event: E) -> None:
        """Decide on one event and start what follows from it."""
        now = moment()
        before = self.state
        self.state, actions = self._decide(before, event, now)
        self._record(before, self.state, event, actions, now)
        for action in actions:
            task = asyncio.create_task(self._act(action))
            self._tasks.append(task)
            task.add_done_callback(self._tasks.remove)

    def _wait(self) -> tuple[asyncio.Future[bool], asyncio.TimerHandle | None]:
        """An event, or the time at which something is due (True), and the alarm for that."""
        loop = asyncio.get_running_loop()
        at = self._wake(self.state)
        self._waiting = loop.create_future()
        alarm = None if at is None else loop.call_later(max(0.0, at - moment().mono), partial(self._awake, due=True))
        return self._waiting, alarm

    def _awake(self, *, due: bool) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(due)

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
