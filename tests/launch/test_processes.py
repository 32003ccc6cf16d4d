from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.errors import FleetError
from nbs_fleet.launch import processes, proctable
from nbs_fleet.launch.processes import alive, ancestry, end, environ_of, identify, in_run, send_signal, tree
from nbs_fleet.launch.proctable import LinuxTable, PortableTable, Table
from nbs_fleet.model import ProcId
from tests.fakes.fake_processes import FakeTable
from tests.support.waiting import eventually

ME = os.getpid()


@pytest.fixture(params=[LinuxTable, PortableTable], ids=["linux", "portable"])
def table(request: pytest.FixtureRequest) -> Table:
    made: Table = request.param()
    return made


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Children of the test, ended with all of their session at its end."""
    children: list[subprocess.Popen[str]] = []
    yield children
    for child in children:
        for proc in [p for p in _session(child.pid) if p != ME]:
            os.kill(proc, signal.SIGKILL)
        child.kill()
        child.communicate()


def _session(sid: int) -> list[int]:
    return [row.proc.pid for row in LinuxTable().rows() if row.session == sid and not row.zombie]


def run(started: list[subprocess.Popen[str]], script: str, **env: str) -> subprocess.Popen[str]:
    """A shell in a session of its own, as tmux starts one; it says `up` when all is there."""
    child = subprocess.Popen(
        ["/bin/sh", "-c", script],
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], **env},
    )
    started.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    return child


def known(pid: int, table: Table) -> ProcId:
    proc = identify(pid, on=table)
    assert proc is not None
    return proc


def test_a_process_is_known_by_number_and_start(table: Table) -> None:
    me = known(ME, table)
    assert me == known(ME, table)
    assert alive(me, on=table)
    assert not alive(ProcId(ME, me.start + 1), on=table)
    assert identify(2**22 + 1, on=table) is None


def test_a_zombie_is_dead(started: list[subprocess.Popen[str]], table: Table) -> None:
    child = run(started, "echo up; exec sleep 1000")
    proc = known(child.pid, table)
    os.kill(child.pid, signal.SIGKILL)
    eventually(lambda: not alive(proc, on=table))
    assert identify(child.pid, on=table) == proc
    assert not send_signal(proc, "TERM", on=table)
    assert tree(proc, on=table) == ()


def test_the_start_is_the_one_of_the_kernel() -> None:
    with open("/proc/self/stat", encoding="ascii") as file:
        assert known(ME, LinuxTable()).start == int(file.read().rpartition(")")[2].split()[19])


def test_a_name_that_looks_like_fields_confuses_nobody(started: list[subprocess.Popen[str]]) -> None:
    code = (
        "import sys, time; open('/proc/self/comm', 'w').write(') R 1 1 1'); print('up', flush=True); time.sleep(1000)"
    )
    child = run(started, f'exec {sys.executable} -c "{code}"')
    row = LinuxTable().row(child.pid)
    assert row is not None
    assert (row.parent, row.session) == (ME, child.pid)


def test_the_ancestry_leads_from_a_process_to_the_first(table: Table) -> None:
    line = ancestry(ME, on=table)
    assert [proc.pid for proc in line[:2]] == [ME, os.getppid()]
    assert ancestry(2**22 + 1, on=table) == ()


def test_the_command_line_is_read(table: Table) -> None:
    assert table.argv(ME)[0] == Path("/proc/self/cmdline").read_bytes().split(b"\0")[0].decode()
    assert table.argv(2**22 + 1) == ()


def test_a_process_is_found_by_words_of_its_command_line() -> None:
    rows = FakeTable()
    there = rows.add(50, 1, argv=("/usr/bin/tmux", "-u", "-S", "/s", "new-session"))
    rows.add(51, 1, argv=("/usr/bin/tmux", "-u", "-S", "/other", "new-session"))
    rows.add(52, 1, argv=("/bin/sh", "-S", "/s", "new-session"))
    rows.add(53, 1, argv=("/usr/bin/tmux", "-S", "/s", "-C"))
    assert processes.running("tmux", ("-S", "/s"), "new-session", on=rows) == (there,)


def test_the_environment_is_read(started: list[subprocess.Popen[str]], table: Table) -> None:
    child = run(started, "echo up; exec sleep 1000", ODD="a=b\nc ü")
    assert environ_of(child.pid, on=table)["ODD"] == "a=b\nc ü"
    assert environ_of(2**22 + 1, on=table) == {}


def test_an_environment_is_read_in_the_middle_of_an_exec(started: list[subprocess.Popen[str]]) -> None:
    for _ in range(50):
        child = run(started, "echo up; exec sleep 1000", ODD="here")
        assert environ_of(child.pid).get("ODD") == "here"
        child.kill()


def test_an_empty_environment_is_told_at_once(started: list[subprocess.Popen[str]]) -> None:
    child = run(started, "echo up; exec env -i sleep 1000")
    eventually(lambda: environ_of(child.pid) == {})
    begin = time.monotonic()
    for _ in range(10):
        assert environ_of(child.pid) == {}
    assert time.monotonic() - begin < 10, "each waited for the end of an exec"


def test_a_moment_has_both_clocks_and_the_boot(table: Table) -> None:
    first, second = processes.moment(on=table), processes.moment(on=table)
    assert first.boot == second.boot != ""
    assert first.mono <= second.mono
    assert abs(first.wall - time.time()) < 60


def test_a_tree_holds_children_who_lost_their_parent(started: list[subprocess.Popen[str]], table: Table) -> None:
    child = run(started, "(sleep 1000 & sleep 1000 & echo up) ; exec sleep 1000")
    eventually(lambda: len(_session(child.pid)) == 3)
    found = tree(known(child.pid, table), on=table)
    assert found[0].pid == child.pid
    assert sorted(proc.pid for proc in found) == sorted(_session(child.pid))
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert set(tree(found[0], on=table)) == set(found[1:])


def test_a_tree_holds_groups_that_its_members_made(started: list[subprocess.Popen[str]], table: Table) -> None:
    code = "import os, sys, time\nif os.fork() == 0:\n os.setsid()\n if os.fork(): time.sleep(1000)\n"
    child = run(started, f"{sys.executable} -c '{code} print(\"up\", flush=True)\n time.sleep(1000)\ntime.sleep(1000)'")
    found = tree(known(child.pid, table), on=table)
    outside = {proc.pid for proc in found} - set(_session(child.pid))
    assert len(outside) == 2
    for pid in outside:
        os.kill(pid, signal.SIGKILL)


def test_neither_we_nor_our_ancestors_are_ever_in_a_tree(table: Table) -> None:
    found = tree(known(os.getppid(), table), on=table)
    assert not {proc.pid for proc in ancestry(ME, on=table)} & {proc.pid for proc in found}


def test_those_of_a_run_are_found_by_their_environment(started: list[subprocess.Popen[str]], table: Table) -> None:
    run_dir = f"/run/{time.monotonic_ns()}"
    child = run(started, "echo up; exec sleep 1000", NBS_FLEET_RUN=run_dir, NBS_HANDLE="ana")
    run(started, "echo up; exec sleep 1000", NBS_FLEET_RUN=run_dir + "x", NBS_HANDLE="ana")
    assert [proc.pid for proc in in_run(run_dir, on=table)] == [child.pid]
    assert [proc.pid for proc in in_run(run_dir, handle="ana", on=table)] == [child.pid]
    assert in_run(run_dir, handle="bo", on=table) == ()
    assert in_run(run_dir, {child.pid}, on=table) == ()


def test_signals_reach_only_who_is_meant(started: list[subprocess.Popen[str]], table: Table) -> None:
    child = run(started, "trap 'echo got; exit 3' USR1; echo up; while :; do sleep 0.01; done")
    proc = known(child.pid, table)
    assert not send_signal(ProcId(proc.pid, proc.start - 1), "USR1", on=table)
    assert send_signal(proc, "USR1", on=table)
    assert child.wait(20) == 3
    assert not send_signal(proc, "USR1", on=table)


def test_an_exit_is_waited_for_with_a_bound(started: list[subprocess.Popen[str]], table: Table) -> None:
    child = run(started, "echo up; exec sleep 1000")
    proc = known(child.pid, table)
    assert not processes.wait_exit(proc, 0.01, on=table)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert processes.wait_exit(proc, 20, on=table)


async def test_who_goes_politely_is_not_killed(started: list[subprocess.Popen[str]], table: Table) -> None:
    child = run(started, "trap 'exit 5' INT; echo up; while :; do sleep 0.01; done")
    proc = known(child.pid, table)
    ended = await end([proc], ("INT",), 20, on=table)
    assert ended.killed == ended.survivors == ()
    assert proc in ended.ended
    assert child.wait() == 5


async def test_what_ignores_every_signal_is_killed_with_its_children(
    started: list[subprocess.Popen[str]], table: Table
) -> None:
    child = run(started, "trap '' TERM INT HUP; (sleep 1000 & sleep 1000 & echo up); while :; do sleep 0.1; done")
    proc = known(child.pid, table)
    ended = await end([proc], ("INT", "TERM"), 0.1, on=table)
    assert ended.survivors == ()
    assert proc in ended.killed
    assert len(ended.killed) >= 3
    assert _session(child.pid) == []


async def test_children_that_a_polite_end_leaves_behind_are_killed(started: list[subprocess.Popen[str]]) -> None:
    child = run(started, "(trap '' TERM HUP; echo up; exec sleep 1000) & exec sleep 1000")
    ended = await end([known(child.pid, LinuxTable())], ("TERM",), 20)
    assert (len(ended.ended), len(ended.killed)) == (2, 1)
    assert _session(child.pid) == []


async def test_a_stopped_process_hears_a_polite_signal(started: list[subprocess.Popen[str]]) -> None:
    child = run(started, "trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done")
    os.kill(child.pid, signal.SIGSTOP)
    ended = await end([known(child.pid, LinuxTable())], ("TERM",), 20)
    assert known(child.pid, LinuxTable()) not in ended.killed
    assert child.wait() == 5


async def test_who_is_gone_already_is_ended() -> None:
    gone = ProcId(2**22 + 1, 1)
    assert await end([gone], ("TERM",), 1) == processes.Ended((gone,))


async def test_what_nobody_may_signal_survives_and_is_named() -> None:
    table = FakeTable()
    proc = table.add(500, parent=1, foreign=True)
    ended = await asyncio.wait_for(end([proc], ("TERM",), 0.01, on=table), 60)
    assert ended.survivors == (proc,)
    assert ended.ended == ()


async def test_our_own_ancestors_are_spared_and_named() -> None:
    table = FakeTable()
    init = identify(1, on=table)
    assert init
    assert (await end([init], ("TERM",), 0.01, on=table)).survivors == (init,)
    assert table.sent == []


async def test_signals_come_in_turn_to_the_roots_and_kill_to_all() -> None:
    table = FakeTable()
    root = table.add(500, parent=1, group=500, session=500, stubborn=True)
    table.add(501, parent=500, stubborn=True)
    ended = await end([root], ("INT", "TERM"), 0.02, on=table)
    assert [sent for sent in table.sent if sent[1] != "CONT"] == [
        (500, "INT"),
        (500, "TERM"),
        (500, "KILL"),
        (501, "KILL"),
    ]
    assert [proc.pid for proc in ended.killed] == [500, 501]


def test_a_number_that_was_taken_over_is_nobodys_tree() -> None:
    table = FakeTable()
    old = table.add(500, parent=1, group=500, session=500)
    table.remove(500)
    table.add(500, parent=1, group=500, session=500)
    table.add(501, parent=500)
    assert tree(old, on=table) == ()
    assert not send_signal(old, "TERM", on=table)
    assert table.sent == []


def test_a_root_that_leads_no_group_does_not_bring_its_neighbours() -> None:
    table = FakeTable()
    shell = table.add(400, parent=1, group=400, session=400)
    table.add(401, parent=400)
    root = table.add(402, parent=400)
    table.add(403, parent=402)
    assert [proc.pid for proc in tree(root, on=table)] == [402, 403]
    assert [proc.pid for proc in tree(shell, on=table)] == [400, 401, 402, 403]


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.booleans()), max_size=12), st.data())
def test_a_tree_is_all_that_came_from_its_root_and_nothing_else(
    births: list[tuple[int, bool, bool]], data: st.DataObject
) -> None:
    """Whatever is born from whom, makes a group or session or not, and dies: nobody is missed or taken along."""
    table = FakeTable()
    stranger = table.add(300, parent=1, group=300, session=300)
    table.add(301, parent=300)
    root = table.add(500, parent=1, group=500, session=500)
    mine = [500]
    for parent, leads, leads_session in births:
        pid = 501 + len(mine)
        above = table.row(mine[parent % len(mine)])
        if above is None:
            continue
        session = pid if leads_session else above.session
        table.add(pid, parent=above.proc.pid, group=pid if leads or leads_session else above.group, session=session)
        mine.append(pid)
    dead = data.draw(st.sets(st.sampled_from(mine)))
    # A leader that is gone may leave members; one that did not lead leaves only those in a family that lives on.
    for pid in dead - {500}:
        row = table.row(pid)
        if row is not None and row.group == pid and row.session == pid:
            continue
        table.remove(pid)
    found = {proc.pid for proc in tree(root, on=table)}
    alive_mine = {pid for pid in mine if table.row(pid)}
    assert found <= alive_mine
    assert {pid for pid in alive_mine if _is_linked(table, pid, alive_mine)} <= found
    assert stranger.pid not in found


def _is_linked(table: FakeTable, pid: int, mine: set[int]) -> bool:
    """Whether parentage leads from `pid` to the root without a gap, or it stayed in the root's session."""
    row = table.row(pid)
    while row is not None and row.proc.pid != 500:
        if row.session == 500:
            return True
        row = table.row(row.parent)
    return row is not None


def test_the_right_table_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(proctable.table(), LinuxTable)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not proctable.has_pidfd()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delattr(os, "pidfd_open")
    assert not proctable.has_pidfd()


def test_an_unknown_signal_is_an_error() -> None:
    with pytest.raises(KeyError):
        send_signal(known(ME, LinuxTable()), "NONSENSE")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_not_signalled_but_named(started: list[subprocess.Popen[str]]) -> None:
    code = (
        "import os, sys; sys.path[:0] = [sys.argv[2]]\n"
        "from nbs_fleet.launch import processes\nfrom nbs_fleet.errors import FleetError\n"
        "proc = processes.identify(int(sys.argv[1]))\nos.setuid(65534)\n"
        "try:\n processes.send_signal(proc, 'TERM')\nexcept FleetError as error:\n print(error.message)\n"
    )
    child = run(started, "echo up; exec sleep 1000")
    told = subprocess.run(
        [sys.executable, "-c", code, str(child.pid), os.getcwd()],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert told.stdout == f"may not signal process {child.pid}\n"
    assert child.poll() is None
    assert FleetError.exit_code == 1
