"""A message put into a client's own inbox: taken whole, or surely not taken and said why."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.drivers.recipes import TEXT, Command, Lines, MailFolder, Request
from nbs_fleet.launch.inboxes import hand

HARD = '[nbs:d-1] it\'s "so"\n`x` $HOME \\ 😀 \x1b @you'
ENV = {"PATH": "/usr/bin:/bin", "SECRET": "pass"}


async def test_a_program_gets_the_text_as_one_word_and_the_agents_environment(tmp_path: Path) -> None:
    code = "import json, os, sys; json.dump([sys.argv[1:], dict(os.environ), os.getcwd()], open('got', 'w'))"
    inbox = Command((sys.executable, "-c", code, "--message", TEXT), env={"MORE": "1"})
    assert await hand(inbox, HARD, env=ENV, folder=str(tmp_path)) == ""
    argv, environ, folder = json.loads((tmp_path / "got").read_text())
    assert argv == ["--message", HARD]
    assert {**ENV, "MORE": "1"}.items() <= environ.items()
    assert folder == tmp_path.as_posix()


async def test_a_program_that_fails_or_is_not_there_has_not_taken_it(tmp_path: Path) -> None:
    failing = Command((sys.executable, "-c", "print('no such thread'); raise SystemExit(3)", TEXT))
    assert (await hand(failing, "x", env=ENV, folder=str(tmp_path))).endswith("ended with 3: no such thread")
    assert "No such file" in await hand(Command(("/nowhere", TEXT)), "x", env=ENV, folder=str(tmp_path))


async def test_a_program_that_never_answers_may_have_taken_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbs_fleet.launch.inboxes.SECONDS", 0.2)
    slow = Command((sys.executable, "-c", "import time; time.sleep(60)", TEXT))
    assert await hand(slow, "x", env=ENV, folder=str(tmp_path)) == ""


async def test_a_line_is_appended_whole_to_a_file_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "in"
    inbox = Lines(str(path), {"type": "submit", "text": TEXT})
    assert "No such file" in await hand(inbox, HARD, env=ENV, folder="/")
    assert not path.exists()
    path.write_text('{"old": 1}\n')
    assert await hand(inbox, HARD, env=ENV, folder="/") == ""
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"old": 1},
        {"type": "submit", "text": HARD},
    ]


class Server(HTTPServer):
    status = 204
    got: list[tuple[str, str | None, Any]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.got.append((self.path, self.headers.get("authorization"), body))
        self.send_response(self.server.status)
        self.end_headers()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.got = []
    thread = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield made
    made.shutdown()
    thread.join(10)
    made.server_close()


async def test_a_server_on_loopback_is_asked_with_the_agents_password(server: Server) -> None:
    url = f"http://127.0.0.1:{server.server_port}/session/s/prompt"
    inbox = Request(url, {"parts": [{"type": "text", "text": TEXT}]}, user="me", password_env="SECRET")
    assert await hand(inbox, HARD, env=ENV, folder="/") == ""
    signed = "Basic " + base64.b64encode(b"me:pass").decode()
    assert server.got == [("/session/s/prompt", signed, {"parts": [{"type": "text", "text": HARD}]})]
    server.status = 401
    assert await hand(inbox, HARD, env=ENV, folder="/") == "its server said 401"


async def test_no_other_machine_is_ever_asked_and_a_dead_server_has_not_taken_it() -> None:
    assert await hand(Request("http://192.0.2.1/x", {}), "x", env=ENV, folder="/") == "its inbox is not on this machine"
    assert "can't be reached" in await hand(Request("http://127.0.0.1:9/x", {}), "x", env=ENV, folder="/")
    assert await hand(MailFolder(), "x", env=ENV, folder="/")
