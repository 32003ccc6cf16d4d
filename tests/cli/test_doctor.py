"""doctor: each unfit thing is named, with what to do about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nbs_fleet.cli import checks, checks_teams, doctor, lookup
from nbs_fleet.launch.locks import FileLock
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.spec.team import Agent
from tests.support.cli_world import agent, call, make_team


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with only what a test puts into it, and the basic programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def program(folder: Path, name: str, says: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
    path.chmod(0o755)


def claude() -> tuple[Agent, ...]:
    return (agent("ana", driver="claude"),)


def levels(found: list[checks.Check]) -> list[tuple[str, str]]:
    return [(check.level, check.name) for check in found]


def test_a_machine_without_tmux_is_bad_and_the_code_is_3(bin_folder: Path) -> None:
    said = call("doctor")
    assert said.code == 3
    assert said.out.splitlines()[0].split() == ["bad", "tmux", "not", "installed"]
    assert "-> install tmux" in said.out
    found = json.loads(call("doctor", "--json").out)
    assert found["ok"] is False
    assert found["checks"][0] == {
        "level": "bad",
        "name": "tmux",
        "says": "not installed",
        "fix": "install tmux 3.3 or newer",
    }


def test_an_old_tmux_is_bad(bin_folder: Path) -> None:
    program(bin_folder, "tmux", "tmux 3.1c")
    assert "3.1 " in checks.tmux(os.environ)[0].says
    assert levels(checks.tmux(os.environ)) == [("bad", "tmux")]


@pytest.mark.tmux
def test_the_tmux_of_this_machine_starts_and_shows_utf8() -> None:
    assert [check.level for check in checks.tmux(os.environ)] == ["ok", "ok"]


def test_a_missing_client_is_bad_and_an_old_one_too(bin_folder: Path) -> None:
    assert levels(checks.clients(claude(), os.environ))[0] == ("bad", "claude")
    program(bin_folder, "claude", "1.0.2 (Claude Code)")
    found = checks.clients(claude(), os.environ)[0]
    assert (found.level, "1.0.2" in found.says, found.fix) == ("bad", True, "update claude")


def test_a_client_that_is_new_enough_is_ok_and_its_login_is_looked_for(bin_folder: Path, tmp_path: Path) -> None:
    program(bin_folder, "claude", "2.1.197 (Claude Code)")
    found = checks.clients(claude(), os.environ)
    assert levels(found) == [("ok", "claude"), ("warn", "claude login")]
    assert "2.1.197" in found[0].says
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").touch()
    assert levels(checks.clients(claude(), os.environ))[1] == ("ok", "claude login")
    with_key = checks.clients(claude(), {**os.environ, "ANTHROPIC_API_KEY": "sk-secret"})[1]
    assert (with_key.level, with_key.says) == ("ok", "by $ANTHROPIC_API_KEY")


def test_a_named_command_is_looked_for_but_not_run(bin_folder: Path) -> None:
    agents = (agent("ana", driver="claude", command=("wrapper",)),)
    assert levels(checks.clients(agents, os.environ)) == [("bad", "claude (ana)")]
    program(bin_folder, "wrapper", "anything")
    assert levels(checks.clients(agents, os.environ)) == [("ok", "claude (ana)")]


def test_the_simulator_and_unknown_drivers_are_told_apart() -> None:
    found = checks.clients((agent("ana"), agent("bo", driver="nonsense")), os.environ)
    assert [check.level for check in found] == ["ok", "bad"]


def test_without_a_file_a_missing_client_is_only_a_warning(bin_folder: Path) -> None:
    assert ("warn", "claude") in levels(doctor.examine(None))


def test_a_team_file_that_can_not_be_used_ends_with_2(here: Path) -> None:
    (here / "team.yaml").write_text("version: 2\n", encoding="utf-8")
    assert call("doctor", "team.yaml").code == 2


def test_sockets_disk_nesting_and_notification_have_a_line(tmp_path: Path) -> None:
    assert checks.sockets(str(tmp_path / ("x" * 200)), "crew", os.environ).level == "ok"
    assert checks.disk(os.environ).level in ("ok", "warn")
    assert "not inside" in checks.nested({}).says
    assert "prefix twice" in checks.nested({"TMUX": "/x,1,0"}).says
    assert all(check.level in ("ok", "warn") for check in checks.notification(str(tmp_path)))


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return make_team(tmp_path / "root", "review", (agent("ana"),))


def test_a_run_directory_that_others_can_enter_is_bad(paths: RunPaths) -> None:
    assert checks_teams.modes(lookup.find_team()) == []
    os.chmod(paths.run, 0o755)
    found = checks_teams.modes(lookup.find_team())
    assert [check.level for check in found] == ["bad"]
    assert "0755" in found[0].says


def test_an_up_that_is_at_work_is_named_with_its_pid(paths: RunPaths) -> None:
    lock = FileLock(paths.up_lock)
    assert lock.try_acquire()
    with lock:
        found = checks_teams.supervisor(lookup.find_team())
    assert [check.says for check in found] == [f"an up or down is at work (pid {os.getpid()})"]


@pytest.fixture
def stray(paths: RunPaths) -> Iterator[subprocess.Popen[bytes]]:
    """A process that says it belongs to the team."""
    env = {**os.environ, "NBS_FLEET_RUN": paths.run}
    argv = [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"]
    with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_process_of_a_team_that_is_down_is_a_leftover(paths: RunPaths, stray: subprocess.Popen[bytes]) -> None:
    mine = [check for check in checks_teams.leftovers(lookup.teams()) if "review" in check.says]
    assert [(check.level, check.fix) for check in mine] == [("warn", "nbs-fleet down --team review")]
    assert str(stray.pid) in mine[0].says


def test_a_process_of_a_team_that_is_up_is_none(paths: RunPaths, stray: subprocess.Popen[bytes]) -> None:
    lock = FileLock(paths.lock)
    assert lock.try_acquire()
    with lock:
        assert not [check for check in checks_teams.leftovers(lookup.teams()) if str(stray.pid) in check.says]
