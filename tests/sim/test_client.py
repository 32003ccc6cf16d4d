"""A running client: how it starts, what it keeps, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nbs_fleet.sim import place

if TYPE_CHECKING:
    from tests.sim.conftest import Begin

U = "11111111-2222-4333-8444-555555555501"
BYPASS = "--dangerously-skip-permissions"


def run(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The client without a terminal."""
    surrounding = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(env or {})}
    argv = [sys.executable, "-m", "nbs_fleet.sim", *args]
    return subprocess.run(argv, capture_output=True, text=True, env=surrounding, timeout=30, check=False)


def test_it_tells_the_version_of_the_client_it_stands_for() -> None:
    assert run("--version").stdout == "2.1.197 (Claude Code)\n"
    assert run("--help").returncode == 0


def test_it_refuses_unknown_flags_and_a_start_without_a_terminal() -> None:
    found = run("--nosuch")
    assert (found.returncode, found.stderr) == (1, "error: unknown option '--nosuch'\n")
    assert run().returncode == 1


def test_it_comes_up_with_a_state_file_a_title_and_an_empty_box(begin: Begin) -> None:
    client = begin("--session-id", U, "--name", "ana", BYPASS)
    state = client.state()
    assert state["pid"] == client.pid
    assert state["sessionId"] == U
    assert state["cwd"] == str(client.project)
    assert state["procStart"] == place.process_start(client.pid)
    assert (state["kind"], state["entrypoint"], state["name"]) == ("interactive", "cli", "ana")
    assert state["statusUpdatedAt"] >= state["startedAt"] - 1000
    assert client.titles() == ["✳ ana"]
    assert "❯\xa0" in client.text()
    assert "bypass permissions on" in client.text()
    assert client.transcript() is None


def test_the_positional_prompt_is_the_first_turn(begin: Begin) -> None:
    client = begin("--", "[[say hello]]")
    client.until(lambda: client.ended() == 1)
    client.until_text("● hello")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0), (signal.SIGKILL, 137)]
)
def test_each_signal_has_its_exit_code_and_only_kill_leaves_the_state_file(
    begin: Begin, number: signal.Signals, code: int
) -> None:
    client = begin("--session-id", U)
    client.signal(number)
    assert client.wait() == code
    assert bool(client.state()) is (number == signal.SIGKILL)


def test_no_signal_after_the_end_changes_the_exit_code() -> None:
    """Python gives handled signals their defaults back while it ends: a change in a watched folder killed it there."""
    code = (
        "import os, signal\n"
        "from nbs_fleet.sim.kernel import Loop\n"
        "loop = Loop()\n"
        "for number in (signal.SIGIO, signal.SIGHUP, signal.SIGTERM):\n"
        "    loop.on_signal(number, lambda: None)\n"
        "class Late:\n"
        "    def __del__(self, kill=os.kill, pid=os.getpid()):\n"
        "        for number in (29, 1, 15):\n"
        "            kill(pid, number)\n"
        "kept = __builtins__.kept = Late()\n"
        "loop.call_later(0, lambda: loop.stop(7))\n"
        "raise SystemExit(loop.run())\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=30, check=False).returncode == 7


@pytest.mark.parametrize("keys", ["\x03\x03", "\x04\x04", "/exit\r"])
def test_a_person_s_ways_out_end_with_0_and_tell_the_way_back(begin: Begin, keys: str) -> None:
    client = begin("--name", "ana")
    client.turn("[[say hi]]")
    for key in keys if keys[0] < " " else [keys]:
        client.send(key)
        client.until(lambda: True)
    assert client.wait() == 0
    assert 'Resume this session with:\nclaude --resume "ana"' in client.text()
    assert not client.state()


def test_one_press_only_warns(begin: Begin) -> None:
    client = begin()
    client.send("\x03")
    client.until_text("Press Ctrl-C again to exit")
    client.send("x")
    client.send("\x15")
    client.send("\x04")
    client.until_text("Press Ctrl-D again to exit")
    assert client.state()["status"] == "idle"


def test_the_hang_up_of_the_terminal_ends_it(begin: Begin) -> None:
    client = begin()
    os.close(client.fd)
    client.fd = -1
    assert client.wait() == 129


def test_a_session_id_in_use_or_on_disk_is_refused(begin: Begin) -> None:
    client = begin("--session-id", U)
    second = begin("--session-id", U, ready=False)
    assert second.wait() == 1
    assert f"Error: Session ID {U} is already in use." in second.text()
    client.turn("[[say hi]]")
    client.signal(signal.SIGTERM)
    client.wait()
    third = begin("--session-id", U, ready=False)
    assert third.wait() == 1
    assert f"Error: Session ID {U} is already in use." in third.text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--session-id", "x"), "Error: Invalid session ID. Must be a valid UUID."),
        (("--resume", U), f"No conversation found with session ID: {U}"),
        (("--continue",), "No conversation found to continue"),
        (("--settings", "/nonexistent.json"), "Error: Settings file not found: /nonexistent.json"),
    ],
)
def test_impossible_starts_are_refused_before_the_screen(begin: Begin, args: tuple[str, ...], message: str) -> None:
    client = begin(*args, ready=False)
    assert client.wait() == 1
    assert message in client.text()
    assert "\x1b" not in client.output.decode()


def test_a_broken_scenario_is_refused_with_exit_2(begin: Begin, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"respones": []}')
    client = begin("--scenario", str(path), ready=False)
    assert client.wait() == 2
    assert 'unknown key; did you mean "responses"?' in client.text()


def test_root_needs_a_sandbox_for_bypass(begin: Begin) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root is refused")
    client = begin(BYPASS, ready=False, env={"IS_SANDBOX": ""})
    assert client.wait() == 1
    assert "--dangerously-skip-permissions cannot be used with root/sudo privileges" in client.text()


def test_resume_goes_on_with_the_same_id_file_and_memory(begin: Begin) -> None:
    client = begin("--session-id", U, "--name", "ana")
    client.turn("[[say remembered]]")
    path = client.transcript()
    assert path is not None
    client.signal(signal.SIGKILL)
    client.wait()
    again = begin("--resume", U, "[[say and on]]")
    again.until(lambda: again.ended() == 2)
    assert again.state()["sessionId"] == U
    assert again.transcript() == path
    assert "remembered" in again.heard()
    assert again.titles()[0] == "✳ ana"
    linked = [line for line in again.lines() if "parentUuid" in line]
    assert [line["parentUuid"] for line in linked[1:]] == [line["uuid"] for line in linked[:-1]]
    assert "● remembered" in again.text()


def test_resume_forgets_what_a_compaction_summed_up(begin: Begin) -> None:
    client = begin("--session-id", U)
    client.turn("[[say remembered]]")
    client.turn("[[say enough to sum up]]")
    client.send("/compact\r")
    client.until_text("Compacted (ctrl+o to see full summary)")
    client.turn("[[say more]]")
    client.signal(signal.SIGKILL)
    client.wait()
    again = begin("--resume", U, "[[say after]]")
    again.until(lambda: "say after" in again.heard())
    assert "remembered" not in again.heard()
    assert "summary" in again.heard()


def test_resume_by_name_and_continue_find_the_session(begin: Begin) -> None:
    client = begin("--session-id", U, "--name", "ana")
    client.turn("[[say one]]")
    client.send("/exit\r")
    client.wait()
    for args in (("--resume", "ana"), ("--continue",)):
        again = begin(*args)
        assert again.state()["sessionId"] == U
        again.send("/exit\r")
        again.wait()


def test_a_fork_has_its_own_id_and_leaves_the_original_alone(begin: Begin) -> None:
    client = begin("--session-id", U)
    client.turn("[[say one]]")
    path = client.transcript()
    assert path is not None
    before = path.read_text()
    fork = begin("--resume", U, "--fork-session")
    assert fork.state()["sessionId"] != U
    fork.turn("[[say two]]")
    assert path.read_text() == before


def test_inside_another_client_s_tool_it_keeps_nothing(begin: Begin) -> None:
    client = begin("--session-id", U, "--", "[[say hi]]", ready=False, env={"CLAUDE_CODE_CHILD_SESSION": "1"})
    client.until_text("● hi")
    assert not client.state()
    assert not list(client.config.glob("projects/*/*.jsonl"))


def test_a_running_command_outlives_a_killed_client(begin: Begin, tmp_path: Path) -> None:
    client = begin(BYPASS)
    client.say(f"[[bash echo $$ > {tmp_path}/pid; exec sleep 60]]")
    pid = client.until(lambda: int((tmp_path / "pid").read_text() or 0) if (tmp_path / "pid").exists() else 0)
    assert os.getpgid(pid) == pid
    client.signal(signal.SIGTERM)
    assert client.wait() == 143
    os.kill(pid, 0)
    os.killpg(pid, signal.SIGKILL)


def test_a_resize_draws_everything_anew(begin: Begin) -> None:
    client = begin("--name", "ana")
    client.turn("[[say hi]]")
    seen = len(client.output)
    client.resize(60, 20)
    client.until(lambda: "\n" + "─" * 53 + " ana ──" in client.text())
    assert b"\x1b[2J" in client.output[seen:]


def test_it_sleeps_while_nothing_happens(begin: Begin) -> None:
    client = begin()
    client.turn("[[say hi]]")

    def ticks() -> list[str]:
        return Path(f"/proc/{client.pid}/stat").read_text().rpartition(")")[2].split()[11:13]

    client.until(lambda: Path(f"/proc/{client.pid}/wchan").exists())
    before = ticks()
    with pytest.raises(AssertionError):
        client.until(lambda: ticks() != before, patience=1.0)


def test_fifty_fit_into_little_memory(begin: Begin) -> None:
    client = begin(BYPASS)
    status = Path(f"/proc/{client.pid}/status").read_text()
    own = int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")))
    assert own < 9_000


def test_the_state_file_follows_within_the_turn(begin: Begin) -> None:
    client = begin()
    client.say("[[wait 0.3 x]]")
    client.until_status("busy")
    client.until_status("idle")
    client.until(lambda: client.titles()[-1].startswith("✳"))
    assert any(title[0] in "⠂⠐" for title in client.titles())
    assert json.loads((client.config / "sessions" / f"{client.pid}.json").read_text())["status"] == "idle"
