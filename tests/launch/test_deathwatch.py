from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest

from nbs_fleet.launch.deathwatch import DeathWatch
from nbs_fleet.launch.processes import identify
from nbs_fleet.launch.proctable import LinuxTable, PortableTable, Table
from nbs_fleet.model import ProcId


@pytest.fixture(params=[LinuxTable, PortableTable], ids=["linux", "portable"])
async def watch(request: pytest.FixtureRequest) -> AsyncIterator[DeathWatch]:
    made = DeathWatch(on=request.param(), interval=0.01)
    yield made
    made.close()


@pytest.fixture
def table(watch: DeathWatch) -> Table:
    return watch._table


@pytest.fixture
def second() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as made:
        yield made
        made.kill()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as made:
        yield made
        made.kill()


def known(pid: int, table: Table) -> ProcId:
    proc = identify(pid, on=table)
    assert proc is not None
    return proc


async def test_a_death_is_told_once_to_all_who_asked(
    watch: DeathWatch, table: Table, child: subprocess.Popen[bytes]
) -> None:
    proc = known(child.pid, table)
    told: asyncio.Queue[str] = asyncio.Queue()
    watch.add(proc, lambda gone: told.put_nowait(f"a {gone == proc}"))
    watch.add(proc, lambda gone: told.put_nowait(f"b {gone == proc}"))
    child.kill()
    async with asyncio.timeout(20):
        assert [await told.get(), await told.get()] == ["a True", "b True"]
    assert watch._watched == {}


async def test_who_is_dead_already_is_told_of_at_once(
    watch: DeathWatch, table: Table, child: subprocess.Popen[bytes]
) -> None:
    proc = known(child.pid, table)
    later = ProcId(os.getpid(), 1)
    child.kill()
    child.wait()
    told: asyncio.Queue[ProcId] = asyncio.Queue()
    for dead in (proc, later):
        watch.add(dead, told.put_nowait)
    async with asyncio.timeout(20):
        assert {await told.get(), await told.get()} == {proc, later}


async def test_a_zombie_is_a_death(watch: DeathWatch, table: Table, child: subprocess.Popen[bytes]) -> None:
    told: asyncio.Queue[ProcId] = asyncio.Queue()
    proc = known(child.pid, table)
    watch.add(proc, told.put_nowait)
    os.kill(child.pid, 9)
    async with asyncio.timeout(20):
        assert await told.get() == proc
    assert child.returncode is None


async def test_nothing_is_told_after_a_discard(
    watch: DeathWatch, table: Table, child: subprocess.Popen[bytes], second: subprocess.Popen[bytes]
) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    watch.add(known(child.pid, table), lambda _: told.put_nowait("first"))
    watch.add(known(second.pid, table), lambda _: told.put_nowait("second"))
    watch.discard(known(child.pid, table))
    watch.discard(ProcId(1, 1))
    child.kill()
    child.wait()
    second.kill()
    async with asyncio.timeout(20):
        assert await told.get() == "second"
    assert told.empty()


async def test_no_descriptor_stays_open(table: Table, child: subprocess.Popen[bytes]) -> None:
    before = os.listdir("/proc/self/fd")
    watch = DeathWatch(on=table)
    watch.add(known(child.pid, table), lambda _: None)
    watch.close()
    watch.close()
    assert os.listdir("/proc/self/fd") == before


async def test_a_callback_may_watch_the_next_one(
    watch: DeathWatch, table: Table, child: subprocess.Popen[bytes], second: subprocess.Popen[bytes]
) -> None:
    done = asyncio.Event()

    def next_one(_: ProcId) -> None:
        watch.add(known(second.pid, table), lambda _: done.set())
        second.kill()

    watch.add(known(child.pid, table), next_one)
    child.kill()
    async with asyncio.timeout(20):
        await done.wait()
