"""Order, scale, and several commands at once."""

from __future__ import annotations

import pytest

from tests.support.fleet import Fleet, Json, Result

pytestmark = pytest.mark.clients("sim")


def watched(fleet: Fleet, *args: str) -> tuple[Result, list[Json]]:
    """Run a command and ask `ps` again and again meanwhile: how the command ended, and every answer."""
    command = fleet.start(*args)
    looks: list[Json] = []
    while command.poll() is None:
        seen = fleet.run("ps", "--team", fleet.team, "--json")
        if seen.code == 0:
            looks.append(seen.json())
    return fleet.finish(command, *args), looks


def test_an_agent_starts_when_those_it_depends_on_are_ready(fleet: Fleet) -> None:
    make = fleet.client.agent
    fleet.write_team([make("cy", depends_on=["bo"]), make("bo", depends_on=["ana"]), make("ana")])
    assert fleet.up().code == 0
    fleet.all_idle()
    begun = {handle: fleet.told(handle, "started")[0]["at"] for handle in ("ana", "bo", "cy")}
    ready = {handle: fleet.ready_at(handle) for handle in ("ana", "bo")}
    assert ready["ana"] <= begun["bo"]
    assert ready["bo"] <= begun["cy"]


def test_fifty_agents_come_up_idle_and_go_down(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("bo", count=50)])
    handles = {f"bo-{number}" for number in range(1, 51)}
    up, looks = watched(fleet, "up", str(fleet.file), "--timeout", "120s")
    assert up.code == 0, str(up)
    assert all({row["handle"] for row in ps["agents"]} == handles for ps in looks)
    assert all(row["pid"] is not None for ps in looks for row in ps["agents"] if row["state"] == "idle")
    last = fleet.all_idle(within=90)
    assert {row["handle"] for row in last["agents"]} == handles
    assert len(set(fleet.pids(last).values())) == 50
    down, looks = watched(fleet, "down", "--team", fleet.team, "--timeout", "30s")
    assert down.code == 0, str(down)
    assert all({row["handle"] for row in ps["agents"]} == handles for ps in looks)
    assert all(row["pid"] is None for ps in looks for row in ps["agents"] if row["state"] == "stopped")
    assert fleet.leftovers() == []


def test_handles_that_begin_alike_are_told_apart(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("agent", count=10)])
    assert fleet.up().code == 0
    before = fleet.pids(fleet.all_idle())
    fleet.run("stop", "agent-1")
    seen = fleet.wait(lambda ps: fleet.states(ps)["agent-1"] == "stopped")
    after = fleet.pids(seen)
    assert {h: p for h, p in after.items() if h != "agent-1"} == {h: p for h, p in before.items() if h != "agent-1"}
    assert fleet.run("stop", "agent").code == 0
    fleet.wait(lambda ps: set(fleet.states(ps).values()) == {"stopped"})


def test_two_ups_at_once_start_each_agent_once(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent(handle) for handle in ("ana", "bo", "cy")])
    both = [fleet.start("up", str(fleet.file)) for _ in range(2)]
    ended = [fleet.finish(command, "up") for command in both]
    assert [result.code for result in ended] == [0, 0], "\n".join(map(str, ended))
    fleet.all_idle()
    assert [len(fleet.told(handle, "started")) for handle in ("ana", "bo", "cy")] == [1, 1, 1]


def test_up_and_down_at_once_end_in_one_of_the_two(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent(handle) for handle in ("ana", "bo")])
    fleet.up()
    fleet.all_idle()
    down, up = fleet.start("down", "--team", fleet.team), fleet.start("up", str(fleet.file))
    ended = fleet.finish(down, "down"), fleet.finish(up, "up")
    assert ended[0].code == 0, str(ended[0])
    assert ended[1].code in (0, 5), str(ended[1])
    if set(fleet.states().values()) <= {"idle", "busy", "starting"}:
        fleet.all_idle()
    else:
        assert set(fleet.states().values()) == {"stopped"}


def test_an_agent_that_left_the_file_is_stopped(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana"), fleet.client.agent("bo")])
    fleet.up()
    pid = fleet.pids(fleet.all_idle())["ana"]
    fleet.write_team([fleet.client.agent("ana")])
    assert "bo" in fleet.run("plan", str(fleet.file)).out
    assert fleet.up().code == 0
    assert fleet.pids(fleet.wait(lambda ps: len(ps["agents"]) == 1)) == {"ana": pid}


def test_a_changed_agent_is_restarted_and_the_others_are_kept(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent(handle, prompt_text="hello") for handle in ("ana", "bo")])
    fleet.up()
    before = fleet.all_idle()
    changed = fleet.client.agent("ana", prompt_text="hello", env={"LOG": "debug"})
    fleet.write_team([changed, fleet.client.agent("bo", prompt_text="hello")])
    assert fleet.wait(lambda ps: bool(ps["file_changed"]))
    up = fleet.up()
    assert up.code == 0, str(up)
    assert "env" in up.out
    after = fleet.wait(lambda ps: fleet.pids(ps)["ana"] not in (None, fleet.pids(before)["ana"]))
    assert fleet.pids(after)["bo"] == fleet.pids(before)["bo"]
    assert fleet.agent("ana", fleet.all_idle())["session_id"] == fleet.agent("ana", before)["session_id"]


def test_two_teams_of_one_root_may_not_share_a_handle(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    fleet.up()
    other = fleet.root / "other.yaml"
    other.write_text(fleet.file.read_text(encoding="utf-8").replace("team: crew", "team: rivals"), encoding="utf-8")
    up = fleet.run("up", str(other))
    assert up.code == 1, str(up)
    assert "ana" in up.err
    assert "crew" in up.err
