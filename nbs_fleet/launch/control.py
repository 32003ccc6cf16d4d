"""One control-mode client of a team's tmux server: commands without a fork, and news without a poll."""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from msgspec import Struct

from nbs_fleet.errors import MissingError, TmuxError
from nbs_fleet.launch.tmux import client_environ
from nbs_fleet.launch.tmux_text import (
    PANE_FORMAT,
    Pane,
    check_pane,
    line,
    parse_panes,
    pasteable,
    session_target,
    trimmed,
)

_FLAGS = "ignore-size,no-output"
"""A client that is not sized and gets no output can hang without any harm to agents (measured on 3.3a)."""
LISTENING = "ignore-size,pause-after=1"
"""A client that is told of all output; tmux keeps none of it back for one that takes none for a second."""
_OCCUPIED = "#{||:#{pane_in_mode},#{pane_dead}}"
"""Holds for a pane that takes no input: a person has it in copy mode (or another of tmux's modes), or it is dead."""
_SUBSCRIPTION = re.compile(r"%subscription-changed (\S+) (\S+) (\S+) (\S+) (\S+) : (.*)", re.DOTALL)


class Reply(Struct, frozen=True):
    """What one command answered; with `ok` False, `lines` is tmux's error text."""

    ok: bool
    lines: tuple[str, ...]


class _Pending(Struct):
    """A command that waits for its reply; with `until`, for all replies up to the one that says just that."""

    future: asyncio.Future[list[Reply]]
    until: str | None = None
    got: list[Reply] = []


class Control(asyncio.SubprocessProtocol):
    """A `tmux -C` client on the running loop: `control = Control(); await control.connect(socket, session)`.

    `closed` gets a reason when the client is gone: the server died, the session was closed, it did not answer,
    or `close` was called. From then on each call raises TmuxError at once, and `Tmux` (a fork per call) is the
    way on. `on_subscription(name, pane, value)` and `on_window_close(window_id)` are called from the loop;
    `pane` is empty for a subscription to a session or window. So are, with the flags LISTENING, `on_output(pane)` for
    each piece of output, and `on_pause()` when tmux has left some out, as it was not read in time.
    """

    def __init__(self, timeout: float = 10.0) -> None:
        """`timeout` seconds bound the connection and each later call."""
        self.on_subscription: Callable[[str, str, str], None] | None = None
        self.on_window_close: Callable[[str], None] | None = None
        self.on_output: Callable[[str], None] | None = None
        self.on_pause: Callable[[], None] | None = None
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._timeout = timeout
        self._transport: asyncio.SubprocessTransport | None = None
        self._buffer = bytearray()
        self._errors = bytearray()
        self._pending: deque[_Pending] = deque()
        self._block: tuple[str, list[str]] | None = None
        """Number part of the block that is open, and its lines."""
        self._attached: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._exited = asyncio.Event()
        self._lost = asyncio.Event()

    async def connect(self, socket: str, session: str, flags: str = _FLAGS) -> Self:
        """Attach to a session of exactly this name. Raises TmuxError when there is no such server or session."""
        argv = ["tmux", "-N", "-u", "-S", socket, "-C", "attach-session", "-t", session_target(session), "-f", flags]
        loop = asyncio.get_running_loop()
        try:
            await loop.subprocess_exec(lambda: self, *argv, env=client_environ(os.environ))
        except FileNotFoundError as error:
            raise MissingError("tmux is not installed", hint="Install tmux 3.2a or later.") from error
        try:
            async with asyncio.timeout(self._timeout):
                reply = await self._attached
        except TimeoutError:
            reply = Reply(ok=False, lines=(f"no answer within {self._timeout:g} s",))
        except TmuxError as error:
            reply = Reply(ok=False, lines=(error.message.removeprefix("tmux -C: "),))
        except asyncio.CancelledError:
            self._end("closed")
            raise
        if not reply.ok:
            await self.close()
            raise TmuxError(f"tmux -C attach-session: {' '.join(reply.lines)}")
        return self

    @property
    def alive(self) -> bool:
        """Whether calls can be made."""
        return not self.closed.done()

    async def run(self, *lines: str) -> list[Reply]:
        """Run command lines, one command each (see `tmux_text.line`), sent by one write; a reply for each.

        Raises TmuxError when the client is gone or does not answer in time; it is closed then, since later
        replies could not be told apart.
        """
        loop = asyncio.get_running_loop()
        return [
            reply
            for replies in await self._send(lines, [_Pending(loop.create_future()) for _ in lines])
            for reply in replies
        ]

    async def capture(self, pane: str, history: int = 0) -> tuple[str, ...]:
        """The rows of a pane's screen, and up to `history` rows above it. Raises TmuxError if it is gone."""
        return trimmed(await self._one("capture-pane", "-p", "-t", check_pane(pane), "-S", str(-history)))

    async def look(self, pane: str) -> tuple[Pane | None, tuple[str, ...]]:
        """A pane (None if it is gone) and the rows of its screen, by one write. Raises TmuxError if it can't be read."""
        target = check_pane(pane)
        known, screen = await self.run(
            line("display-message", "-p", "-t", target, PANE_FORMAT),
            line("capture-pane", "-p", "-t", target, "-S", "0"),
        )
        if not screen.ok:
            raise TmuxError(f"tmux capture-pane: {' '.join(screen.lines)}")
        return _found(pane, known.lines if known.ok else ()), trimmed(screen.lines)

    async def panes(self) -> tuple[Pane, ...]:
        """All panes of the server."""
        return parse_panes(await self._one("list-panes", "-a", "-F", PANE_FORMAT))

    async def pane(self, pane: str) -> Pane | None:
        """One pane, at the same cost however many there are; None if it is gone."""
        return _found(pane, await self._one("display-message", "-p", "-t", check_pane(pane), PANE_FORMAT))

    async def subscribe(self, name: str, target: str, fmt: str) -> None:
        """Have `on_subscription` called when the format `fmt` changes; looked at once a second by the server.

        `target` is `%*` (each pane of the session), a pane id, `@*`, a window id, or empty for the session. tmux
        tells no more of a single pane once it is dead; of `%*` it does.
        A new subscription of the same name replaces the old one.
        """
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise ValueError(f"not a subscription name: {name!r}")
        await self._one("refresh-client", "-B", f"{name}:{target}:{fmt}")

    async def unsubscribe(self, name: str) -> None:
        """End a subscription."""
        await self._one("refresh-client", "-B", name)

    async def press(self, pane: str, keys: tuple[str, ...]) -> None:
        """Send keys by name (`Enter`, `Down`, `1`).

        Raises TmuxError, and sends nothing, when the pane is gone or a person has it in copy mode, where keys
        would move their cursor.
        """
        # A person can't enter copy mode between the question and the keys: both are one step for the server.
        send = line("send-keys", "-t", check_pane(pane), "--", *keys)
        if await self._unless(_OCCUPIED, pane, send):
            return
        raise TmuxError(f"tmux send-keys: pane {pane} is in copy mode or dead; no key was sent")

    async def write(self, pane: str, text: str) -> None:
        """Type text as it is, for clients that know no paste; refused like `press`."""
        send = line("send-keys", "-l", "-t", check_pane(pane), "--", pasteable(text))
        if not await self._unless(_OCCUPIED, pane, send):
            raise TmuxError(f"tmux send-keys: pane {pane} is in copy mode or dead; nothing was typed")

    async def paste(self, pane: str, text: str) -> None:
        """Paste text, bracketed where the client asked for that; control characters are removed first.

        No key follows: Enter is a matter of its own. Raises TmuxError, and pastes nothing, when the pane is gone,
        dead, or in copy mode: tmux would leave the brackets out there (seen on 3.3a), and each newline be a key.
        """
        target = check_pane(pane)
        clean = pasteable(text)
        if not clean:
            return
        # A name of its own: senders that share a buffer lose texts (measured: 4 of 96).
        name = f"nbs-{os.urandom(8).hex()}"
        await self._one("set-buffer", "-b", name, "--", clean)
        try:
            pasted = await self._unless(
                _OCCUPIED, pane, line("paste-buffer", "-p", "-r", "-d", "-b", name, "-t", target)
            )
        except TmuxError:
            if self.alive:
                await self.run(line("delete-buffer", "-b", name))
            raise
        if not pasted:
            await self.run(line("delete-buffer", "-b", name))
            raise TmuxError(f"tmux paste-buffer: pane {pane} is in copy mode or dead; nothing was pasted")

    async def close(self) -> None:
        """End the client and wait until its process is gone."""
        self._end("closed")
        if self._transport is not None:
            # First the exit, then the pipes: closing them collects the child behind the loop's back.
            await self._exited.wait()
            self._transport.close()
            await self._lost.wait()

    async def _send(self, lines: tuple[str, ...], pending: list[_Pending]) -> list[list[Reply]]:
        if self.closed.done() or self._transport is None:
            raise TmuxError(f"tmux -C: {self.closed.result() if self.closed.done() else 'not connected'}")
        if any(not text.strip() or "\n" in text for text in lines):
            raise ValueError("each command must be one line")
        self._pending.extend(pending)
        stdin = self._transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)  # noqa: S101 -- what asyncio gives for a pipe; for mypy
        stdin.write("".join(f"{text}\n" for text in lines).encode("utf-8", "surrogateescape"))
        try:
            async with asyncio.timeout(self._timeout):
                return [await item.future for item in pending]
        except TimeoutError as error:
            reason = f"no answer to {lines[0].split(' ', 1)[0]} within {self._timeout:g} s"
            self._end(reason)
            raise TmuxError(f"tmux -C: {reason}") from error
        finally:
            for item in pending:
                item.future.cancel()

    async def _unless(self, condition: str, pane: str, command: str) -> bool:
        """Run `command` unless the format `condition` holds for the pane; whether it ran. Raises TmuxError."""
        # if-shell answers, and then the command it chose: the sentinel shows where their replies end.
        sentinel = f"nbs-{os.urandom(4).hex()}"
        refused = f"display-message -p {sentinel}-refused"
        choice = line("if-shell", "-F", "-t", check_pane(pane), condition, refused, command)
        waiting = _Pending(asyncio.get_running_loop().create_future(), until=sentinel)
        ((*replies, _),) = await self._send((choice, line("display-message", "-p", sentinel)), [waiting])
        failed = next((reply for reply in replies if not reply.ok), None)
        if failed is not None:
            raise TmuxError(f"tmux {command.split(' ', 1)[0]}: {' '.join(failed.lines)}")
        return all(reply.lines != (f"{sentinel}-refused",) for reply in replies)

    async def _one(self, *words: str) -> tuple[str, ...]:
        (reply,) = await self.run(line(*words))
        if not reply.ok:
            raise TmuxError(f"tmux {words[0]}: {' '.join(reply.lines)}")
        return reply.lines

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)  # noqa: S101 -- what asyncio promises; for mypy
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        content = data if isinstance(data, bytes) else data.encode()
        if fd == 2:
            self._errors += content
            return
        self._buffer += content
        *complete, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        for raw in complete:
            self._received(raw.decode("utf-8", "replace"))

    def process_exited(self) -> None:
        self._exited.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- asyncio's signature
        # Only now is everything read: the end of the process, or of one pipe, may be told before its last words.
        self._end(self._errors.decode("utf-8", "replace").strip() or "the tmux server is gone")
        self._lost.set()

    def _received(self, text: str) -> None:
        if self._block is not None:
            number, lines = self._block
            # Only the line with this block's own time and number ends it: a screen may show anything.
            if text in (f"%end {number}", f"%error {number}"):
                self._block = None
                self._answered(number, Reply(text.startswith("%end"), tuple(lines)))
            else:
                lines.append(text)
        elif text.startswith("%begin "):
            self._block = (text.removeprefix("%begin "), [])
        elif text.startswith("%exit"):
            self._end(text.removeprefix("%exit").strip() or "the session was closed")
        else:
            self._told(text)

    def _answered(self, number: str, reply: Reply) -> None:
        if not self._attached.done():
            self._attached.set_result(reply)
        elif number.endswith(" 1") and self._pending:
            # The last number is 1 for commands of this client, 0 for those of hooks.
            item = self._pending[0]
            item.got.append(reply)
            if item.until is None or reply.lines == (item.until,):
                self._pending.popleft()
                if not item.future.done():
                    item.future.set_result(item.got)

    def _told(self, text: str) -> None:
        if text.startswith(("%extended-output ", "%output ")):
            if self.on_output is not None:
                self.on_output(text.split(" ", 2)[1])
        elif text.startswith("%pause "):
            if self.on_pause is not None:
                self.on_pause()
        elif text.startswith(("%window-close ", "%unlinked-window-close ")):
            if self.on_window_close is not None:
                self.on_window_close(text.split(" ", 1)[1])
        elif (found := _SUBSCRIPTION.fullmatch(text)) and self.on_subscription is not None:
            name, _, _, _, pane, value = found.groups()
            self.on_subscription(name, pane if pane.startswith("%") else "", value)

    def _end(self, reason: str) -> None:
        """Settle everything that waits, and see that no client process stays behind."""
        if not self.closed.done():
            self.closed.set_result(reason)
        error = TmuxError(f"tmux -C: {reason}")
        waiting: list[asyncio.Future[Any]] = [self._attached, *(item.future for item in self._pending)]
        self._pending.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(error)
                # Nobody may be waiting any more; the reason is in `closed` then.
                future.exception()
        if self._transport is not None and self._transport.get_returncode() is None:
            with suppress(ProcessLookupError):
                self._transport.kill()


def _found(pane: str, lines: tuple[str, ...]) -> Pane | None:
    """The pane that was asked for: for one that is gone tmux answers with another one."""
    return next((found for found in parse_panes(lines) if found.id == pane), None)
