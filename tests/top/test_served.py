"""`top --web` as a program: one address is printed, only this machine reaches it, and nothing outlives it."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import aiohttp
import psutil
import pytest

from nbs_fleet.model import AgentState
from tests.support.cli_world import agent, make_team, write_record

pytestmark = pytest.mark.browser
WITHIN = 120.0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)], ids=["TERM", "KILL"]
)
async def test_it_is_served_to_this_machine_only_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    paths = make_team(tmp_path / "root", "review", (agent("ana-with-a-name"),))
    write_record(paths, "ana-with-a-name", state=AgentState.STOPPED, since=5.0)
    argv = [sys.executable, "-m", "nbs_fleet", "top", "--web", "--team", "review"]
    program = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(WITHIN):
            assert program.stdout is not None
            await program.stdout.readline()
            url = (await program.stdout.readline()).decode().strip()
            ticket = url.partition("ticket=")[2]
            server = psutil.Process(program.pid)
            listening = [c.laddr.ip for c in server.net_connections() if c.status == psutil.CONN_LISTEN]
            assert listening == ["127.0.0.1"]
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
                await (await client.get(url)).read()
                page = url.partition("?")[0]
                window = await client.ws_connect(
                    f"{page}ws?width=90&height=24", origin=url.partition("//")[0] + "//" + url.split("/")[2]
                )
                drawn = b""
                while b"ana-with-a-name" not in drawn:
                    drawn += await window.receive_bytes()
                (dashboard,) = server.children()
                assert ticket not in " ".join(server.cmdline() + dashboard.cmdline())
                assert ticket not in str(dashboard.environ())
                program.send_signal(number)
                assert await program.wait() == code
                _, alive = await asyncio.to_thread(psutil.wait_procs, [dashboard], 30)
                assert alive == []
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
