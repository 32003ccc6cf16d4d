"""The server behind the gate: pages, files and websockets for the browser that was let in, nothing for anybody else."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from nbs_fleet.top.gate import COOKIE, Gate
from nbs_fleet.top.web import Dashboards, new_gate

ECHO = """
import os, sys
sys.stdout.buffer.write(b"__GANGLION__\\n")
def packet(data): sys.stdout.buffer.write(b"D" + len(data).to_bytes(4, "big") + data); sys.stdout.buffer.flush()
packet(b"size %s" % os.environ["COLUMNS"].encode())
while head := sys.stdin.buffer.read(5):
    data = sys.stdin.buffer.read(int.from_bytes(head[1:], "big"))
    if head[:1] == b"M" and b'"quit"' in data: break
    packet(head[:1] + data)
"""
"""A dashboard that says what it gets, in the form of Textual's web driver."""


@dataclass
class Served:
    """A running server and its secrets."""

    gate: Gate
    dashboards: Dashboards

    def url(self, path: str = "") -> str:
        return f"{self.gate.origin}{self.gate.base}{path}"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    gate = new_gate(0)
    dashboards = Dashboards(gate, f"exec {shlex.join([sys.executable, '-c', ECHO])}", "review")
    server = TestServer(dashboards.application(), host="127.0.0.1")
    await server.start_server()
    gate.port = server.port or 0
    yield Served(gate, dashboards)
    await dashboards.close()
    await server.close()


def cookie(gate: Gate) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={gate.session}"}


async def test_the_ticket_is_changed_for_a_cookie_that_scripts_and_other_pages_never_see(served: Served) -> None:
    jar = aiohttp.CookieJar(unsafe=True)  # which keeps cookies of addresses, as browsers do
    async with aiohttp.ClientSession(cookie_jar=jar) as client:
        async with client.get(served.gate.url) as first:
            set_cookie = first.headers["Set-Cookie"]
            page = await first.text()
        assert set_cookie == f"{COOKIE}={served.gate.session}; HttpOnly; Path={served.gate.base}; SameSite=Strict"
        assert served.gate.session not in page
        assert served.gate.ticket not in page
        assert f"url={served.gate.base}" in page
        async with client.get(served.gate.url) as again:
            assert again.status == 200  # by the cookie that this client keeps
    async with aiohttp.ClientSession() as other, other.get(served.gate.url) as refused:
        assert (refused.status, await refused.read()) == (403, b"")


@pytest.mark.parametrize("path", ["", "ws", "static/js/textual.js", "static/", "nothing", "../", "static/../../x"])
async def test_without_the_cookie_there_is_nothing_anywhere(served: Served, path: str) -> None:
    async with aiohttp.ClientSession() as client:
        for headers in ({}, {"Cookie": f"{COOKIE}=wrong"}, {"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            given = cookie(served.gate) | headers if "Host" in headers or "Origin" in headers else headers
            async with client.get(served.url(path), headers=given) as answer:
                assert (answer.status, await answer.read()) == (403, b"")
                assert "Set-Cookie" not in answer.headers


async def test_with_the_cookie_there_are_page_and_files_and_nothing_else(served: Served) -> None:
    async with aiohttp.ClientSession(headers=cookie(served.gate)) as client:
        async with client.get(served.url()) as page:
            text = await page.text()
            assert page.status == 200
            assert "https://" not in text  # nothing is loaded from elsewhere
            assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
            assert page.headers["Referrer-Policy"] == "no-referrer"
        async with client.get(served.url("static/js/textual.js")) as script:
            assert script.status == 200
        for path in ("static/", "static/../templates/app_index.html", "download/x"):
            async with client.get(served.url(path)) as answer:
                assert answer.status in (403, 404)


async def test_a_window_has_a_dashboard_of_its_own_that_ends_with_it(served: Served) -> None:
    headers = {**cookie(served.gate), "Origin": served.gate.origin}
    async with asyncio.timeout(60), aiohttp.ClientSession(headers=headers) as client:
        window = await client.ws_connect(served.url("ws?width=123&height=40"))
        async with window:
            assert await window.receive_bytes() == b"size 123"
            await window.send_str("no json")
            await window.send_str('["resize", {"width": 1, "height": "x"}]')
            await window.send_str('["stdin", "q"]')
            assert await window.receive_bytes() == b'M{"type": "resize", "width": 20, "height": 80}'
            assert await window.receive_bytes() == b"Dq"
            await window.send_str('["ping", "7"]')
            assert await window.receive_json() == ["pong", "7"]
            await served.dashboards.close()
            assert (await window.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING)


@pytest.mark.parametrize(
    "wrong", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}, {"Cookie": ""}, {}]
)
async def test_a_websocket_of_anybody_else_is_refused(served: Served, wrong: dict[str, str]) -> None:
    right = {**cookie(served.gate), "Origin": served.gate.origin}
    headers = {**right, **wrong} if wrong else cookie(served.gate)
    async with aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(served.url("ws"), headers=headers)
        assert refused.value.status == 403
