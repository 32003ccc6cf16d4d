"""What moves in the panes, for whom it concerns: by tmux's subscriptions, and by output where that is listened to."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import Struct

from nbs_fleet.errors import TmuxError
from nbs_fleet.launch.control import Control
from nbs_fleet.loop import Loop
from nbs_fleet.supervisor import hearing
from nbs_fleet.supervisor.hearing import Hearing, Mode

SAME_SECOND = 1.1
"""Seconds after a change in a pane at which it is told of again: tmux knows the time of output in whole seconds, so what
is drawn within the second of a change that was told, with the cursor at the same place, is told by nobody."""
BRIEF = 0.1
"""Seconds in which all output of a pane but the first is told of at once, at their end."""


class Ear(Struct):
    """Whom a pane concerns. `alone`: nothing but its screen tells of it, so its output is worth being listened to."""

    name: str
    fmt: str
    changed: Callable[[str], None]
    alone: bool


class Ears:
    """The subscriptions of one session; `control` is the client they are made with, while there is one."""

    def __init__(self, control: Callable[[], Control | None], listen: Callable[[], Awaitable[Control]]) -> None:
        self._control, self._listen = control, listen
        self._ears: dict[str, Ear] = {}
        self._names = itertools.count(1)
        self._again: dict[str, asyncio.TimerHandle] = {}
        self._brief: dict[str, asyncio.TimerHandle] = {}
        self._more: set[str] = set()
        self._listener: Control | None = None
        self._lock = asyncio.Lock()
        self._loop: Loop[Hearing, hearing.Event, hearing.Action] = Loop(
            Hearing(),
            decide=hearing.decide,
            perform=self._perform,
            fault=lambda _action, _error: hearing.Deaf(),
            tick=hearing.Ticked,
            wake=lambda state: state.wake_at,
            record=lambda *_: None,
        )
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def mode(self) -> Mode:
        """What tells now of the panes that nothing but their screen tells of."""
        return self._loop.state.mode

    async def close(self) -> None:
        """Hear nothing any more."""
        self._closing = True
        for timer in (*self._again.values(), *self._brief.values()):
            timer.cancel()
        self._again.clear()
        self._brief.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._hush()

    async def subscribe(self, pane: str, fmt: str, changed: Callable[[str], None], *, alone: bool) -> None:
        """Call `changed` as `Panes.subscribe` says."""
        ear = self._ears[pane] = Ear(f"nbs{next(self._names)}", fmt, changed, alone)
        self._want()
        if self._by_clock(ear):
            await self._subscribe(pane, ear)
        else:
            changed("")

    async def unsubscribe(self, pane: str) -> None:
        """End it; without one nothing is done."""
        ear = self.forget(pane)
        control = self._control()
        if ear is not None and self._by_clock(ear) and control is not None:
            await control.unsubscribe(ear.name)

    def forget(self, pane: str) -> Ear | None:
        """Tell nobody of this pane any more; tmux forgets its subscription with the pane."""
        self._more.discard(pane)
        for timers in (self._again, self._brief):
            if (timer := timers.pop(pane, None)) is not None:
                timer.cancel()
        ear = self._ears.pop(pane, None)
        self._want()
        return ear

    async def attached(self, control: Control) -> None:
        """A new control client: what was subscribed to is so again."""
        control.on_subscription = self._changed
        for pane, ear in list(self._ears.items()):
            if self._by_clock(ear):
                try:
                    await control.subscribe(ear.name, pane, ear.fmt)
                except TmuxError:
                    # It may be lost again already; whoever keeps it attached notices.
                    if not control.alive:
                        return

    def _by_clock(self, ear: Ear) -> bool:
        return not ear.alone or self.mode is not Mode.OUTPUT

    def _want(self) -> None:
        wanted = any(ear.alone for ear in self._ears.values())
        if wanted and self._task is None:
            self._task = asyncio.create_task(self._loop.run(), name="ears")
        if self._task is not None:
            self._loop.post(hearing.Wanted(wanted))

    async def _subscribe(self, pane: str, ear: Ear) -> None:
        control = self._control()
        if control is not None:
            await control.subscribe(ear.name, pane, ear.fmt)

    async def _perform(self, action: hearing.Action) -> hearing.Event | None:
        # In order: a client that is being let go is not taken for the next one.
        async with self._lock:
            match action:
                case hearing.Listen():
                    return await self._begin()
                case hearing.Hush():
                    await self._hush()
                case hearing.Subscribe() | hearing.Unsubscribe():
                    await self._turn()
        return None

    async def _begin(self) -> hearing.Event:
        try:
            listener = await self._listen()
        except TmuxError:
            return hearing.Deaf()

        def deaf() -> None:
            if self._listener is listener:
                self._loop.post(hearing.Deaf())

        listener.on_output, listener.on_pause = self._output, deaf
        self._listener = listener
        listener.closed.add_done_callback(lambda _: deaf())
        return hearing.Listening()

    async def _hush(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()

    async def _turn(self) -> None:
        """Have those panes looked at by the clock, or not, as it was decided by now."""
        for pane, ear in list(self._ears.items()):
            control = self._control()
            if control is not None and ear.alone:
                with suppress(TmuxError):  # the pane, or the client, is gone: both are noticed elsewhere
                    await (self._subscribe(pane, ear) if self._by_clock(ear) else control.unsubscribe(ear.name))

    def _output(self, pane: str) -> None:
        ear = self._ears.get(pane)
        if ear is not None and ear.alone and not self._closing:
            if pane in self._brief:
                self._more.add(pane)
            else:
                self._tell_output(pane, ear)
        self._loop.post(hearing.Heard())

    def _tell_output(self, pane: str, ear: Ear) -> None:
        self._brief[pane] = asyncio.get_running_loop().call_later(BRIEF, self._was_brief, pane)
        ear.changed("")

    def _was_brief(self, pane: str) -> None:
        del self._brief[pane]
        if pane in self._more:
            self._more.discard(pane)
            self._tell_output(pane, self._ears[pane])

    def _changed(self, name: str, pane: str, value: str) -> None:
        if self._tell(name, pane, value) and not self._closing:
            if pane in self._again:
                self._again[pane].cancel()
            self._again[pane] = asyncio.get_running_loop().call_later(SAME_SECOND, self._tell_again, name, pane, value)

    def _tell_again(self, name: str, pane: str, value: str) -> None:
        del self._again[pane]
        self._tell(name, pane, value)

    def _tell(self, name: str, pane: str, value: str) -> bool:
        ear = self._ears.get(pane)
        if ear is None or ear.name != name:
            return False
        ear.changed(value)
        return True
