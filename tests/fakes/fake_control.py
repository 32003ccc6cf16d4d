"""A control client of a `FakeTmux`, with the interface of `launch.control.Control`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from nbs_fleet.errors import TmuxError
from nbs_fleet.launch.control import Reply
from nbs_fleet.launch.tmux_text import Pane, check_pane, pasteable, words
from tests.fakes.fake_tmux import FakeTmux


class FakeControl:
    """Notes what was pressed and pasted as (pane, what). `tell` plays a subscription's news."""

    def __init__(self, server: FakeTmux) -> None:
        self.on_subscription: Callable[[str, str, str], None] | None = None
        self.on_window_close: Callable[[str], None] | None = None
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.pressed: list[tuple[str, tuple[str, ...]]] = []
        self.pasted: list[tuple[str, str]] = []
        self.subscriptions: dict[str, tuple[str, str]] = {}
        self._server = server

    async def connect(self, socket: str, session: str) -> Self:
        if not self._server.has_session(session):
            self._end("closed")
            raise TmuxError(f"tmux -C attach-session: can't find session: {session}")
        self._server.on_end.append(lambda: self._end("the tmux server is gone"))
        return self

    @property
    def alive(self) -> bool:
        return not self.closed.done()

    async def run(self, *lines: str) -> list[Reply]:
        self._check()
        replies: list[Reply] = []
        for text in lines:
            name, *rest = words(text)
            try:
                replies.append(Reply(ok=True, lines=tuple(self._server.run(name, *rest).splitlines())))
            except TmuxError as error:
                replies.append(Reply(ok=False, lines=(error.message.removeprefix(f"tmux {name}: "),)))
        return replies

    async def capture(self, pane: str, history: int = 0) -> tuple[str, ...]:
        self._check()
        return self._server.capture(pane, history)

    async def panes(self) -> tuple[Pane, ...]:
        self._check()
        return self._server.panes()

    async def pane(self, pane: str) -> Pane | None:
        self._check()
        return next((found for found in self._server.panes() if found.id == check_pane(pane)), None)

    async def subscribe(self, name: str, target: str, fmt: str) -> None:
        self._check()
        self.subscriptions[name] = (target, fmt)

    async def unsubscribe(self, name: str) -> None:
        self._check()
        self.subscriptions.pop(name, None)

    def tell(self, name: str, pane: str, value: str) -> None:
        """Play that the value of a subscription changed."""
        if name in self.subscriptions and self.on_subscription is not None:
            self.on_subscription(name, pane, value)

    async def press(self, pane: str, keys: tuple[str, ...]) -> None:
        self._check()
        found = self._pane(pane, "send-keys")
        if found.dead or found.in_mode:
            raise TmuxError(f"tmux send-keys: pane {pane} is in copy mode or dead; no key was sent")
        self.pressed.append((pane, keys))

    async def paste(self, pane: str, text: str) -> None:
        self._check()
        clean = pasteable(text)
        if not clean:
            return
        found = self._pane(pane, "paste-buffer")
        if found.dead or found.in_mode:
            raise TmuxError(f"tmux paste-buffer: pane {pane} is in copy mode or dead; nothing was pasted")
        self.pasted.append((pane, clean))

    async def close(self) -> None:
        self._end("closed")

    def _pane(self, pane: str, command: str) -> Pane:
        for found in self._server.panes():
            if found.id == check_pane(pane):
                return found
        raise TmuxError(f"tmux {command}: can't find pane: {pane}")

    def _check(self) -> None:
        if self.closed.done():
            raise TmuxError(f"tmux -C: {self.closed.result()}")

    def _end(self, reason: str) -> None:
        if not self.closed.done():
            self.closed.set_result(reason)
