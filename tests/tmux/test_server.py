from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nbs_fleet.errors import MissingError, TmuxError
from nbs_fleet.launch import processes
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.spec.team import Layout
from tests.support import private
from tests.support.servers import Person, Server
from tests.support.waiting import eventually

pytestmark = pytest.mark.tmux

Make = Callable[..., Server]


# The server's own life


def test_a_session_started_while_the_old_server_dies_is_not_lost(make: Make) -> None:
    server = make()
    for _ in range(10):
        server.start()
        server.up(["ana", "bo"])
        subprocess.run(server.tmux.argv("kill-server"), check=True, timeout=20)
        server.start()
        assert [pane.window for pane in server.tmux.panes()] == ["fleet"]
        server.tmux.kill_server()


def test_the_socket_of_a_server_that_was_killed_is_in_nobodys_way(server: Server) -> None:
    pid = server.tmux.server_pid()
    assert pid
    proc = processes.identify(pid)
    assert proc
    os.kill(pid, signal.SIGKILL)
    assert processes.wait_exit(proc, 20)
    assert os.path.exists(server.tmux.socket)
    assert (server.tmux.server_pid(), server.tmux.panes()) == (None, ())
    assert not server.tmux.has_session("team")
    server.start()
    assert server.tmux.server_pid() != pid


def test_a_socket_that_a_dead_server_s_child_still_holds_is_no_server(tmp_path: Path, short_path: Path) -> None:
    path = short_path / "held"
    code = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
        "if os.fork(): os._exit(0)\n"
        "os.write(1, b'x'); os.read(0, 1)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert holder.stdin
    assert holder.stdout
    try:
        assert holder.stdout.read(1) == b"x"
        holder.wait(20)
        with socket.socket(socket.AF_UNIX) as proof:
            proof.connect(str(path))
        assert Tmux(str(path), str(tmp_path / "none.conf")).server_pid() is None
    finally:
        holder.stdin.close()
        holder.stdout.close()


def test_a_server_that_hangs_is_an_error_in_bounded_time_and_can_be_ended(server: Server) -> None:
    pid = server.tmux.server_pid()
    assert pid
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(TmuxError, match=r"tmux list-windows: no answer within 0\.2 s"):
        server.tmux.run("list-windows", timeout=0.2)
    assert server.tmux.server_pid() == pid
    server.tmux.kill_server(timeout=0.4)
    assert time.monotonic() - began < 15
    assert server.tmux.server_pid() is None
    assert not os.path.exists(server.tmux.socket)


def test_a_socket_that_was_removed_is_made_again(server: Server) -> None:
    pid = server.tmux.server_pid()
    assert pid
    os.unlink(server.tmux.socket)
    assert server.tmux.server_pid() is None
    server.tmux.mend_socket(pid)
    eventually(lambda: server.tmux.server_pid() == pid)


def test_a_server_whose_socket_was_removed_is_found_all_the_same(server: Server) -> None:
    pid = server.tmux.server_pid()
    os.unlink(server.tmux.socket)
    assert server.tmux.find_server() == pid
    assert server.tmux.server_pid() == pid


def test_where_no_server_runs_none_is_found(server: Server) -> None:
    server.tmux.kill_server()
    assert server.tmux.find_server() is None


def test_errors_name_the_subcommand(server: Server) -> None:
    with pytest.raises(TmuxError, match=r"^tmux kill-window: can't find window"):
        server.tmux.run("kill-window", "-t", "@99")
    with pytest.raises(TmuxError, match=r"^tmux source-file: "):
        server.tmux.source(["no-such-command"])
    for bad in ("fleet", "team:0", "@"):
        with pytest.raises(ValueError, match="not a window id"):
            server.tmux.kill_window(bad)


def test_a_line_that_can_not_be_parsed_keeps_all_from_running(server: Server) -> None:
    with pytest.raises(TmuxError, match="unknown command"):
        server.tmux.source(["new-window -d -t =team: -n x -- sleep 1000", "no-such-command"])
    assert [pane.window for pane in server.tmux.panes()] == ["fleet"]


def test_without_a_server_every_call_but_looks_is_an_error(make: Make) -> None:
    server = make()
    with pytest.raises(TmuxError, match=r"tmux list-windows: error connecting|no server"):
        server.tmux.run("list-windows")
    assert server.tmux.source([]) == []
    assert not os.path.exists(server.tmux.socket)


def test_a_socket_of_something_else_is_not_taken_for_a_server(make: Make) -> None:
    server = make()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(server.tmux.socket)
        assert server.tmux.server_pid() is None


def test_a_machine_without_tmux_is_told_so(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = make()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert server.tmux.version() is None
    with pytest.raises(MissingError, match="tmux is not installed"):
        server.tmux.panes()
    monkeypatch.undo()


def test_the_version_is_read(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    version = server.tmux.version()
    assert version
    assert version >= (3, 2)
    with monkeypatch.context() as patch:
        fake = tmp_path / "tmux"
        fake.write_text("#!/bin/sh\necho 'tmux next-3.6'\n")
        fake.chmod(0o755)
        patch.setenv("PATH", f"{tmp_path}:{private.SYSTEM_PATH}")
        assert server.tmux.version() == (3, 6)


def test_no_process_is_left_by_a_killed_server(server: Server) -> None:
    found = server.up(["ana", "bo"])
    server.tmux.kill_server()
    procs = [proc for pane in found.values() if (proc := processes.identify(pane.pid))]
    eventually(lambda: not any(processes.alive(proc) for proc in procs))
    assert not os.path.exists(server.tmux.socket)


# People


def test_attaching_shows_that_pane(server: Server, person: Callable[..., Person]) -> None:
    server.layout = Layout(panes_per_window=2)
    panes = server.up(["a", "b", "c", "d"], "echo I am $0\nexec sleep 1000\n", per_window=2)
    person(server.tmux.attach_argv(panes["d"].id))
    assert server.show("#{pane_id}") == panes["d"].id
    (tty,) = server.tmux.clients()
    server.tmux.switch(tty, panes["a"].id)
    assert server.show("#{pane_id}") == panes["a"].id


def test_the_status_line_has_no_timer_while_nobody_sees_it(server: Server, person: Callable[..., Person]) -> None:
    server.tmux.run("set", "-g", "status-interval", "7")
    pane = server.up(["ana"])["ana"]
    assert server.show("#{status-interval}") == "0"
    argv = server.tmux.argv("-C", "attach-session", "-t", "=team")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as control:
        eventually(lambda: server.show("#{session_attached}") == "1")
        assert server.show("#{status-interval}") == "0"
        one, two = (person(server.tmux.attach_argv(pane.id)) for _ in range(2))
        eventually(lambda: server.show("#{status-interval}") == "7")
        one.leave()
        eventually(lambda: server.show("#{session_attached}") == "2")
        assert server.show("#{status-interval}") == "7"
        two.leave()
        eventually(lambda: server.show("#{status-interval}") == "0")
        control.terminate()


def test_who_only_reads_can_not_type(server: Server, person: Callable[..., Person]) -> None:
    pane = server.up(["ana"], "exec cat\n")["ana"]
    reader = person(server.tmux.attach_argv(pane.id, read_only=True))
    assert server.tmux.run("list-clients", "-F", "#{client_readonly}") == "1\n"
    os.write(reader._main, b"typed\r")
    eventually(lambda: server.tmux.run("list-clients", "-F", "#{client_activity}"))
    assert server.tmux.capture(pane.id)[0] == ""


def test_attaching_works_from_inside_another_tmux(make: Make, server: Server, person: Callable[..., Person]) -> None:
    pane = server.up(["ana"])["ana"]
    server.environ["TMUX"] = "/some/other/socket,1,0"
    person(server.tmux.attach_argv(pane.id))
    assert len(server.tmux.clients()) == 1


def test_attaching_never_starts_a_server(make: Make) -> None:
    server = make()
    done = subprocess.run(server.tmux.attach_argv("%1"), capture_output=True, timeout=20, check=False)
    assert done.returncode != 0
    assert not os.path.exists(server.tmux.socket)


def test_libtmux_sees_the_same_server(server: Server) -> None:
    server.up(["ana"])
    (session,) = server.tmux.server().sessions
    assert session.session_name == "team"
    assert [window.window_name for window in session.windows] == ["fleet", "ana"]
