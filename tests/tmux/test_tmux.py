from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from nbs_fleet.launch import processes
from nbs_fleet.launch.layout import PaneWanted, start_lines
from nbs_fleet.launch.proctable import LinuxTable
from nbs_fleet.launch.tmux import client_environ
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.spec.team import Layout
from tests.support.servers import Person, Server
from tests.support.waiting import eventually

pytestmark = pytest.mark.tmux

Make = Callable[..., Server]


def ended(server: Server, handle: str) -> Pane | None:
    pane = server.ours()[handle]
    if not pane.dead or (pane.status is None and pane.signal is None):
        server.tmux.nudge_sigchld(drained=pane.dead)
        return None
    return pane


# Starting many


@pytest.mark.parametrize("per_window", [1, 10])
def test_fifty_panes_are_up_after_one_call(make: Make, per_window: int) -> None:
    server = make(Layout(panes_per_window=per_window))
    server.start()
    found = server.up([f"agent-{number}" for number in range(50)], per_window=per_window)
    assert len(found) == 50
    assert all(processes.identify(pane.pid) for pane in found.values())
    assert len({pane.window_id for pane in found.values()}) == 50 // per_window
    assert {pane.team for pane in found.values()} == {"team"}


def test_more_commands_than_one_message_to_tmux_holds_are_fine(server: Server) -> None:
    long = "x" * 60
    found = server.up([f"{long}-{number}" for number in range(60)])
    assert len(found) == 60


def test_the_client_is_the_process_of_the_pane_and_no_login_shell_is_in_between(make: Make) -> None:
    server = make()
    (server.home / ".profile").write_text("sleep 1000\n")
    (server.home / "rc").write_text("sleep 1000\n")
    server.start(SHELL="/bin/bash", ENV=str(server.home / "rc"), BASH_ENV=str(server.home / "rc"))
    pane = server.up(["ana"], "echo up\nexec cat\n")["ana"]
    eventually(lambda: server.tmux.capture(pane.id)[0] == "up")
    eventually(lambda: server.ours()["ana"].command == "cat")
    assert server.ours()["ana"].pid == pane.pid
    assert processes.ancestry(pane.pid)[1].pid == server.tmux.server_pid()


@pytest.mark.parametrize("name", ["a b'c\"d$e`f;g#{h}", "ünï 🙂", "-n", "%1", "~"])
def test_any_path_is_a_path(make: Make, name: str) -> None:
    server = make(name=name)
    server.start()
    pane = server.up(["ana"], "printf '%s\\n' \"$0\"\nexec sleep 1000\n")["ana"]
    path = str(server.folder / "ana.sh")
    eventually(lambda: server.tmux.capture(pane.id)[0] == path)


def test_a_path_of_two_hundred_characters_is_a_path(make: Make, tmp_path: Path) -> None:
    server = make()
    server.folder = tmp_path / ("x" * 200)
    server.folder.mkdir()
    server.start()
    pane = server.up(["ana"], "echo up\nexec sleep 1000\n")["ana"]
    eventually(lambda: server.tmux.capture(pane.id)[0] == "up")


# What a person may want


WISHES = """
set -g base-index 1
setw -g pane-base-index 1
set -g renumber-windows on
set -g prefix C-a
set -g remain-on-exit off
set -g automatic-rename on
set -g window-size manual
set -g default-size 20x5
set -g exit-unattached on
set -g destroy-unattached on
set -g synchronize-panes on
set -g allow-rename on
"""


def test_no_wish_of_a_person_breaks_the_fleet(make: Make) -> None:
    server = make(Layout(panes_per_window=3), WISHES)
    server.start()
    found = server.up([f"agent-{number}" for number in range(12)], "exit 3\n", per_window=3)
    assert len(found) == 12
    assert server.tmux.run("show-options", "-gv", "prefix") == "C-a\n"
    assert server.tmux.run("show-options", "-gv", "base-index") == "1\n"
    assert server.show("#{window_width}x#{window_height}") == "200x50"
    pane = eventually(lambda: ended(server, "agent-11"))
    assert (pane.window, pane.status) == ("agents-3", 3)
    assert [p.handle for p in server.tmux.panes() if p.window == "agents-1"] == ["agent-3", "agent-4", "agent-5"]


def test_a_persons_file_with_mistakes_keeps_nothing_from_working(make: Make) -> None:
    server = make(wishes="set -g prefix C-a\nnonsense-command\n")
    server.start()
    server.up(["ana"], "exit 3\n")
    assert eventually(lambda: ended(server, "ana")).status == 3


def test_windows_that_moved_were_renamed_or_closed_by_a_person_confuse_nothing(server: Server) -> None:
    first = server.up(["ana", "bo", "cy"])
    server.tmux.run("rename-window", "-t", first["ana"].window_id, "bo")
    server.tmux.run("new-window", "-d", "-t", "=team:", "-n", "dora", "--", "sleep", "1000")
    server.tmux.run("move-window", "-r", "-t", "=team:")
    server.tmux.kill_pane(first["cy"].id)
    second = server.up(["ana", "bo", "cy", "dora"])
    assert (second["ana"].pid, second["bo"].pid) == (first["ana"].pid, first["bo"].pid)
    assert second["cy"].pid != first["cy"].pid
    assert second["dora"].window == "dora"
    assert [pane.handle for pane in server.tmux.panes() if pane.window == "dora"] == ["", "dora"]


def test_a_start_moves_nobody_who_looks_on(server: Server, person: Callable[..., Person]) -> None:
    server.layout = Layout(panes_per_window=4)
    panes = server.up(["a", "b"], per_window=4)
    person(server.tmux.attach_argv(panes["b"].id))
    before = server.show("#{window_id} #{pane_id}")
    assert before.endswith(panes["b"].id)
    server.up(list("abcdefgh"), per_window=4)
    assert server.show("#{window_id} #{pane_id}") == before


def test_in_a_terminal_too_small_for_tiles_every_agent_runs_all_the_same(
    server: Server, person: Callable[..., Person]
) -> None:
    server.layout = Layout(panes_per_window=10)
    fleet = next(pane for pane in server.tmux.panes() if pane.window == "fleet")
    person(server.tmux.attach_argv(fleet.id), columns=20, rows=8)
    found = server.up([f"agent-{number}" for number in range(10)], per_window=10)
    assert len(found) == 10
    assert 1 < len({pane.window_id for pane in found.values()}) <= 10
    assert not any(pane.dead for pane in found.values())


# Deaths


def test_every_exit_status_is_read_after_a_kill(server: Server) -> None:
    handles = [f"agent-{number}" for number in range(20)]
    found = server.up(handles)
    for pane in found.values():
        os.kill(pane.pid, signal.SIGKILL)
    for handle in handles:
        pane = eventually(lambda handle=handle: ended(server, handle))  # type: ignore[misc]  # a default binds it
        assert (pane.status, pane.signal) == (None, 9)


COUNTS = (
    "stty -echo\ni=0; while [ $i -lt {rows} ]; do i=$((i+1)); echo row $i; done\nprintf 'last words'\nread x\nexit 7\n"
)
"""Ends only when told: tmux itself loses what is printed in the very moment of an end (a few of a hundred)."""


def end_politely(server: Server, handle: str) -> Pane:
    pane = server.ours()[handle]
    eventually(lambda: "last words" in server.tmux.capture(pane.id))
    server.tmux.run("send-keys", "-t", pane.id, "Enter")
    return eventually(lambda: ended(server, handle))


def test_the_last_screen_of_the_dead_is_as_they_left_it(server: Server) -> None:
    server.up(["ana"], COUNTS.format(rows=49))
    pane = end_politely(server, "ana")
    assert pane.status == 7
    assert server.tmux.capture(pane.id) == (*(f"row {number}" for number in range(1, 50)), "last words")


def test_history_above_the_screen_can_be_captured(server: Server) -> None:
    server.up(["ana"], COUNTS.format(rows=80))
    pane = end_politely(server, "ana")
    assert server.tmux.capture(pane.id)[0] == "row 32"
    assert server.tmux.capture(pane.id, history=10)[0] == "row 22"
    assert server.tmux.capture(pane.id, history=1000)[0] == "row 1"


def test_a_client_whose_child_keeps_the_terminal_is_respawned_when_said_to_be_dead(server: Server) -> None:
    first = server.up(["ana"], "trap '' HUP; sleep 1000 &\nexit 0\n")["ana"]
    eventually(lambda: not processes.identify(first.pid) or (server.tmux.nudge_sigchld() and not _lives(first.pid)))
    server.folder.joinpath("ana.sh").write_text("echo again\nexec sleep 1000\n")
    known = [replace(pane, dead=True) if pane.handle else pane for pane in server.tmux.panes()]
    wanted = PaneWanted("ana", "ana", 0, str(server.folder / "ana.sh"))
    server.tmux.source(start_lines("team", [wanted], known, server.layout))
    eventually(lambda: server.tmux.capture(first.id)[0] == "again")
    assert server.ours()["ana"].pid != first.pid
    # What ignores HUP outlives even its tmux: the end of this test has to see to it.
    (orphan,) = [row.proc for row in LinuxTable().rows() if row.session == first.pid and not row.zombie]
    assert processes.send_signal(orphan, "KILL")


def _lives(pid: int) -> bool:
    proc = processes.identify(pid)
    return proc is not None and processes.alive(proc)


# Surroundings


def test_two_servers_do_not_see_each_other(make: Make) -> None:
    one, two = make(), make()
    one.start()
    two.start()
    one.up(["ana"])
    two.up(["bo"])
    assert (list(one.ours()), list(two.ours())) == (["ana"], ["bo"])
    one.tmux.kill_server()
    assert list(two.ours()) == ["bo"]


def test_the_callers_own_tmux_is_never_touched(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    outer, inner = make(), make()
    outer.start()
    outside = outer.tmux.panes()
    monkeypatch.setenv("TMUX", f"{outer.tmux.socket},{outer.tmux.server_pid()},0")
    monkeypatch.setenv("TMUX_PANE", outside[0].id)
    inner.start(TMUX=os.environ["TMUX"], TMUX_PANE=outside[0].id)
    pane = inner.up(["ana"], 'echo "$TMUX"\nexec sleep 1000\n')["ana"]
    eventually(lambda: inner.tmux.capture(pane.id)[0].startswith(inner.tmux.socket))
    assert outer.tmux.panes() == outside


def test_glyphs_survive_a_c_locale(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANG", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", "C")
    server = make()
    server.start(LC_ALL="C")
    pane = server.up(["ana"], "printf '\\033]2;✳ a\\tb | c\\007⏺ 🙂\\n'\nexec sleep 1000\n")["ana"]
    eventually(lambda: server.tmux.capture(pane.id)[0] == "⏺ 🙂")
    assert server.ours()["ana"].title.startswith("✳ a")
    assert server.ours()["ana"].title.endswith("b | c")


def test_agents_get_the_environment_that_was_given_and_nothing_of_the_caller(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    server = make()
    server.start(GIVEN="yes")
    pane = server.up(["ana"], 'echo "[$CLAUDECODE] [$GIVEN]"\nexec sleep 1000\n')["ana"]
    eventually(lambda: server.tmux.capture(pane.id)[0] == "[] [yes]")
    assert "CLAUDECODE" not in processes.environ_of(pane.pid)


def test_who_attaches_brings_none_of_their_environment(server: Server, person: Callable[..., Person]) -> None:
    pane = server.up(["ana"])["ana"]
    server.environ["SSH_AUTH_SOCK"] = "/persons/agent"
    person(server.tmux.attach_argv(pane.id))
    again = server.up(["bo"])["bo"]
    assert "SSH_AUTH_SOCK" not in processes.environ_of(again.pid)


def test_the_environment_of_a_call_is_utf8_and_outside_of_tmux() -> None:
    assert client_environ({"TMUX": "x", "TMUX_PANE": "%1", "LC_ALL": "C", "A": "b"}) == {
        "A": "b",
        "LC_CTYPE": "C.UTF-8",
    }
    assert client_environ({"LC_ALL": "de_DE.UTF-8"}) == {"LC_ALL": "de_DE.UTF-8"}
    assert client_environ({"LANG": "C.utf8", "LC_CTYPE": "POSIX"}) == {"LANG": "C.utf8", "LC_CTYPE": "C.UTF-8"}
