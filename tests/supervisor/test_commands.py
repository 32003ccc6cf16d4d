"""The command socket: what a request is answered, whatever comes of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from nbs_fleet.errors import FleetError
from nbs_fleet.supervisor.commands import CommandSocket
from nbs_fleet.supervisor.protocol import Answer, Request


async def _handle(request: Request) -> Answer:
    if request.do == "skip":
        raise FleetError("can't write the queue: no space left on device")
    return Answer(pid=7)


async def test_a_request_that_fails_is_answered_with_the_reason_and_the_next_one_is_heard(short_path: Path) -> None:
    socket = CommandSocket(str(short_path / "s"), _handle, lambda: ())
    await socket.start()
    try:
        reader, writer = await asyncio.open_unix_connection(str(short_path / "s"))
        answers = []
        for line in (
            msgspec.json.encode(Request("skip", item="a1")),
            b"nonsense",
            msgspec.json.encode(Request("ping")),
        ):
            writer.write(line + b"\n")
            answers.append(msgspec.json.decode(await asyncio.wait_for(reader.readline(), 30), type=Answer))
        writer.close()
    finally:
        await socket.close()
    full, nonsense, fine = answers
    assert (full.ok, full.error) == (False, "can't write the queue: no space left on device")
    assert not nonsense.ok
    assert (fine.ok, fine.pid) == (True, 7)
