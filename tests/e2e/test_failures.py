"""Agents that can't run are reported at once, with their last words, and are not tried for ever."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.fleet import Fleet

FAST = {"max": 3, "within": "10m", "backoff": {"first": "50ms", "max": "100ms"}}

READ = "stty -icanon -echo; printf '\\033[6n'; head -c 4 >/dev/null"
"""Ends when tmux has read what was printed: it is asked where the cursor is, and answers only then. One that exits before
that may lose its last words: tmux 3.3a closes a terminal whose process is gone, read or not (1 of 250 on a busy machine)."""


def script(path: Path, text: str, mode: int = 0o755) -> str:
    """Write a program."""
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return str(path)


@pytest.mark.clients("sim", "claude")
def test_an_agent_that_exits_at_once_fails_after_exactly_max_starts(fleet: Fleet) -> None:
    count = fleet.base / "count"
    dying = script(fleet.base / "dying", f"#!/bin/sh\necho >>{count}\necho last words of $NBS_HANDLE\n{READ}\nexit 7\n")
    fleet.write_team([{"handle": "ana", "command": [dying]}], restart=FAST)
    up = fleet.up()
    assert up.code == 5, str(up)
    row = fleet.agent("ana", fleet.wait(lambda ps: fleet.states(ps)["ana"] == "failed"))
    assert row["pid"] is None
    assert row["last_exit"]["code"] == 7
    assert "last words of ana" in "\n".join(row["last_exit"]["lines"])
    assert count.read_text(encoding="utf-8") == "\n" * 3
    assert [record["code"] for record in fleet.exits("ana")] == [7, 7, 7]


@pytest.mark.clients("sim")
def test_why_tells_the_last_lines_of_a_failed_agent(fleet: Fleet) -> None:
    dying = script(fleet.base / "dying", f"#!/bin/sh\necho no disk for the cache\n{READ}\nexit 3\n")
    fleet.write_team([{"handle": "ana", "command": [dying]}], restart=FAST)
    fleet.up()
    fleet.wait(lambda ps: fleet.states(ps)["ana"] == "failed")
    why = fleet.run("why", "ana").out
    assert "no disk for the cache" in why
    assert "no disk for the cache" in fleet.run("ps").out


@pytest.mark.clients("sim")
def test_a_failed_agent_stays_failed_until_a_person_restarts_it(fleet: Fleet) -> None:
    flag = fleet.base / "broken"
    flag.touch()
    text = f'#!/bin/sh\n[ -e {flag} ] && exit 7\nexec nbs-fleet sim "$@"\n'
    fleet.write_team([fleet.client.agent("ana", command=[script(fleet.base / "program", text)])], restart=FAST)
    assert fleet.up().code == 5
    fleet.wait(lambda ps: fleet.states(ps)["ana"] == "failed")
    flag.unlink()
    assert fleet.states()["ana"] == "failed"
    assert fleet.run("restart", "ana").code == 0
    assert fleet.agent("ana", fleet.all_idle())["restarts"] == 0


@pytest.mark.clients("sim")
@pytest.mark.parametrize(
    ("program", "mode", "says"),
    [("missing", None, "program not found"), ("plain", 0o644, "not executable")],
)
def test_a_program_that_cannot_run_is_reported_at_once(fleet: Fleet, program: str, mode: int | None, says: str) -> None:
    path = fleet.base / program
    if mode is not None:
        script(path, "#!/bin/sh\n", mode)
    fleet.write_team([{"handle": "ana", "command": [str(path)]}])
    begun = time.monotonic()
    up = fleet.up("--timeout", "60s")
    assert up.code in (3, 5), str(up)
    assert time.monotonic() - begun < 20
    assert says in up.out + up.err
    assert str(path) in up.out + up.err


@pytest.mark.clients("sim")
def test_a_program_that_is_not_on_the_path_is_named(fleet: Fleet) -> None:
    fleet.write_team([{"handle": "ana", "command": ["no-such-agent-cli"]}])
    up = fleet.up()
    assert up.code in (3, 5), str(up)
    assert "no-such-agent-cli" in up.out + up.err


@pytest.mark.clients("sim")
def test_one_bad_agent_does_not_keep_the_others_from_coming_up(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana"), {"handle": "bo", "command": ["/bin/false"]}], restart=FAST)
    up = fleet.up()
    assert up.code == 5, str(up)
    seen = fleet.wait(lambda ps: fleet.states(ps) == {"ana": "idle", "bo": "failed"})
    assert fleet.agent("ana", seen)["ready"]


@pytest.mark.clients("sim")
def test_a_client_that_is_not_logged_in_is_blocked_and_not_restarted(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana", scenario={"logged_in": False})], dialogs={"setup": "accept"})
    up = fleet.up()
    assert up.code == 5, str(up)
    row = fleet.agent("ana")
    assert (row["state"], row["blocked"]) == ("blocked", "login")
    assert row["restarts"] == 0
    assert len(fleet.exits("ana")) == 0


@pytest.mark.clients("sim")
def test_an_agent_that_is_slow_to_start_times_out_and_is_left_alone(fleet: Fleet) -> None:
    slow = script(fleet.base / "slow", "#!/bin/sh\nread -r forever </dev/tty\n")
    fleet.write_team([{"handle": "ana", "command": [slow]}])
    up = fleet.up("--timeout", "2s")
    assert up.code == 124, str(up)
    assert fleet.agent("ana")["pid"] is not None


@pytest.mark.clients("sim")
def test_an_invalid_file_starts_nothing(fleet: Fleet) -> None:
    fleet.write_text("version: 1\nteam: crew\nagents:\n  - {handle: ana, chat: live}\n")
    up = fleet.up()
    assert up.code == 2, str(up)
    assert ":4:" in up.err
    assert 'did you mean "chats"?' in up.err
    assert not list(fleet.base.glob("state/nbs-fleet/*/*"))


@pytest.mark.clients("sim")
def test_an_unknown_team_or_handle_exits_4(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    fleet.up()
    assert fleet.run("ps", "--team", "nobody").code == 4
    assert fleet.run("peek", "nobody").code == 4
