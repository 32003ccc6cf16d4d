"""The supervisor's view of panes while its control client comes and goes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable

import psutil
import pytest

from nbs_fleet.errors import TmuxError
from nbs_fleet.supervisor.hearing import Mode
from nbs_fleet.supervisor.panes import Panes
from tests.support.servers import Server
from tests.support.waiting import eventually_async

pytestmark = pytest.mark.tmux

PROMPT = 1.5
"""Seconds within which keys go in again; before a pause and one attaching, on a loaded machine too."""


@pytest.fixture
async def panes(server: Server) -> AsyncIterator[Panes]:
    opened = Panes(server.tmux, "team")
    await opened.open()
    yield opened
    await opened.close()


def control_client() -> int:
    """The one tmux client that this process started."""
    (found,) = (p.pid for p in psutil.Process().children() if "-C" in p.cmdline())
    return found


@pytest.mark.parametrize("settled", [False, True], ids=["at once", "once its end was noticed"])
async def test_keys_go_in_promptly_after_the_control_client_was_killed(
    server: Server, panes: Panes, *, settled: bool
) -> None:
    pane = server.up(["ana"], "stty -echo\necho ready\nexec cat\n")["ana"].id
    await eventually_async(lambda: "ready" in server.tmux.capture(pane)[0])
    first = control_client()
    os.kill(first, signal.SIGKILL)
    if settled:
        await eventually_async(lambda: not psutil.pid_exists(first))
    began, shown = time.monotonic(), {"hello"}
    assert "ready" in (await panes.look(pane)).rows[0]
    try:
        await panes.paste(pane, "hello")
        await panes.press(pane, ["Enter"])
    except TmuxError:
        # The server answers for a moment yet; what it is then asked is done or not, and whoever asked looks and repeats.
        assert not settled
        shown.add("hellohello")
        await panes.paste(pane, "hello")
        await panes.press(pane, ["Enter"])
    assert time.monotonic() - began < PROMPT
    await eventually_async(lambda: shown & set(server.tmux.capture(pane)[1:]))


async def test_a_subscription_outlives_the_control_client(server: Server, panes: Panes) -> None:
    pane = server.up(["ana"])["ana"].id
    heard: asyncio.Queue[str] = asyncio.Queue()
    told: Callable[[str], None] = heard.put_nowait
    await panes.subscribe(pane, "#{pane_title}", told)
    await panes.subscribe("%999", "#{pane_title}", told)
    os.kill(control_client(), signal.SIGKILL)
    server.tmux.run("select-pane", "-t", pane, "-T", "a new title")
    async with asyncio.timeout(20):
        while await heard.get() != "a new title":
            pass


async def test_a_change_is_told_once_more_when_the_pane_then_stays_as_it_is(server: Server, panes: Panes) -> None:
    pane = server.up(["ana"])["ana"].id
    heard: asyncio.Queue[str] = asyncio.Queue()
    told: Callable[[str], None] = heard.put_nowait
    await panes.subscribe(pane, "#{pane_title}", told)
    server.tmux.run("select-pane", "-t", pane, "-T", "a new title")
    async with asyncio.timeout(20):
        while await heard.get() != "a new title":
            pass
        assert await heard.get() == "a new title"


def deafen() -> None:
    """Kill the client that listens to output: of our two the younger one."""
    found = [p for p in psutil.Process().children() if "-C" in p.cmdline()]
    assert len(found) == 2
    os.kill(max(found, key=lambda p: (p.create_time(), p.pid)).pid, signal.SIGKILL)


async def test_a_pane_of_which_nothing_else_tells_is_told_of_at_once_while_it_is_quiet(
    server: Server, panes: Panes
) -> None:
    pane = server.up(["ana"], "stty -echo\nexec cat\n")["ana"].id
    heard: asyncio.Queue[str] = asyncio.Queue()
    told: Callable[[str], None] = heard.put_nowait
    await panes.subscribe(pane, "#{window_activity}", told, alone=True)
    await eventually_async(lambda: panes.hearing is Mode.OUTPUT)
    for last in (False, True):
        while not heard.empty():
            heard.get_nowait()
        await panes.write(pane, "word")
        await panes.press(pane, ["Enter"])
        async with asyncio.timeout(20):
            assert await heard.get() == ""
        if not last:
            deafen()
            await eventually_async(lambda: panes.hearing is Mode.CLOCK)
            await eventually_async(lambda: panes.hearing is Mode.OUTPUT)


async def test_a_loud_pane_is_told_of_once_a_second(server: Server, panes: Panes) -> None:
    text = "stty -echo\nread word\nwhile :; do echo more; sleep 0.005; done\n"
    pane = server.up(["ana"], text)["ana"].id
    heard: asyncio.Queue[str] = asyncio.Queue()
    told: Callable[[str], None] = heard.put_nowait
    await panes.subscribe(pane, "#{history_size} #{cursor_y}", told, alone=True)
    await eventually_async(lambda: panes.hearing is Mode.OUTPUT)
    await panes.press(pane, ["Enter"])
    await eventually_async(lambda: panes.hearing is Mode.CLOCK)
    async with asyncio.timeout(20):
        # By its format now: by output it came without a value.
        while not await heard.get():
            pass
    await panes.unsubscribe(pane)
    await panes.subscribe(pane, "#{pane_title}", told, alone=False)
    await eventually_async(lambda: len([p for p in psutil.Process().children() if "-C" in p.cmdline()]) == 1)
