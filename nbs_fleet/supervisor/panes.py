"""The team's panes as the supervisor uses them: one control client, and a forked call when it is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from nbs_fleet.drivers.base import Screen
from nbs_fleet.errors import FleetError, TmuxError
from nbs_fleet.launch import processes
from nbs_fleet.launch.control import LISTENING, Control
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.model import ProcId
from nbs_fleet.supervisor.ears import Ears
from nbs_fleet.supervisor.hearing import Mode

ATTACH_SECONDS = 3.0
"""How long keys wait for the control client when it was lost: it is attached again after a tenth of a second."""
SETTLE_SECONDS = 1.0
"""How long an exit status is waited for after a client's death."""


class Panes:
    """Looks, keys and notices for the panes of one session."""

    def __init__(self, tmux: Tmux, session: str) -> None:
        self.tmux, self._session = tmux, session
        self.on_lost: Callable[[str], None] = lambda _why: None
        self._control: Control | None = None
        self._ears = Ears(self._live, lambda: Control().connect(tmux.socket, session, LISTENING))
        self._closing = False
        self._attached = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._server: ProcId | None = None

    async def open(self) -> None:
        """Attach the control client and keep one attached; without one everything still works, by forks."""
        self._server = await asyncio.to_thread(server_of, self.tmux)
        await self._attach()
        self._task = asyncio.create_task(self._keep(), name="control client")

    async def close(self) -> None:
        """Let the control client go."""
        self._closing = True
        await self._ears.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._control is not None:
            await self._control.close()

    async def panes(self) -> tuple[Pane, ...]:
        """All panes of the server."""
        control = self._live()
        if control is not None:
            with suppress(TmuxError):
                return await control.panes()
        return await asyncio.to_thread(self.tmux.panes)

    async def find(self, pane: str, handle: str | None = None) -> Pane | None:
        """The pane of this id, if it is still there (and still `handle`'s: a new server counts ids from the start)."""
        found = await self._one(pane)
        return None if found is None or (handle is not None and found.handle != handle) else found

    async def _one(self, pane: str) -> Pane | None:
        control = self._live()
        if control is not None:
            with suppress(TmuxError):
                return await control.pane(pane)
        return next((p for p in await asyncio.to_thread(self.tmux.panes) if p.id == pane), None)

    async def look(self, pane: str) -> Screen:
        """The pane's screen and title; TmuxError if it is gone."""
        found, rows = await self._look(pane)
        if found is None:
            raise TmuxError(f"tmux capture-pane: no pane {pane}")
        return Screen(rows, found.width, found.height, found.title)

    async def _look(self, pane: str) -> tuple[Pane | None, tuple[str, ...]]:
        control = self._live()
        if control is not None:
            try:
                return await control.look(pane)
            except TmuxError:
                if control.alive:
                    raise
        return await asyncio.gather(self.find(pane), self.capture(pane))

    async def capture(self, pane: str, history: int = 0) -> tuple[str, ...]:
        """The rows of a pane's screen, with `history` rows above it."""
        control = self._live()
        if control is not None:
            try:
                return await control.capture(pane, history)
            except TmuxError:
                if control.alive:
                    raise
        return await asyncio.to_thread(self.tmux.capture, pane, history)

    async def press(self, pane: str, keys: Sequence[str]) -> None:
        """Press keys by their tmux names, in order, as one command.

        TmuxError if it is gone, or if the control client was lost meanwhile: then they were pressed or not.
        """
        control = await self._live_soon()
        if control is not None:
            await control.press(pane, tuple(keys))
            return
        await asyncio.to_thread(self.tmux.run, "send-keys", "-t", pane, "--", *keys)

    async def paste(self, pane: str, text: str) -> None:
        """Paste text, bracketed where the client asked for that.

        TmuxError if it is gone, there is no client, or that was lost meanwhile: then it was pasted or not.
        """
        control = await self._live_soon()
        if control is None:
            raise TmuxError("tmux paste-buffer: no control client")
        await control.paste(pane, text)

    async def write(self, pane: str, text: str) -> None:
        """Type text as it is, without paste; one line."""
        control = await self._live_soon()
        if control is None:
            raise TmuxError("tmux send-keys: no control client")
        await control.write(pane, text)

    async def subscribe(self, pane: str, fmt: str, changed: Callable[[str], None], *, alone: bool = False) -> None:
        """Call `changed` when `fmt` changes in this pane, and once more when it then stays as it is.

        That is within a second or two; for a pane of which nothing else tells (`alone`) it is at once, with an empty
        value, at any output, while the panes are quiet. The next subscription of the pane replaces it.
        """
        await self._ears.subscribe(pane, fmt, changed, alone=alone)

    async def unsubscribe(self, pane: str) -> None:
        """End the pane's subscription; without one nothing is done."""
        await self._ears.unsubscribe(pane)

    @property
    def hearing(self) -> Mode:
        """What tells now of the panes of which nothing else tells."""
        return self._ears.mode

    async def remove(self, pane: str) -> None:
        """Close a pane; one that is gone already is fine."""
        self._ears.forget(pane)
        if await self.find(pane) is not None:
            await asyncio.to_thread(self.tmux.kill_pane, pane)

    async def settled(self, pane: str, handle: str) -> Pane | None:
        """The dead pane once tmux knows its exit status, or as it is after SETTLE_SECONDS; None if it is gone."""
        import tenacity  # noqa: PLC0415 -- a team in which nobody dies never needs it

        waiting = tenacity.AsyncRetrying(
            wait=tenacity.wait_exponential(multiplier=0.005, max=0.1),
            stop=tenacity.stop_after_delay(SETTLE_SECONDS),
            retry=tenacity.retry_if_result(_is_unsettled),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )

        async def look() -> Pane | None:
            found = await self.find(pane, handle)
            if _is_unsettled(found):
                # Debian's tmux 3.3a loses most exit statuses until it is told to look again.
                self.tmux.nudge_sigchld(drained=found is not None and found.dead)
            return found

        found: Pane | None = await waiting(look)
        return found

    def _live(self) -> Control | None:
        control = self._control
        return control if control is not None and control.alive else None

    async def _live_soon(self) -> Control | None:
        """The control client; one that was just lost is waited for while another one is attached."""
        if self._live() is None and self._task is not None and not self._task.done():
            self._attached.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(ATTACH_SECONDS):
                    await self._attached.wait()
        return self._live()

    async def _attach(self) -> None:
        try:
            control = await Control().connect(self.tmux.socket, self._session)
        except TmuxError:
            self._control = None
            return
        self._control = control
        self._attached.set()
        await self._ears.attached(control)

    async def _keep(self) -> None:
        """Attach again whenever the control client is lost; when the server itself is gone, say so."""
        failures = 0
        while not self._closing:
            why = "never attached"
            if self._control is not None:
                why = await self._control.closed
                await self._control.close()
            if self.tmux.server_pid() is None:
                if self._server is None or not processes.alive(self._server):
                    self.on_lost(why)
                    return
                # It lives; somebody removed its socket.
                self.tmux.mend_socket(self._server.pid)
            failures = 0 if self._control is not None else failures + 1
            self._control = None
            await asyncio.wait_for(asyncio.shield(_pause(min(30.0, 0.1 * 2**failures))), None)
            await self._attach()


def server_of(tmux: Tmux) -> ProcId | None:
    """The process of the tmux server that is reached now."""
    with suppress(FleetError):
        pid = tmux.server_pid()
        return processes.identify(pid) if pid else None
    return None


def _is_unsettled(pane: Pane | None) -> bool:
    return pane is not None and (not pane.dead or (pane.status is None and pane.signal is None))


async def _pause(seconds: float) -> None:
    """A pause before the control client is attached again: nothing announces that tmux can be reached."""
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, over.set_result, None)
    await over
