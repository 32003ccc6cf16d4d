"""Text that tmux would take for a format (`#(command)`, `#{...}`, `%H`) is text, in titles, messages and paths."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nbs_fleet.launch.layout import conf
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.plan.wrappers import key_script, segment_script
from nbs_fleet.spec.team import Layout
from tests.support.servers import Person, Server
from tests.support.waiting import eventually

pytestmark = pytest.mark.tmux

People = Callable[..., Person]


def _attached(server: Server, person: People) -> Person:
    return person(["tmux", "-S", str(server.tmux.socket), "attach", "-t", "=team"])


def test_a_title_runs_nothing_and_shows_itself(server: Server, person: People) -> None:
    evil = server.folder / "evil"
    hostile = f"#{{pid}}#(>{evil})"
    pane = server.up(["ana"], f"printf '\\033]2;%s\\007' '{hostile}'\nexec sleep 1000\n")["ana"]
    eventually(lambda: server.ours()["ana"].title == hostile)
    looking = _attached(server, person)
    server.tmux.run("select-window", "-t", pane.window_id)
    seen = bytearray()

    def shown() -> bool:
        seen.extend(looking.read())
        return b"#{pid}" in seen

    eventually(shown)
    server.tmux.run("refresh-client", "-S")
    # A job that tmux had begun would have been begun before its status line was drawn once more.
    server.tmux.run("run-shell", "true")
    assert not evil.exists()


def test_what_a_key_says_is_text(server: Server, person: People, short_path: Path) -> None:
    _attached(server, person)
    evil = short_path / "evil"
    text = f"a1: ana has no pane (permission: Bash: #(touch {evil}) 100% #{{pid}} %H)"
    fleet = short_path / "fleet"
    fleet.write_text(f"#!/bin/sh\nprintf '%s' '{text}' >&2\nexit 1\n")
    fleet.chmod(0o700)
    key = short_path / "key"
    key.write_text(key_script(str(fleet), "/r/team.yaml", {}))
    key.chmod(0o700)
    client = server.tmux.run("list-clients", "-F", "#{client_name}").split()[0]
    environ = {**server.environ, "TMUX": f"{server.tmux.socket},1,0"}
    subprocess.run([str(key), "next", client], env=environ, check=True, timeout=30)
    messages = server.tmux.run("show-messages")
    assert text in messages
    server.tmux.run("run-shell", "true")
    assert not evil.exists()


def test_the_status_line_finds_its_program_whatever_the_path_is_called(short_path: Path) -> None:
    folder = short_path / "a %H #{pid} b"
    folder.mkdir()
    (folder / "waiting").write_text(f"{os.getpid()} 0 3\n")
    segment = folder / "segment"
    segment.write_text(segment_script(str(folder / "waiting")))
    segment.chmod(0o700)
    (folder / "home" / ".config").mkdir(parents=True)
    (folder / "tmux.conf").write_text(conf(Layout(), "team", str(folder)))
    tmux = Tmux(str(short_path / "s"), str(folder / "tmux.conf"))
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "SHELL": "/bin/sh"}
    tmux.start("team", (80, 24), ["sleep", "1000"], environ)
    looking = Person(["tmux", "-S", str(tmux.socket), "attach", "-t", "=team"], environ)
    seen = bytearray()

    def shown() -> bool:
        seen.extend(looking.read())
        # The process that the file names did not begin at that time.
        return b"down " in seen

    try:
        eventually(shown)
    finally:
        looking.leave()
        tmux.kill_server()
