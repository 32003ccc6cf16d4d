"""The dashboard in a browser: served on the loopback address to the browser that opened it, and to nobody else."""

from __future__ import annotations

import asyncio
import json
import secrets
import shlex
import signal
import socket
import sys
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import textual_serve
from aiohttp import WSMessage, WSMsgType, web
from jinja2 import Environment
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from nbs_fleet.cli import output
from nbs_fleet.cli.lookup import Found
from nbs_fleet.errors import FleetError
from nbs_fleet.top import acts
from nbs_fleet.top.gate import COOKIE, LOOPBACK, Asked, Gate, Verdict

MOST = 8
"""Browser windows at once; each has a dashboard of its own."""
ENDING = 5.0
"""Seconds that a dashboard gets to end after its window was closed."""
CELLS = (20, 500)
"""Fewest and most columns or rows that a window may ask for."""
FONT = 16
ADMITTED = '<!DOCTYPE html><meta http-equiv="refresh" content="0;url={}"><title>nbs-fleet top</title>'
"""A page of ours that goes on to the dashboard: after it, the cookie is sent by a page of this very origin."""


def serve(found: Found, port: int) -> int:
    """Serve until Ctrl-C or SIGTERM; 0. Raises FleetError if the port is taken."""
    return asyncio.run(_serve(found, port))


async def _serve(found: Found, port: int) -> int:
    try:
        listening = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise FleetError(f"port {port}: {error.strerror}", hint="choose another one with --port") from error
    gate = new_gate(listening.getsockname()[1])
    dashboards = Dashboards(gate, f"exec {shlex.join(acts.argv(found, acts.Act(('top',), '')))}", found.team)
    runner = web.AppRunner(dashboards.application(), access_log=None)
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        output.say("open this in your browser; it works once, Ctrl-C ends it:")
        output.say(gate.url)
        sys.stdout.flush()
        await over.wait()
    finally:
        await dashboards.close()
        await runner.cleanup()
    return 0


def new_gate(port: int) -> Gate:
    """Fresh secrets for a server on this port."""
    return Gate(port, secrets.token_urlsafe(16), secrets.token_urlsafe(32), secrets.token_urlsafe(32))


class Dashboards:
    """The pages of one gate; `command` (for the shell) shows a dashboard when Textual's web driver is its terminal."""

    def __init__(self, gate: Gate, command: str, team: str) -> None:
        self._gate, self._command, self._team = gate, command, team
        self._open: set[web.WebSocketResponse] = set()
        self._downloads = DownloadManager()

    def application(self) -> web.Application:
        """What answers requests: the gate comes before everything, files and unknown paths too."""
        made = web.Application(middlewares=[self._guard])
        base = self._gate.base
        static = Path(textual_serve.__file__).parent / "static"
        made.add_routes(
            [
                web.get(base, self._page),
                web.get(f"{base}page.js", self._script),
                web.get(f"{base}ws", self._socket),
                web.static(f"{base}static", static),
            ]
        )
        made.on_response_prepare.append(self._dress)
        return made

    async def close(self) -> None:
        """Close all windows; their dashboards end."""
        for window in tuple(self._open):
            await window.close()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        verdict = self._gate.judge(asked(request))
        if verdict is Verdict.REFUSE:
            return web.Response(status=403)
        if verdict is Verdict.ENTER:
            answer: web.StreamResponse = await handler(request)
            return answer
        welcome = web.Response(text=ADMITTED.format(self._gate.base), content_type="text/html")
        welcome.set_cookie(COOKIE, self._gate.session, path=self._gate.base, httponly=True, samesite="Strict")
        return welcome

    async def _dress(self, _: web.Request, answer: web.StreamResponse) -> None:
        """Nothing from elsewhere is loaded, nobody may frame it, nothing is kept."""
        answer.headers.update(
            {
                "Content-Security-Policy": (
                    f"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
                    f"img-src 'self' data:; connect-src 'self' ws://{self._gate.authority}; base-uri 'none'; "
                    "form-action 'none'; frame-ancestors 'none'"
                ),
                "Referrer-Policy": "no-referrer",
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cross-Origin-Resource-Policy": "same-origin",
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
                "Server": "nbs-fleet",
            }
        )

    async def _page(self, request: web.Request) -> web.Response:
        size = request.query.get("fontsize", "")
        filled = (
            Environment(autoescape=True)
            .from_string(_own("page.html"))
            .render(
                title=f"{self._team} - nbs-fleet top",
                socket=f"ws://{self._gate.authority}{self._gate.base}ws",
                size=int(size) if size.isascii() and size.isdigit() and len(size) < 3 else FONT,
            )
        )
        return web.Response(text=filled, content_type="text/html")

    async def _script(self, _: web.Request) -> web.Response:
        return web.Response(text=_own("page.js"), content_type="text/javascript")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        """One window: what is typed goes to a dashboard of its own, what that draws comes back."""
        if len(self._open) >= MOST:
            return web.Response(status=503)
        window = web.WebSocketResponse(heartbeat=15.0, max_msg_size=1 << 20)
        self._open.add(window)
        service = AppService(
            self._command,
            write_bytes=window.send_bytes,
            write_str=window.send_str,
            close=_closer(window),
            download_manager=self._downloads,
        )
        try:
            await window.prepare(request)
            await service.start(cells(request.query.get("width")), cells(request.query.get("height")))
            async for message in window:
                await _heard(window, service, message)
        finally:
            self._open.discard(window)
            await _end(service)
        return window


def _own(name: str) -> str:
    """A file beside this module."""
    return (files("nbs_fleet.top") / name).read_text(encoding="utf-8")


def asked(request: web.Request) -> Asked:
    """What a request says of itself. A header that comes twice counts as another one."""

    def header(name: str) -> str | None:
        values = request.headers.getall(name, [])
        return ", ".join(values) if values else None

    return Asked(
        method=request.method,
        path=request.path,
        host=header("Host"),
        origin=header("Origin"),
        site=header("Sec-Fetch-Site"),
        ticket=request.query.get("ticket"),
        cookie=request.cookies.get(COOKIE),
        upgrade="upgrade" in request.headers,
    )


def cells(text: object) -> int:
    """A number of columns or rows that a window asks for, within reason."""
    least, most = CELLS
    try:
        return min(max(int(str(text)), least), most)
    except ValueError:
        return 80


def _closer(window: web.WebSocketResponse) -> Any:
    async def close() -> None:
        await window.close()

    return close


async def _heard(window: web.WebSocketResponse, service: AppService, message: WSMessage) -> None:
    """Pass on what the page says: `[kind, value]`; anything else is passed over."""
    if message.type is not WSMsgType.TEXT:
        return
    try:
        said = json.loads(message.data)
    except (ValueError, RecursionError):
        return
    match said:
        case ["stdin", str(keys)]:
            await service.send_bytes(keys.encode("utf-8", "surrogatepass"))
        case ["resize", {"width": width, "height": height}]:
            await service.set_terminal_size(cells(width), cells(height))
        case ["ping", str(mark)]:
            await window.send_json(["pong", mark])
        case ["focus"]:
            await service.focus()
        case ["blur"]:
            await service.blur()
        case _:
            return


async def _end(service: AppService) -> None:
    """See to it that the window's dashboard ends."""
    program = service._process  # noqa: SLF001 - the library keeps no other handle on it
    try:
        async with asyncio.timeout(ENDING):
            await service.stop()
            if program is not None:
                await program.wait()
    except (TimeoutError, OSError):
        if program is not None and program.returncode is None:
            with suppress(ProcessLookupError):
                program.kill()
            await program.wait()
