"""Events that the sidecar itself answers: `@handle?` shows a screen in the chat, `@handle!` interrupts the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable

from nbs_fleet.errors import FleetError
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.bus_format import Event
from nbs_fleet.nbs.chat import Chat

QUERY, INTERRUPT = "chat-query", "chat-interrupt"
ROWS = 40
"""Rows of a screen that are shown."""
SIDECAR = "sidecar"


class Calls:
    """Answers queries and interrupts, each once; the event is acknowledged when that is done.

    `rows(handle)` reads a screen; `interrupt(handle, event)` puts the interrupting message into the agent's queue, where
    that of one event is one message however often it is put; `chat(handle)` is the path of the agent's first chat, if
    it has one; `began`: the wall second since which this supervisor listens.
    """

    def __init__(
        self,
        *,
        rows: Callable[[str], Awaitable[tuple[str, ...]]],
        interrupt: Callable[[str, Event], None],
        chat: Callable[[str], str | None],
        tell: Callable[..., None],
        began: float,
    ) -> None:
        self._rows, self._interrupt, self._chat, self._tell, self._began = rows, interrupt, chat, tell, began
        self._seen: set[tuple[str, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def see(self, handle: str, bus: Bus, events: Iterable[Event]) -> None:
        """Events of one bus that concern an agent; what was answered before is left alone."""
        for event in events:
            if event.type not in (QUERY, INTERRUPT) or (handle, event.name) in self._seen:
                continue
            self._seen.add((handle, event.name))
            work = self._show(handle, bus, event) if event.type == QUERY else self._stop(handle, bus, event)
            self._spawn(handle, work)

    async def close(self) -> None:
        """Let go of what is under way; its events are still pending then."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, handle: str, work: Coroutine[None, None, None]) -> None:
        async def guarded() -> None:
            try:
                await work
            except FleetError as error:
                self._tell(handle, "call failed", error=error.message)

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _show(self, handle: str, bus: Bus, event: Event) -> None:
        chat = self._chat(handle)
        if chat is not None and not await asyncio.to_thread(self._was_shown, handle, Chat(chat), event):
            text = shown(handle, await self._rows(handle))
            await asyncio.to_thread(Chat(chat).send, SIDECAR, text)
        await asyncio.to_thread(bus.ack, event.name)
        self._tell(handle, "query answered", event=event.name)

    def _was_shown(self, handle: str, chat: Chat, event: Event) -> bool:
        """Whether a supervisor before this one answered a query and was killed before it acknowledged it."""
        asked = event.at_us / 1e6
        if asked >= self._began:
            return False
        head = _head(handle)
        return any(m.handle == SIDECAR and m.at >= int(asked) and m.text.startswith(head) for m in chat.messages())

    async def _stop(self, handle: str, bus: Bus, event: Event) -> None:
        self._interrupt(handle, event)
        await asyncio.to_thread(bus.ack, event.name)
        self._tell(handle, "interrupted", event=event.name)


def caller(event: Event) -> str:
    """Who calls, as the bridge writes it: `@ana from bo: ...`."""
    head = event.payload.partition(":")[0]
    return head.partition(" from ")[2].strip() or event.source


def shown(handle: str, rows: tuple[str, ...]) -> str:
    """A screen as a chat message; what looks like a mention in it calls nobody."""
    kept = [row.rstrip() for row in rows if row.strip()][-ROWS:]
    return _head(handle) + "\n".join(kept).replace("@", "@\u200b")


def _head(handle: str) -> str:
    return f"session output for {handle}:\n"
