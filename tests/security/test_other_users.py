"""Another user of this machine can read nothing of a team and drive nothing of it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nbs_fleet.attention.keeper import Keeper
from nbs_fleet.attention.queue import Queue
from nbs_fleet.launch.environment import write_values
from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.model import Message
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.sidecar.sources import set_paused, settle_signal
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.commands import CommandSocket
from nbs_fleet.supervisor.protocol import Answer, Request
from tests.support.cli_world import agent, make_team, write_record

SECRET = "s3cret-of-one-agent"
NOBODY = 65_534
TRY_ALL = """
import json, os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
got = []
for path in json.load(sys.stdin):
    for what, tried in (
        ("list", lambda: os.listdir(path)),
        ("read", lambda: open(path, "rb").read(1)),
        ("write", lambda: open(path, "ab").close()),
        ("make", lambda: open(os.path.join(path, "x"), "w").close()),
        ("remove", lambda: os.unlink(path)),
        ("connect", lambda: socket.socket(socket.AF_UNIX).connect(path)),
        ("stat", lambda: os.stat(path)),
    ):
        try:
            tried()
        except OSError:
            continue
        got.append(f"{what} {path}")
print(json.dumps(got))
"""
"""What nobody in particular could do with each of these paths."""
ASK = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
link = socket.socket(socket.AF_UNIX)
link.settimeout(10)
link.connect(sys.argv[1])
try:
    link.sendall(b'{"do": "ping"}\\n')
    print(link.recv(1000))
except ConnectionError:
    print(b"")
"""


@pytest.fixture
def lived_in(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[RunPaths, Path]]:
    """A run directory with a file of each kind, each written by the code that writes it, under a careless umask."""
    base = short_path
    base.chmod(0o755)  # so that only the directories of ours keep others out
    (base / "run").mkdir(mode=0o700)
    environ = {"HOME": str(base), "XDG_STATE_HOME": str(base / "state"), "XDG_RUNTIME_DIR": str(base / "run")}
    before = os.umask(0)
    try:
        paths = make_team(base / "project", "crew", (agent("ana"), agent("bo")), environ)
        for handle in ("ana", "bo"):
            write_record(paths, handle, detail=SECRET)
            own = paths.agent(handle)
            write_values(own.values, {"API_KEY": SECRET})
            store.keep_capture(paths, handle, 1.0, ("a screen",))
            store.story(paths, handle).tell(1.0, "started")
            box = Mailbox(own)
            message = Message(f"d-0-{handle}", handle, "bo", "hello", 1.0)
            box.accept(message)
            box.put_mail(message, "hello")
            box.put_probe()
            settle_signal(own.signal, 1.0)
            set_paused(own.dir, paused=True)
        Keeper(paths.attention).change(Queue(number=3))
        yield paths, base
    finally:
        os.umask(before)


def _all(paths: RunPaths) -> list[str]:
    found: list[str] = []
    for top in (paths.run, paths.runtime):
        for folder, names, files in os.walk(top):
            found += [folder, *(os.path.join(folder, name) for name in (*names, *files))]
    return sorted(set(found))


def test_every_file_and_folder_is_closed_to_others(lived_in: tuple[RunPaths, Path]) -> None:
    paths, _ = lived_in
    found = _all(paths)
    kinds = ("plan.json", "state.json", "ana.env", "story.jsonl", "1.000.txt", "d-0-ana.json", "attention.json")
    assert all(any(path.endswith(kind) for path in found) for kind in kinds)
    # The folders keep everybody out; what lies in them is closed as well, in case one is opened or copied.
    opened = [path for path in found if stat.S_IMODE(os.lstat(path).st_mode) & 0o077]
    assert opened == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user; the modes are checked above")
def test_another_user_can_do_nothing_with_any_of_it(lived_in: tuple[RunPaths, Path]) -> None:
    paths, base = lived_in
    asked = [*_all(paths), paths.socket, os.path.dirname(paths.run)]
    done = subprocess.run(
        [sys.executable, "-I", "-c", TRY_ALL],
        input=json.dumps(asked),
        cwd=base,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == []
    assert len(asked) > 30


async def _handle(request: Request) -> Answer:
    return Answer(pid=7, error=request.do)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user; a stand-in is tried below")
async def test_another_user_who_reaches_the_socket_is_not_heard(short_path: Path) -> None:
    heard: list[Request] = []

    async def handle(request: Request) -> Answer:
        heard.append(request)
        return Answer()

    path = short_path / "s"
    os.chmod(short_path, 0o755)
    server = CommandSocket(str(path), handle, lambda: ())
    await server.start()
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        os.chmod(path, 0o666)  # as if a mode had been lost
        asked = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-c", ASK, str(path), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(asked.communicate(), 60)
    finally:
        await server.close()
    assert (asked.returncode, out.strip()) == (0, b"b''")
    assert heard == []


async def test_a_caller_with_another_user_id_is_not_heard(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = CommandSocket(str(short_path / "s"), _handle, lambda: ())
    await server.start()
    mine = os.geteuid()
    try:
        for uid, heard in ((mine, True), (mine + 1, False)):
            monkeypatch.setattr("nbs_fleet.supervisor.commands.os.geteuid", lambda uid=uid: uid)
            reader, writer = await asyncio.open_unix_connection(str(short_path / "s"))
            writer.write(b'{"do": "ping"}\n')
            try:
                said = await asyncio.wait_for(reader.readline(), 30)
            except ConnectionError:
                said = b""
            assert bool(said) is heard
            writer.close()
    finally:
        await server.close()


async def test_a_line_that_nests_without_end_is_answered_and_the_next_one_is_heard(short_path: Path) -> None:
    server = CommandSocket(str(short_path / "s"), _handle, lambda: ())
    await server.start()
    try:
        reader, writer = await asyncio.open_unix_connection(str(short_path / "s"))
        answers = []
        for line in (b"[" * 60_000, b'{"do": "\xff"}', b'{"x": ' * 9_000, b'{"do": "ping"}'):
            writer.write(line + b"\n")
            answers.append(msgspec.json.decode(await asyncio.wait_for(reader.readline(), 30), type=Answer))
        writer.close()
    finally:
        await server.close()
    assert [answer.ok for answer in answers] == [False, False, False, True]


def test_no_socket_of_the_team_is_open_to_others(short_path: Path) -> None:
    """A plain check of what Unix does: a socket without write permission can't be connected to by others."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    short_path.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(short_path / "s"))
        (short_path / "s").chmod(0o600)
        server.listen(1)
        done = subprocess.run(
            [sys.executable, "-I", "-c", ASK, str(short_path / "s")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert "PermissionError" in done.stderr
