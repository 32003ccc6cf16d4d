"""What comes over a link while the fleet runs: lines of tmux's control mode, and what a dashboard's page says."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, cast

from aiohttp import WSMessage, WSMsgType
from hypothesis import strategies as st

from nbs_fleet.errors import TmuxError
from nbs_fleet.launch.control import Control
from nbs_fleet.launch.tmux_text import parse_panes, trimmed
from nbs_fleet.top.web import CELLS, _heard
from tests.fuzz.inputs import of_bytes, of_json
from tests.fuzz.target import Target, told

BLOCK = b"1777000000 4711 1"
"""Time, number and flags of the block that holds a command's reply; no input has it."""
STREAMS = (
    b"%begin 1777000001 12 0\n%end 1777000001 12 0\n%session-changed $0 team\n",
    b"%subscription-changed flicker $0 @1 1 %3 : 1 0 title\n%subscription-changed dead $0 - - - : x\n",
    b"%window-close @3\n%unlinked-window-close @4\n%window-renamed @1 work\n%layout-change @1 b25f,80x24,0,0,1\n",
    b"%begin 1777000002 13 1\nparse error: no such command\n%error 1777000002 13 1\n%exit server exited\n",
    b"%output %1 a\\033[31mb\\015\\012\n%pause %1\n%continue %1\n%client-detached /dev/pts/3\n",
    b"%1 ana crew @1 4242 0   200 50 0 1 work python3 a\\ title\n",
)
MESSAGES = (
    b'["stdin", "hello"]',
    b'["resize", {"width": 120, "height": 40}]',
    b'["ping", "1777000000"]',
    b'["focus"]',
    b'["blur"]',
)


class _Pipe(asyncio.SubprocessTransport):
    """A tmux that says only what it is made to say."""

    def __init__(self) -> None:
        super().__init__()
        self.stdin = _Sink()

    def get_pipe_transport(self, fd: int) -> Any:
        return self.stdin if fd == 0 else None

    def get_returncode(self) -> int | None:
        return None

    def kill(self) -> None:
        """There is no process."""


class _Sink(asyncio.WriteTransport):
    def write(self, data: Any) -> None:
        """Nobody reads it."""


def _attached() -> tuple[Control, list[tuple[str, ...]]]:
    """A client that is connected, and what it tells of."""
    news: list[tuple[str, ...]] = []
    control = Control(timeout=5)
    control.on_subscription = lambda *said: news.append(said)
    control.on_window_close = lambda window: news.append((window,))
    control.connection_made(_Pipe())
    control.pipe_data_received(1, b"%begin 1777000000 1 0\n%end 1777000000 1 0\n")
    return control, news


async def _any_stream(data: bytes) -> None:
    """Whatever the server says, in whatever pieces, is news, an answer, or nothing."""
    control, news = _attached()
    asked = asyncio.ensure_future(control.run("list-panes"))
    await asyncio.sleep(0)
    half = len(data) // 2
    control.pipe_data_received(1, data[:half])
    control.pipe_data_received(1, data[half:])
    control.pipe_data_received(2, data[:100])
    control.connection_lost(None)
    with suppress(TmuxError):
        for reply in await asked:
            told([trimmed(reply.lines), parse_panes(reply.lines)])
    told(news)
    told(control.closed.result())


def _stream(data: bytes) -> None:
    asyncio.run(_any_stream(data))


async def _in_a_block(data: bytes) -> None:
    """A pane's rows, whatever they look like, are the reply to the command, to the last one, and nothing else."""
    control, news = _attached()
    asked = asyncio.ensure_future(control.run("capture-pane -p"))
    await asyncio.sleep(0)
    body = b"%begin " + BLOCK + b"\n" + data + b"\n%end " + BLOCK + b"\n"
    for at in range(0, len(body), 4_096):
        control.pipe_data_received(1, body[at : at + 4_096])
    (reply,) = await asked
    rows = tuple(row.decode("utf-8", "replace") for row in data.split(b"\n"))
    assert reply.ok
    assert reply.lines == rows
    assert not news
    assert control.alive
    told(trimmed(reply.lines))
    control.connection_lost(None)


def _rows(data: bytes) -> None:
    asyncio.run(_in_a_block(data))


class _Page:
    """A browser's side of the socket, and the dashboard's program behind it: both take note."""

    def __init__(self) -> None:
        self.typed: list[bytes] = []
        self.sizes: list[tuple[int, int]] = []
        self.said: list[Any] = []

    async def send_json(self, data: Any) -> None:
        self.said.append(json.dumps(data))

    async def send_bytes(self, data: bytes) -> bool:
        self.typed.append(data)
        return True

    async def set_terminal_size(self, width: int, height: int) -> None:
        self.sizes.append((width, height))

    async def focus(self) -> None:
        self.said.append("focus")

    async def blur(self) -> None:
        self.said.append("blur")


async def _message(data: bytes) -> None:
    """A message of the page does one of five things, within bounds, or nothing."""
    page = _Page()
    for kind, said in ((WSMsgType.TEXT, data.decode("utf-8", "replace")), (WSMsgType.BINARY, data)):
        await _heard(cast("Any", page), cast("Any", page), WSMessage(kind, said, None))
    least, most = CELLS
    assert all(least <= cells <= most for size in page.sizes for cells in size), page.sizes
    assert len(page.typed) + len(page.sizes) + len(page.said) <= 1


def _messages(data: bytes) -> None:
    asyncio.run(_message(data))


def targets() -> tuple[Target, ...]:
    """The targets of this module."""
    return (
        Target("tmux-stream", "what tmux says in control mode", lambda: of_bytes(STREAMS), _stream),
        Target("tmux-rows", "a pane's rows in a reply of tmux", lambda: of_bytes(STREAMS), _rows),
        Target(
            "page",
            "what the page of a dashboard says",
            lambda: st.one_of(of_json(MESSAGES), of_bytes(MESSAGES)),
            _messages,
        ),
    )
