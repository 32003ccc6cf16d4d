"""Test files and the pytest plugin, played with the simulator: what is told, what is left, who sees whom."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import private, processes

pytestmark = [pytest.mark.tmux, pytest.mark.long]
ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "teams" / "ci"
SECONDS = 400.0


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a person of their own; at the end nothing of it runs."""
    runtime = private.short_folder()
    yield private.surrounding(tmp_path, runtime)
    left = processes.belonging(str(tmp_path))
    processes.end(left)
    shutil.rmtree(runtime, ignore_errors=True)
    assert not left


def start(env: dict[str, str], *args: str, cwd: Path = ROOT) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "nbs_fleet", *args]
    return subprocess.Popen(argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(env: dict[str, str], *args: str) -> tuple[int, str]:
    process = start(env, *args)
    out, _ = process.communicate(timeout=SECONDS)
    return process.returncode, out


def ends(out: str) -> dict[str, dict[str, Any]]:
    """How each test ended, by name, from the lines of --json."""
    events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {event["test"]: event for event in events if event["event"] == "end"}


HEAD = """\
version: 1
team: {version: 1, team: crew, driver: sim, chats: [live], bus: [.nbs/events], agents: [{handle: ana}]}
steps:
  - wait: {agent: ana, state: idle}
"""
WRONG = {
    "state": ("expect: {agent: {handle: ana, state: busy}}", "ana is idle"),
    "restarts": ("expect: {agent: {handle: ana, restarts: 2}}", "started again since up: never"),
    "chat": ("expect: {messages: {chat: live, matches: done}}", "in live: nothing"),
    "no-chat": ("expect: {messages: {chat: lvie, matches: done}}", "there is no chat lvie"),
    "event": ("expect: {events: {where: pending, type: build-failed}}", "pending: nothing"),
    "prompt": ("expect: {prompts: {agent: ana, matches: Run}}", "given to ana: nothing"),
    "screen": ("expect: {screen: {agent: ana, matches: rate limit}}", "its screen shows:"),
    "file": ("expect: {file: {path: report.md}}", "there is no report.md"),
    "queue": ("answer: {agent: ana, choice: approve}", "waiting for a person: nothing"),
    "order": ("expect: {messages: {chat: live, order: [begun, done]}}", "/begun/ did not come"),
}


def test_each_of_ten_wrong_expectations_says_what_was_there_instead(tmp_path: Path, env: dict[str, str]) -> None:
    files = []
    for name, (step, _) in WRONG.items():
        path = tmp_path / f"{name}.test.yaml"
        path.write_text(f"{HEAD}  - {step}\n    within: 2s\n")
        files.append(str(path))
    code, out = run(env, "test", *files, "--json", "-j", "3")
    found = ends(out)
    assert code == 1, out
    for name, (_, words) in WRONG.items():
        (trouble,) = found[name]["troubles"]
        assert trouble["where"] == f"{tmp_path}/{name}.test.yaml:5"
        assert words in "\n".join(trouble["saw"]), trouble
        assert any("ana" in line for line in trouble["story"])
        assert "❯" in "\n".join(trouble["screens"][0][1])


def test_two_runs_and_a_live_team_of_the_same_name_do_not_see_each_other(tmp_path: Path, env: dict[str, str]) -> None:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    shutil.copy(CI / "crew.yaml", root / "crew.yaml")
    code, out = run(env, "up", str(root / "crew.yaml"))
    assert code == 0, out
    try:
        before = json.loads(run(env, "ps", "--team", "crew", "--json")[1])
        written = {path: path.read_bytes() for path in root.rglob(".nbs/chat/*")}
        both = [start(env, "test", str(CI / "start.test.yaml"), str(CI / "crash.test.yaml"), "-j2") for _ in range(2)]
        for process in both:
            out, _ = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, out
        after = json.loads(run(env, "ps", "--team", "crew", "--json")[1])
        assert [row["pid"] for row in before["agents"]] == [row["pid"] for row in after["agents"]]
        assert [(row["restarts"], row["unread"]) for row in after["agents"]] == [(0, {})] * 2
        assert written == {path: path.read_bytes() for path in root.rglob(".nbs/chat/*")}
        assert len(json.loads(run(env, "ls", "--json")[1])["teams"]) == 1
    finally:
        assert run(env, "down", "--team", "crew")[0] == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_an_interrupted_run_takes_everything_down(
    tmp_path: Path, env: dict[str, str], number: signal.Signals, code: int
) -> None:
    (tmp_path / "long.test.yaml").write_text(HEAD + "  - wait: {agent: ana, state: failed}\n    within: 100s\n")
    process = start(env | {"TMPDIR": env["XDG_RUNTIME_DIR"]}, "test", str(tmp_path / "long.test.yaml"))
    assert process.stdout is not None
    assert "ok" in process.stdout.readline()
    process.send_signal(number)
    process.communicate(timeout=SECONDS)
    assert process.returncode == code
    assert not list(Path(env["XDG_RUNTIME_DIR"]).glob("nf-*"))


def test_a_test_that_takes_too_long_is_ended(tmp_path: Path, env: dict[str, str]) -> None:
    text = HEAD + "  - wait: {agent: ana, state: failed}\n    within: 100s\n"
    (tmp_path / "long.test.yaml").write_text(text.replace("steps:", "timeout: 8s\nsteps:"))
    code, out = run(env, "test", str(tmp_path / "long.test.yaml"))
    assert code == 124, out
    assert "the test took longer than 8 s; it was at: wait until ana is failed" in out


USERS = """
import pytest

TEAM = {
    "version": 1, "team": "mine", "driver": "sim", "chats": ["live"], "permissions": {"allow": ["Bash"]},
    "agents": [{"handle": "ana", "prompt_text": "You are ana. [[say Ready.]]"}, {"handle": "bo"}],
}


def test_my_team(fleet):
    fleet.up(TEAM, given={"plan.md": "- parse"})
    fleet.wait_state("ana", "idle")
    fleet.wait_prompt("ana", "You are (.*?)[.]")
    fleet.send("ana", "[[bash nbs-fleet chat send live ana 'the plan is read']] [[say done]]")
    assert fleet.chat("live").wait("the plan is (.*)", sender="ana") == "read"
    assert [(m.sender, m.text) for m in fleet.chat("live").read()] == [("ana", "the plan is read")]
    fleet.kill("bo")
    assert fleet.wait_state("bo", "idle").state == "idle"
    fleet.expect(agent={"handle": "bo", "state": "idle", "restarts": 1})
    assert fleet.queue() == []
    assert "❯" in fleet.screen("ana")
    assert (fleet.root / "plan.md").read_text() == "- parse"


def test_what_is_not_there_is_explained(fleet):
    fleet.up(TEAM)
    with pytest.raises(AssertionError, match="seen:     ana is idle"):
        fleet.wait_state("ana", "idle") and fleet.wait_state("ana", "failed", within=1)
"""


def test_a_user_s_test_passes_in_a_fresh_environment_with_the_wheel(tmp_path: Path, env: dict[str, str]) -> None:
    def must(*argv: str, cwd: Path = tmp_path) -> str:
        clean = {**os.environ, **env}
        done = subprocess.run(argv, cwd=cwd, env=clean, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    must(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path / "dist"), str(ROOT))
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    must(sys.executable, "-m", "venv", "fresh")
    python = str(tmp_path / "fresh" / "bin" / "python")
    must(python, "-m", "pip", "install", "-q", str(wheel), "pytest")
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "test_mine.py").write_text(USERS)
    assert "2 passed" in must(python, "-m", "pytest", "-q", "test_mine.py", cwd=tmp_path / "user")
