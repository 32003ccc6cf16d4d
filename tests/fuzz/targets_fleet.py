"""What the fleet itself keeps and hears: the command socket, answers of a supervisor, stories, records, messages."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
from hypothesis import strategies as st

from nbs_fleet.attention import keeper
from nbs_fleet.attention.queue import Queue
from nbs_fleet.cli import stories
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import deployment, given, messages
from nbs_fleet.model import AgentState, Delivered, Message, Outcome, ProcId
from nbs_fleet.plan.paths import AgentPaths, RunPaths
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.sidecar import sources
from nbs_fleet.sidecar.replay import replay
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.client import Connection
from nbs_fleet.supervisor.commands import MAX_LINE, CommandSocket
from nbs_fleet.supervisor.protocol import Answer, Request
from tests.fuzz.inputs import of_bytes, of_json
from tests.fuzz.target import Target, told
from tests.fuzz.targets_team import seeds
from tests.support.cli_world import agent, call, make_team

READERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "plan.json": (("ps",), ("queue",), ("why", "ana"), ("inbox", "list", "ana")),
    "state.json": (("ps", "--json"), ("why", "ana"), ("ls",)),
    "attention.json": (("queue",),),
    "d-0-1.json": (("inbox", "list", "ana"), ("inbox", "show", "d-0-1", "--json")),
    "story.jsonl": (("logs",), ("logs", "ana", "--json")),
    "team.json": (("ls",),),
    "2.000.txt": (("peek", "ana"),),
}
"""Commands that read a file of the run directory."""
RECORD = AgentRecord(
    "ana", state=AgentState.IDLE, proc=ProcId(4_000_000, 7), pane="%1", session_id="u", since=1.5, detail="x"
)
MESSAGE = Message("d-0-1", "ana", "bo", "hello", 1_777_000_000.0)
REQUESTS = tuple(
    msgspec.json.encode(request)
    for request in (
        Request("ping"),
        Request("follow"),
        Request("apply", handles=("ana",), now=True, up=True),
        Request("restart", handles=("ana",), fresh=True),
        Request("answer", item="a1", choice="1", text="yes", until=2.5),
    )
)


class Server:
    """A command socket in a thread of its own, as the supervisor has it."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="nf-", dir="/tmp")
        self.path = os.path.join(self.folder, "s")
        self.faults: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _loop, context: self.faults.append(str(context)))
        started = threading.Event()
        threading.Thread(target=self._run, args=(started,), daemon=True).start()
        started.wait(30)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._socket = CommandSocket(self.path, self._answer, lambda: (Answer(record=RECORD),))
        self._loop.run_until_complete(self._socket.start())
        started.set()
        self._loop.run_forever()

    async def _answer(self, request: Request) -> Answer:
        return Answer(pid=7, error=request.do)


_SERVER: list[Server] = []


def _server() -> Server:
    if not _SERVER:
        _SERVER.append(Server())
    return _SERVER[0]


def _asked(data: bytes) -> None:
    """Whatever comes in, the next one to ask is answered, and nothing breaks behind."""
    server = _server()
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(10)
        link.connect(server.path)
        try:
            link.sendall(data + b"\n")
            link.shutdown(socket.SHUT_WR)
            lines = _all(link).splitlines()
        except ConnectionError:
            lines = []
    requests = [line for line in data.split(b"\n") if line]
    follows = any(b"follow" in line for line in requests)
    too_long = any(len(line) > MAX_LINE for line in data.split(b"\n"))
    for line in lines:
        msgspec.json.decode(line, type=Answer)
    assert follows or too_long or len(lines) == data.count(b"\n") + 1, lines
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(10)
        link.connect(server.path)
        link.sendall(REQUESTS[0] + b"\n")
        assert msgspec.json.decode(link.recv(1000), type=Answer).pid == 7
    assert not server.faults, server.faults.pop()


def _all(link: socket.socket) -> bytes:
    found = b""
    while part := link.recv(65_536):
        found += part
    return found


def _answered(data: bytes) -> None:
    """A command whose supervisor answers nonsense."""
    with tempfile.TemporaryDirectory(prefix="nf-", dir="/tmp") as folder:
        paths = RunPaths(folder, folder, os.path.join(folder, "s"), os.path.join(folder, "t"))
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(paths.socket)
            server.listen(1)
            link = Connection(paths, timeout=5)
            other, _ = server.accept()
            with other:
                other.sendall(data[:100_000])
                other.shutdown(socket.SHUT_WR)
                try:
                    link.ask(Request("follow"))
                    for change in link.changes(5):
                        told(change)
                finally:
                    link.close()


def _story(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
        path = os.path.join(folder, "story.jsonl")
        Path(path).write_bytes(data)
        found = stories.last({"ana": path}, 0)
        assert len(stories.last({"ana": path}, 3)) == min(3, len(found))
        tail = stories.Tail(path, from_start=True)
        assert len(tail.read()) <= len(found)
        tail.close()
        told(replay(line.entry for line in found))


def _in_run(name: str) -> Callable[[bytes], None]:
    """A file of the run directory that says something else than what was written: all that reads it goes on."""

    def tried(data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
            environ = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "XDG_RUNTIME_DIR": f"{folder}/none"}
            before = dict(os.environ)
            os.environ.update(environ)
            here = os.getcwd()
            try:
                paths = make_team(Path(folder) / "r", "crew", (agent("ana"),), environ)
                store.write_record(paths, RECORD)
                own = paths.agent("ana")
                Path(own.queue, "d-0-1.json").write_bytes(msgspec.json.encode(MESSAGE))
                Path(own.captures, "1.000.txt").write_text("screen\n")
                Path(own.story).write_bytes(b'{"at": 1.0, "what": "started"}\n')
                Path(paths.run, name).write_bytes(data)
                os.chdir(f"{folder}/r")
                _read_all(paths, own)
                _commands(name)
            finally:
                os.chdir(here)
                os.environ.clear()
                os.environ.update(before)

    return tried


def _read_all(paths: RunPaths, own: AgentPaths) -> None:
    """What the supervisor reads when it begins."""
    told(store.read_records(paths))
    told(keeper.read(paths.attention))
    told(sources.read_signal(own.signal))
    box = messages.Mailbox(own)
    box.tidy()
    told(box.waiting())
    box.damaged()
    told(box.archived(10))
    box.typed_last()
    given.kept(own, "session")
    _deployed(paths.run)


def _deployed(run: str) -> None:
    """The list of what was put into people's files: read, or refused in words."""
    with contextlib.suppress(FleetError):
        deployment.read(run)


def _commands(name: str) -> None:
    """The commands that read this file end in the product's own words."""
    for argv in READERS.get(os.path.basename(name), ()):
        said = call(*argv)
        assert "this is a bug" not in said.err, f"{argv}: {said.err}"
        assert said.code in (0, 1, 4), f"{argv}: {said.code} {said.err}"
        assert "\x1b" not in said.out + said.err, argv


FILES: dict[str, tuple[str, bytes]] = {
    "state.json": ("agents/ana/state.json", msgspec.json.encode(RECORD)),
    "attention.json": ("attention.json", msgspec.json.encode(Queue(number=3))),
    "message": ("agents/ana/queue/d-0-1.json", msgspec.json.encode(MESSAGE)),
    "archived": (
        "agents/ana/archive/d-0-1.json",
        msgspec.json.encode(Delivered(MESSAGE, Outcome.DELIVERED, 1_777_000_001.0, "mail", "prompt")),
    ),
    "signal": ("agents/ana/signal.json", b'{"kind": "complete", "message": "done", "at": 1777000000.0}'),
    "given": ("agents/ana/given.json", b'{"d-0-1": "session"}'),
    "deployed": (
        "deployed.json",
        b'{"entries": [{"type": "Made", "path": "/r/x", "text": "", "handles": ["ana"]}], "version": 1}',
    ),
    "team.json": ("team.json", b'{"schema": 1, "team": "crew", "root": "/r", "made_nbs": true}'),
    "captures": ("agents/ana/captures/2.000.txt", b"> ready\n\x1b[31mred\n"),
    "agent-story": (
        "agents/ana/story.jsonl",
        b'{"at": 1.0, "what": "started"}\n{"at": 2, "what": "died", "text": "x"}\n',
    ),
}


def _plan_seed() -> bytes:
    """A plan as `up` writes it."""
    with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
        environ = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "XDG_RUNTIME_DIR": f"{folder}/none"}
        return Path(make_team(Path(folder) / "r", "crew", (agent("ana"),), environ).plan).read_bytes()


def targets() -> tuple[Target, ...]:
    """The targets of this module."""
    answers = (
        msgspec.json.encode(Answer(pid=7, since=1.5)) + b"\n" + msgspec.json.encode(Answer(record=RECORD)) + b"\n",
        msgspec.json.encode(Answer(queue=Queue(number=3), complete=True)) + b"\n",
        msgspec.json.encode(Answer(ok=False, error="no")) + b"\n",
    )
    told_of = (*seeds("tests/fuzz/seeds/*.jsonl"), FILES["agent-story"][1])
    return (
        Target(
            "socket",
            "requests to the supervisor's socket",
            lambda: st.one_of(of_bytes(REQUESTS), of_json(REQUESTS), of_json(REQUESTS, lines=True)),
            _asked,
        ),
        Target(
            "answers",
            "a supervisor's answers",
            lambda: st.one_of(of_bytes(answers), of_json(answers, lines=True)),
            _answered,
        ),
        Target(
            "story",
            "a story, read backwards, followed and replayed",
            lambda: st.one_of(of_json(told_of, lines=True), of_bytes(told_of)),
            _story,
        ),
        *(
            Target(
                f"run-{name}",
                f"{place} in the run directory",
                lambda seed=seed: st.one_of(of_json((seed,)), of_bytes((seed,))),  # type: ignore[misc]
                _in_run(place),
            )
            for name, (place, seed) in FILES.items()
        ),
        Target(
            "run-plan.json",
            "plan.json in the run directory",
            lambda: st.one_of(of_json((_plan_seed(),)), of_bytes((_plan_seed(),))),
            _in_run("plan.json"),
        ),
    )
