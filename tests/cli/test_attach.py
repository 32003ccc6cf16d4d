"""attach: from outside, from inside the team's tmux, from inside another, and where there is no terminal."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nbs_fleet.cli import attach
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.plan.paths import RunPaths
from tests.support.cli_world import agent, call, make_team
from tests.support.waiting import eventually


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return make_team(tmp_path / "root", "review", (agent("ana"), agent("bo")))


def test_outside_and_inside_another_tmux_it_attaches() -> None:
    tmux = Tmux("/run/team.sock")
    for environ in ({}, {"TMUX": "/tmp/tmux-0/default,12,0"}):
        assert attach.command(tmux, "%3", environ=environ, read_only=False) == tmux.attach_argv("%3")
    assert attach.command(tmux, "%3", environ={}, read_only=True) == tmux.attach_argv("%3", read_only=True)


def test_inside_the_team_s_tmux_it_switches() -> None:
    tmux = Tmux("/run/a,b.sock")
    inside = {"TMUX": "/run/a,b.sock,12,0"}
    assert attach.command(tmux, "%3", environ=inside, read_only=False) == tmux.argv("switch-client", "-t", "%3")
    locked = attach.command(tmux, "%3", environ=inside, read_only=True)
    assert locked[-3:] == ["switch-client", "-t", "%3"]
    assert "#{client_readonly}" in locked


@pytest.fixture
def server(paths: RunPaths) -> Iterator[Tmux]:
    """The team's tmux server with one pane, marked as ana's."""
    tmux = Tmux(paths.tmux)
    show = f"printf hello; tmux -S {shlex.quote(paths.tmux)} wait-for -S shown; exec cat"
    tmux.start("review", (40, 6), ["sh", "-c", show], os.environ)
    try:
        tmux.run("wait-for", "shown")
        tmux.run("set-option", "-p", "-t", tmux.panes()[0].id, "@nbs_handle", "ana")
        yield tmux
    finally:
        tmux.kill_server()


@pytest.mark.tmux
def test_without_a_terminal_the_command_is_printed(server: Tmux, paths: RunPaths) -> None:
    pane = server.panes()[0].id
    said = call("attach", "ana")
    assert (said.code, said.err) == (0, "")
    assert shlex.split(said.out) == server.attach_argv(pane)
    assert call("attach", "bo").code == 1


@pytest.mark.tmux
def test_peek_shows_the_pane_as_it_is(server: Tmux) -> None:
    said = call("peek", "ana")
    assert said.out.splitlines()[0] == "hello"
    assert said.err == f"ana: its screen now ({server.panes()[0].id})\n"


@pytest.fixture
def person(server: Tmux, short_path: Path) -> Iterator[Tmux]:
    """A second tmux server plays the person's terminal."""
    outer = Tmux(str(short_path / "outer.sock"))
    outer.start("person", (60, 12), ["sh", "-i"], {**os.environ, "PS1": "$ "})
    try:
        yield outer
    finally:
        outer.kill_server()


def typed(person: Tmux, line: str) -> None:
    person.run("send-keys", "-t", person.panes()[0].id, "-l", line)
    person.run("send-keys", "-t", person.panes()[0].id, "Enter")


NBS_FLEET = shlex.join([sys.executable, "-m", "nbs_fleet"])


@pytest.mark.tmux
@pytest.mark.parametrize("option", ["", "--read-only"])
def test_in_a_terminal_inside_another_tmux_it_attaches(server: Tmux, person: Tmux, option: str) -> None:
    typed(person, f"{NBS_FLEET} attach ana {option}")
    eventually(server.clients)
    assert server.run("list-clients", "-F", "#{client_readonly}").strip() == ("1" if option else "0")


@pytest.mark.tmux
def test_inside_the_team_s_own_tmux_it_goes_to_the_pane(server: Tmux, person: Tmux) -> None:
    typed(person, call("attach", "ana").out.strip())
    eventually(server.clients)
    ana = server.panes()[0]
    server.run("new-window", f"exec {NBS_FLEET} attach ana --read-only")
    shown = "#{pane_id} #{client_readonly}"
    eventually(lambda: server.run("list-clients", "-F", shown).strip() == f"{ana.id} 1" or None)
