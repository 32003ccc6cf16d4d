"""The dashboard in the system's Chromium: opened by its ticket, driven by keys, photographed."""

from __future__ import annotations

import asyncio
import base64
import shlex
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer
from playwright.async_api import Page, async_playwright

from nbs_fleet.top.gate import Gate
from nbs_fleet.top.web import Dashboards, new_gate

ROOT = Path(__file__).resolve().parents[2]
SIZE = (1440, 900)
WITHIN = 120.0
"""Seconds: a browser on a loaded machine takes its time."""
DIFFERENCE = """async ([one, other]) => {
  const pixels = async (png) => {
    const image = new Image();
    image.src = "data:image/png;base64," + png;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [144, 90];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0, 144, 90);
    return context.getImageData(0, 0, 144, 90).data;
  };
  const [a, b] = [await pixels(one), await pixels(other)];
  return a.reduce((sum, value, index) => sum + Math.abs(value - b[index]), 0) / a.length;
}"""
"""Mean difference of two pictures (0 to 255), each made so small that the shapes of letters hardly count."""


def chromium() -> str:
    """The browser of the system; the test is skipped where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium: sh .ci/chromium.sh")
    return found


class Window:
    """A browser's window on the dashboard. `drawn` is all that was sent to its terminal so far."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._parts: list[bytes] = []
        self._more = asyncio.Event()
        page.on("websocket", lambda socket: socket.on("framereceived", self._heard))

    @property
    def drawn(self) -> str:
        return b"".join(self._parts).decode("utf-8", "replace")

    def _heard(self, payload: str | bytes) -> None:
        if isinstance(payload, bytes):
            self._parts.append(payload)
            self._more.set()

    def forget(self) -> None:
        """From now on only what comes next counts."""
        self._parts.clear()

    async def until(self, *words: str) -> None:
        """Wait until all of these have been drawn."""
        async with asyncio.timeout(WITHIN):
            while not all(word in self.drawn for word in words):
                self._more.clear()
                await self._more.wait()

    async def picture(self) -> bytes:
        """The window as PNG, once it does not change any more."""
        before = b""
        async with asyncio.timeout(WITHIN):
            while (now := await self.page.screenshot()) != before:
                before = now
                await asyncio.sleep(0.3)
        return before

    async def difference(self, one: bytes, other: bytes) -> float:
        """How far two PNGs are apart, 0 to 255."""
        encoded = [base64.b64encode(png).decode() for png in (one, other)]
        found = await self.page.evaluate(DIFFERENCE, encoded)
        return float(found)


@asynccontextmanager
async def window(gate: Gate) -> AsyncIterator[Window]:
    """A fresh browser that opens the gate's address."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), timeout=WITHIN * 1000)
        try:
            page = await browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
            opened = Window(page)
            await page.goto(gate.url, timeout=WITHIN * 1000)
            yield opened
        finally:
            await browser.close()


@asynccontextmanager
async def staged() -> AsyncIterator[Gate]:
    """A server of the dashboard that was made by hand."""
    gate = new_gate(0)
    command = f"cd {shlex.quote(str(ROOT))} && TZ=UTC exec {shlex.quote(sys.executable)} -m tests.top.staged"
    dashboards = Dashboards(gate, command, "review")
    server = TestServer(dashboards.application(), host="127.0.0.1")
    await server.start_server()
    gate.port = server.port or 0
    try:
        yield gate
    finally:
        await dashboards.close()
        await server.close()
