"""What dies comes back, and nothing else is touched; against each client."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from tests.support.fleet import Fleet, Json


@pytest.fixture
def crew(fleet: Fleet) -> Fleet:
    """Two agents, up and idle, each after one turn."""
    fleet.write_team(
        [fleet.client.agent(handle, prompt_text=f"hello {handle}") for handle in ("ana", "bo")],
        restart={"backoff": {"first": "200ms", "max": "1s"}},
    )
    up = fleet.up()
    assert up.code == 0, str(up)
    fleet.all_idle()
    return fleet


def healed(fleet: Fleet, handle: str, old: int) -> Json:
    """The row of an agent that was killed, once it is idle in another process."""

    def right(ps: Json) -> bool:
        row = fleet.agent(handle, ps)
        return row["pid"] not in (None, old) and row["state"] == "idle"

    return fleet.agent(handle, fleet.wait(right, within=60))


def test_a_killed_client_is_restarted_on_the_same_session(crew: Fleet) -> None:
    before = crew.agent("ana")
    row = healed(crew, "ana", crew.kill("ana"))
    assert row["session_id"] == before["session_id"]
    assert row["restarts"] == 1
    assert "--resume" in psutil.Process(row["pid"]).cmdline()
    assert "--session-id" not in psutil.Process(row["pid"]).cmdline()


def test_a_killed_client_leaves_its_story_and_last_screen(crew: Fleet) -> None:
    healed(crew, "ana", crew.kill("ana"))
    assert crew.exits("ana")[-1]["signal"] == signal.SIGKILL
    assert list((crew.run_dir / "agents" / "ana" / "captures").iterdir())
    assert "9" in crew.run("why", "ana").out


@pytest.mark.clients(long=("claude",))
def test_the_other_agents_are_not_touched_by_a_death(crew: Fleet) -> None:
    before = crew.agent("bo")
    healed(crew, "ana", crew.kill("ana"))
    assert crew.agent("bo")["pid"] == before["pid"]
    assert crew.agent("bo")["restarts"] == 0


def test_a_killed_supervisor_comes_back_and_the_agents_keep_running(crew: Fleet) -> None:
    pids = crew.pids()
    old = crew.kill_supervisor()
    seen = crew.wait(lambda ps: ps["supervisor"]["state"] == "running" and ps["supervisor"]["pid"] != old)
    assert crew.pids(seen) == pids
    assert crew.pids(crew.all_idle()) == pids
    assert all(row["restarts"] == 0 for row in crew.ps()["agents"])


@pytest.mark.clients("sim")
def test_an_agent_whose_values_were_damaged_is_watched_again_after_the_next_up(crew: Fleet) -> None:
    """Without its environment no sidecar knows where the client's files are; the supervisor that comes back has none."""
    (values,) = Path((crew.run_dir / "runtime").read_text().strip()).glob("ana.env")
    pid = crew.agent("ana")["pid"]
    values.write_bytes(b"damaged")
    crew.kill_supervisor()
    crew.wait(lambda ps: "faulted" in str(crew.agent("ana", ps)["sidecar"]))
    assert crew.up().code == 0
    done = crew.run("send", "ana", "are you there?", "--wait")
    assert done.code == 0, str(done)
    assert crew.agent("ana")["pid"] == pid
    assert "faulted" not in str(crew.agent("ana")["sidecar"])


def test_a_client_killed_while_the_supervisor_is_dead_is_healed(crew: Fleet) -> None:
    session = crew.agent("ana")["session_id"]
    crew.kill_supervisor()
    old = crew.kill("ana")
    assert healed(crew, "ana", old)["session_id"] == session


@pytest.mark.clients(long=("claude",))
def test_ps_says_what_it_can_know_while_the_supervisor_is_dead(crew: Fleet) -> None:
    pids = crew.pids()
    with crew.without_supervisor():
        seen = crew.ps()
    assert seen["supervisor"]["state"] == "dead"
    assert crew.pids(seen) == pids
    assert set(crew.states(seen).values()) == {"unknown"}
    assert crew.pids(crew.all_idle()) == pids


@pytest.mark.clients(long=("claude",))
def test_a_killed_tmux_server_is_told_and_up_brings_the_team_back(crew: Fleet) -> None:
    before = {row["handle"]: row["session_id"] for row in crew.ps()["agents"]}
    crew.kill_tmux()
    seen = crew.wait(
        lambda ps: ps["supervisor"]["state"] != "running" and not any(row["ready"] for row in ps["agents"])
    )
    assert "idle" not in crew.states(seen).values()
    up = crew.up()
    assert up.code == 0, str(up)
    after = crew.all_idle()
    assert {row["handle"]: row["session_id"] for row in after["agents"]} == before


def test_after_a_killed_tmux_server_no_old_process_is_left(crew: Fleet) -> None:
    old = crew.pids()
    crew.kill_tmux()
    crew.up()
    crew.all_idle()
    assert [pid for pid in old.values() if psutil.pid_exists(pid) and pid in {p.pid for p in crew.everything()}] == []


def test_restart_keeps_the_session_and_counts_as_planned(crew: Fleet) -> None:
    before = crew.agent("ana")
    again = crew.run("restart", "ana")
    assert again.code == 0, str(again)
    row = healed(crew, "ana", before["pid"])
    assert row["session_id"] == before["session_id"]
    assert row["restarts"] == 0


@pytest.mark.clients(long=("claude",))
def test_a_stopped_agent_stays_stopped_until_it_is_started(crew: Fleet) -> None:
    session = crew.agent("ana")["session_id"]
    assert crew.run("stop", "ana").code == 0
    assert crew.agent("ana", crew.wait(lambda ps: crew.states(ps)["ana"] == "stopped"))["pid"] is None
    assert crew.run("start", "ana").code == 0
    assert crew.agent("ana", crew.all_idle())["session_id"] == session


@pytest.mark.clients("sim", "claude")  # claudeless takes SIGINT as a crash
def test_a_client_that_leaves_by_itself_with_0_is_not_restarted(crew: Fleet) -> None:
    crew.kill("ana", signal.SIGINT)
    seen = crew.wait(lambda ps: crew.states(ps)["ana"] == "stopped")
    assert crew.agent("ana", seen)["restarts"] == 0
