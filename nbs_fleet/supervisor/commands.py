"""The command socket: answers requests from the same user, and streams changes to followers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Awaitable, Callable

import msgspec

from nbs_fleet import jsontext
from nbs_fleet.errors import FleetError
from nbs_fleet.supervisor.protocol import Answer, Request

MAX_LINE = 65_536
BACKLOG = 1_000
"""Changes kept for a follower that does not read; then it is cut off and must ask again."""


class CommandSocket:
    """A Unix socket at `path` (0600). `handle(request)` gives the answer.

    A `follow` gets all records as they are (`everything`) after it, then each change.
    """

    def __init__(
        self,
        path: str,
        handle: Callable[[Request], Awaitable[Answer]],
        everything: Callable[[], tuple[Answer, ...]],
    ) -> None:
        self._path, self._handle, self._everything = path, handle, everything
        self._followers: set[asyncio.Queue[Answer]] = set()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listen. A socket file left by a dead supervisor is replaced: the lock says that nobody owns it."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, self._path, limit=MAX_LINE)
        finally:
            os.umask(before)

    async def renew(self) -> None:
        """Listen at a new socket file in the place of one that others removed; open connections go on."""
        if self._server is not None:
            self._server.close()
        await self.start()

    async def close(self) -> None:
        """Stop listening, end all streams, remove the socket file."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._open):
            writer.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)

    def publish(self, change: Answer) -> None:
        """Tell all followers."""
        for queue in list(self._followers):
            try:
                queue.put_nowait(change)
            except asyncio.QueueFull:
                self._followers.discard(queue)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if not _same_user(writer):
                return
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
                while line := await reader.readline():
                    await self._answer(line, reader, writer)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = msgspec.json.decode(line, type=Request)
        except jsontext.MALFORMED as error:
            await _send(writer, Answer(ok=False, error=f"not a request: {error}"))
            return
        if request.do == "follow":
            await self._stream(request, reader, writer)
            return
        try:
            answer = await self._handle(request)
        except FleetError as error:
            # A full disk, for one: whoever asked is told why nothing came of it.
            answer = Answer(ok=False, error=error.message)
        await _send(writer, answer)

    async def _stream(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Changes until the follower goes away or falls too far behind."""
        queue: asyncio.Queue[Answer] = asyncio.Queue(BACKLOG)
        self._followers.add(queue)
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await _send(writer, await self._handle(request))
            for record in self._everything():
                await _send(writer, record)
            await _send(writer, Answer(complete=True))
            while queue in self._followers:
                change = asyncio.ensure_future(queue.get())
                done, _ = await asyncio.wait({change, gone}, return_when=asyncio.FIRST_COMPLETED)
                if gone in done:
                    change.cancel()
                    return
                await _send(writer, change.result())
        finally:
            gone.cancel()
            self._followers.discard(queue)


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    writer.write(jsontext.encode(answer) + b"\n")
    await writer.drain()


def _same_user(writer: asyncio.StreamWriter) -> bool:
    peer = writer.get_extra_info("socket")
    credentials = getattr(socket, "SO_PEERCRED", None)
    if peer is None or credentials is None:
        return True
    packed = peer.getsockopt(socket.SOL_SOCKET, credentials, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", packed)
    return bool(uid == os.geteuid())
