from __future__ import annotations

import json
import os
from pathlib import Path

import psutil
import pytest

from nbs_fleet.errors import MissingError
from nbs_fleet.launch import versions
from nbs_fleet.spec.team import Agent
from tests.support.waiting import eventually


def program(folder: Path, name: str, body: str, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(mode)
    return path


def agent(handle: str = "ana", driver: str = "claude", command: tuple[str, ...] | None = None) -> Agent:
    return Agent(handle=handle, base=handle, role=None, driver=driver, dir="/", command=command)


def check(tmp_path: Path, *agents: Agent, cache: Path | None = None) -> versions.Found:
    env = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    return versions.check(agents, {a.handle: env for a in agents}, cache_dir=str(cache) if cache else None)


def test_versions_are_asked_of_the_program_on_the_agents_own_path(tmp_path: Path) -> None:
    program(tmp_path / "bin", "claude", "echo '2.1.197 (Claude Code)'")
    program(tmp_path / "bin", "claudeless", "echo claudeless 0.2.2")
    found = check(tmp_path, agent("ana"), agent("bo"), agent("cy", "claudeless"))
    assert found == versions.Found({"claude": "2.1.197", "claudeless": "0.2.2"})


@pytest.mark.parametrize(
    ("body", "mode", "message"),
    [
        ("echo '2.0.76 (Claude Code)'", 0o755, "is version 2.0.76; 2.1.0 or newer is needed"),
        ("echo '2.1.197 (Claude Code)'", 0o644, "claude not found in PATH"),
        ("echo broken >&2; exit 3", 0o755, "--version: exit 3: broken"),
    ],
)
def test_a_client_that_can_not_do_is_missing(tmp_path: Path, body: str, mode: int, message: str) -> None:
    program(tmp_path / "bin", "claude", body, mode)
    with pytest.raises(MissingError) as caught:
        check(tmp_path, agent())
    assert message in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == 3


def test_a_client_that_is_nowhere_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"^claude: claude not found in PATH$"):
        check(tmp_path, agent())


def test_a_program_named_by_its_path_is_asked_there(tmp_path: Path) -> None:
    path = program(tmp_path / "other", "claude", "echo '2.1.200 (Claude Code)'")
    assert check(tmp_path, agent(command=(str(path), "--verbose"))).versions == {"claude": "2.1.200"}


@pytest.mark.parametrize("mode", [0o644, None])
def test_a_program_named_by_its_path_that_can_not_run_is_missing(tmp_path: Path, mode: int | None) -> None:
    path = tmp_path / "other" / "claude"
    if mode is not None:
        program(tmp_path / "other", "claude", "", mode)
    with pytest.raises(MissingError, match="not executable" if mode else "No such file"):
        check(tmp_path, agent(command=(str(path),)))


def test_all_missing_clients_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(MissingError) as caught:
        check(tmp_path, agent("ana"), agent("cy", "claudeless"))
    assert len(caught.value.message.splitlines()) == 2


def test_a_wrapper_and_the_simulator_are_not_asked(tmp_path: Path) -> None:
    agents = (agent("ana", command=("nice", "claude")), agent("bo", "sim"))
    assert check(tmp_path, *agents) == versions.Found()


def test_an_answer_that_is_no_version_is_a_remark_only(tmp_path: Path) -> None:
    program(tmp_path / "bin", "claude", "echo welcome")
    found = check(tmp_path, agent())
    assert found.versions == {}
    assert "--version says 'welcome', which is no version of it" in found.warnings[0]


def test_an_answer_that_does_not_come_is_a_remark_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "TIMEOUT", 0.2)
    program(tmp_path / "bin", "claude", "exec sleep 20")
    assert "gave no answer" in check(tmp_path, agent()).warnings[0]


def test_one_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "TIMEOUT", 2.0)
    noted = tmp_path / "child"
    program(tmp_path / "bin", "claude", f"sleep 300 & echo $! > {noted}; wait")
    assert "gave no answer" in check(tmp_path, agent()).warnings[0]
    child = int(noted.read_text())
    # It was killed, but a loaded machine may take a moment to carry that out.
    eventually(lambda: _is_over(child))


def _is_over(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_known_program_is_not_asked_again_until_it_changes(tmp_path: Path) -> None:
    cache, asked = tmp_path / "state", tmp_path / "asked"
    cache.mkdir()
    path = program(tmp_path / "bin", "claude", f"echo x >> {asked}; echo '2.1.197 (Claude Code)'")
    for _ in range(2):
        assert check(tmp_path, agent(), cache=cache).versions == {"claude": "2.1.197"}
    assert asked.read_text() == "x\n"
    os.utime(path, ns=(1, 1))
    check(tmp_path, agent(), cache=cache)
    assert asked.read_text() == "x\nx\n"
    assert [path.name for path in cache.iterdir()] == [versions.CACHE_FILE]


@pytest.mark.parametrize("content", ["", "[]", '{"claude x 1 1": 7}', "\0"])
def test_a_broken_cache_is_written_anew(tmp_path: Path, content: str) -> None:
    cache = tmp_path / "state"
    cache.mkdir()
    (cache / versions.CACHE_FILE).write_text(content, encoding="utf-8")
    program(tmp_path / "bin", "claude", "echo '2.1.197 (Claude Code)'")
    assert check(tmp_path, agent(), cache=cache).versions == {"claude": "2.1.197"}
    assert list(json.loads((cache / versions.CACHE_FILE).read_text()).values()) == ["2.1.197"]


def test_without_a_cache_folder_nothing_is_written(tmp_path: Path) -> None:
    program(tmp_path / "bin", "claude", "echo '2.1.197 (Claude Code)'")
    check(tmp_path, agent(), cache=tmp_path / "missing")
    check(tmp_path, agent())
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


@pytest.mark.parametrize(
    ("version", "minimum", "expected"),
    [
        ("2.1.197", (2, 1, 0), False),
        ("2.1.0", (2, 1, 0), False),
        ("2.0.99", (2, 1, 0), True),
        ("2.1.0-beta.3", (2, 1, 0), False),
        ("3", (2, 1, 0), False),
        ("2", (2, 1), True),
        ("10.0.0", (9, 9, 9), False),
    ],
)
def test_versions_are_compared_by_number(version: str, minimum: tuple[int, ...], expected: bool) -> None:
    assert versions.below(version, minimum) is expected
