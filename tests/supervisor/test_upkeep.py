"""What others do to the run directory of a running team is put right and told; what an `up` does is left alone."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from nbs_fleet.launch import rundir
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.locks import FileLock
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import AgentState
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.spec.team import Agent, Layout
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.commands import CommandSocket
from nbs_fleet.supervisor.fleet import Life
from nbs_fleet.supervisor.protocol import Answer, Request
from nbs_fleet.supervisor.rendering import File, team_files
from nbs_fleet.supervisor.story import Story
from nbs_fleet.supervisor.upkeep import TIMES, Upkeep
from tests.support.waiting import eventually_async

RECORD = AgentRecord("ana", state=AgentState.IDLE, session_id="s-1")


@dataclass
class Ground:
    """A run directory as `up` leaves it, and what the supervisor has in memory."""

    paths: RunPaths
    plan: Plan
    lives: dict[str, Life] = field(default_factory=dict)
    more: dict[str, File] = field(default_factory=dict)

    def told(self) -> list[tuple[str, str]]:
        lines = Path(self.paths.story).read_text().splitlines() if os.path.exists(self.paths.story) else []
        return [(entry["what"], entry.get("file", "")) for entry in map(json.loads, lines)]

    async def until(self, path: str, data: bytes) -> None:
        await eventually_async(lambda: read(path) == data)

    async def until_told(self, what: str, file: str) -> None:
        await eventually_async(lambda: (what, file) in self.told())


def read(path: str) -> bytes | None:
    return Path(path).read_bytes() if os.path.exists(path) else None


def resting(upkeep: Upkeep) -> bool:
    """Whether it has looked, and nothing is under way."""
    return upkeep._task is not None and upkeep._task.done()


async def looked(upkeep: Upkeep) -> None:
    """Wait until it has looked, and is to look no more."""
    await eventually_async(lambda: resting(upkeep) and upkeep._timer is None)


@pytest.fixture
def ground(short_path: Path) -> Ground:
    environ = {"XDG_STATE_HOME": str(short_path / "state"), "XDG_RUNTIME_DIR": str(short_path / "run")}
    root = short_path / "root"
    root.mkdir()
    (short_path / "run").mkdir()
    paths = rundir.run_paths(str(root), "crew", environ)
    rundir.prepare(paths, str(root))
    agent = AgentPlan(Agent("ana", "ana", None, "sim", str(root)), {}, None, 0, "ana", 0)
    plan = Plan("crew", "team.yaml", str(root), "", paths, Layout(), (agent,))
    for path, file in team_files(plan).items():
        write_atomic(path, file.data, file.mode)
    store.write_record(paths, RECORD)
    return Ground(paths, plan, {"ana": Life(RECORD, agent)})


@asynccontextmanager
async def kept(ground: Ground) -> AsyncIterator[Upkeep]:
    async def handle(_: Request) -> Answer:
        return Answer(pid=7)

    watcher = Watcher()
    commands = CommandSocket(ground.paths.socket, handle, lambda: ())
    await commands.start()
    upkeep = Upkeep(
        ground.plan,
        watcher,
        socket=commands,
        tmux=Tmux(ground.paths.tmux),
        lives=lambda: ground.lives,
        more=lambda: ground.more,
        story=Story(ground.paths.story),
    )
    upkeep.open(ground.plan)
    try:
        yield upkeep
    finally:
        await upkeep.close()
        await commands.close()
        watcher.close()


@pytest.mark.parametrize("name", ["plan.json", "team.json", "runtime", "tmux.conf", "supervise.sh", "bin/nbs-hook.py"])
@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b"{"), Path.unlink], ids=["cut", "removed"])
async def test_a_rendered_file_is_put_right_as_soon_as_it_changes(ground: Ground, name: str, spoil: object) -> None:
    path = Path(ground.paths.run) / name
    before, mode = path.read_bytes(), path.stat().st_mode
    async with kept(ground):
        assert callable(spoil)
        spoil(path)
        await ground.until(str(path), before)
    assert path.stat().st_mode == mode
    assert ("file put right", name) in ground.told()


async def test_a_record_is_put_right_from_memory(ground: Ground) -> None:
    path = ground.paths.agent("ana").state
    async with kept(ground) as upkeep:
        os.unlink(path)
        upkeep.look()
        await ground.until(path, msgspec.json.encode(RECORD))
    assert store.read_record(ground.paths, "ana") == RECORD


OTHERS = frozenset({"ana"})
"""It is not her turn."""


async def test_a_change_that_was_told_waits_for_no_turn(ground: Ground) -> None:
    path = ground.paths.agent("ana").state
    async with kept(ground) as upkeep:
        await looked(upkeep)
        os.unlink(path)
        await eventually_async(lambda: "ana" in upkeep._due)
        upkeep.look(OTHERS)
        await ground.until(path, msgspec.json.encode(RECORD))


async def test_a_record_that_could_not_be_written_waits_for_no_turn(ground: Ground) -> None:
    path, newer = ground.paths.agent("ana").state, msgspec.structs.replace(RECORD, session_id="s-2")
    async with kept(ground) as upkeep:
        await looked(upkeep)
        ground.lives["ana"] = msgspec.structs.replace(ground.lives["ana"], record=newer)
        upkeep.doubt("ana")
        upkeep.look(OTHERS)
        await ground.until(path, msgspec.json.encode(newer))


async def test_a_change_that_nobody_told_is_found_when_it_is_the_agents_turn(ground: Ground) -> None:
    path = ground.paths.agent("ana").state
    async with kept(ground) as upkeep:
        await looked(upkeep)
        upkeep._watcher.remove(ground.paths.agent("ana").dir)
        os.unlink(path)
        upkeep.look(OTHERS)
        await looked(upkeep)
        assert read(path) is None
        upkeep.look()
        await ground.until(path, msgspec.json.encode(RECORD))


async def test_the_record_of_an_agent_that_is_just_started_is_its_starters(ground: Ground) -> None:
    begun = msgspec.structs.replace(RECORD, session_id="s-2")
    ground.lives["ana"] = msgspec.structs.replace(ground.lives["ana"], flight="starting")
    async with kept(ground):
        store.write_record(ground.paths, begun)
        (Path(ground.paths.run) / "runtime").unlink()
        await ground.until(os.path.join(ground.paths.run, "runtime"), os.fsencode(ground.paths.runtime + "\n"))
    assert store.read_record(ground.paths, "ana") == begun


async def test_what_an_up_writes_is_left_alone(ground: Ground) -> None:
    path = ground.paths.tmux_conf
    lock = FileLock(ground.paths.up_lock)
    lock.acquire(5)
    async with kept(ground) as upkeep:
        write_atomic(path, "another plan's")
        upkeep.look()
        await eventually_async(lambda: resting(upkeep) and upkeep._timer is not None)
        assert read(path) == b"another plan's"
        lock.release()


async def test_a_file_that_is_spoiled_again_and_again_is_left_alone_in_the_end(ground: Ground) -> None:
    path = os.path.join(ground.paths.run, "some.json")
    ground.more[path] = File(b"right")
    async with kept(ground) as upkeep:
        for _ in range(TIMES):
            write_atomic(path, b"wrong")
            upkeep.look()
            await ground.until(path, b"right")
        write_atomic(path, b"wrong")
        upkeep.look()
        await ground.until_told("file left as it is", "some.json")
    assert read(path) == b"wrong"


async def test_a_socket_that_was_removed_is_there_again(ground: Ground) -> None:
    async with kept(ground):
        os.unlink(ground.paths.socket)
        await ground.until_told("socket put right", "supervisor.sock")
        reader, writer = await asyncio.open_unix_connection(ground.paths.socket)
        writer.write(msgspec.json.encode(Request("ping")) + b"\n")
        async with asyncio.timeout(30):
            answer = msgspec.json.decode(await reader.readline(), type=Answer)
        writer.close()
        await writer.wait_closed()
    assert answer.pid == 7


async def test_a_damaged_signal_is_told_once(ground: Ground) -> None:
    write_atomic(ground.paths.agent("ana").signal, b"{")
    async with kept(ground) as upkeep:
        await ground.until_told("file damaged", "agents/ana/signal.json")
        for _ in range(2):
            upkeep.look()
            await looked(upkeep)
    assert ground.told().count(("file damaged", "agents/ana/signal.json")) == 1
