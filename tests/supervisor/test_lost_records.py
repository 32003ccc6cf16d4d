"""An agent whose record is gone is taken over by what its story tells; a damaged plan is no dead end."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.model import AgentState, Moment, ProcId
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentRecord, Desired
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.fleet import Found
from nbs_fleet.supervisor.story import LEFT, Memory, Story, recall
from nbs_fleet.supervisor.takeover import first_events
from nbs_fleet.supervisor.telling import tell
from tests.support.cli_world import agent, call, make_team

NOW = Moment(100.0, 1.0, "boot")


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPaths:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return make_team(tmp_path / "root", "crew", (agent("ana"), agent("bo")))


def lived(paths: RunPaths, handle: str, state: AgentState) -> None:
    """The story of an agent that was started, and came into a state."""
    started = AgentRecord(handle, proc=ProcId(7, 7), pane="%1", session_id="s-1")
    story = Story(paths.agent(handle).story)
    tell(story, None, started, NOW)
    tell(story, started, AgentRecord(handle, state=state, proc=ProcId(7, 7), session_id="s-1"), NOW)


@pytest.mark.parametrize(
    ("state", "after", "desired"),
    [
        (AgentState.IDLE, AgentState.STARTING, Desired.UP),
        (AgentState.BUSY, AgentState.STARTING, Desired.UP),
        (AgentState.STOPPED, AgentState.STOPPED, Desired.STOPPED),
        (AgentState.FAILED, AgentState.FAILED, Desired.STOPPED),
    ],
)
def test_a_lost_record_keeps_its_session_and_what_rested_rests(
    paths: RunPaths, state: AgentState, after: AgentState, desired: Desired
) -> None:
    store.make_folders(paths, "ana")
    lived(paths, "ana", state)
    plan = store.read_plan(paths)
    assert plan is not None
    found = first_events(plan, Tmux(paths.tmux))[0]
    assert isinstance(found, Found)
    assert [(r.handle, r.session_id, r.state, r.desired) for r in found.records] == [("ana", "s-1", after, desired)]
    assert "record lost" in Path(paths.agent("ana").story).read_text()


def test_an_agent_that_never_ran_or_left_the_team_is_a_new_one(paths: RunPaths) -> None:
    store.make_folders(paths, "ana")
    assert recall(paths.agent("ana").story) is None
    lived(paths, "ana", AgentState.IDLE)
    assert recall(paths.agent("ana").story) == Memory("s-1", AgentState.IDLE)
    Story(paths.agent("ana").story).tell(101.0, LEFT)
    assert recall(paths.agent("ana").story) is None


def test_a_damaged_story_tells_what_is_left_of_it(paths: RunPaths) -> None:
    store.make_folders(paths, "ana")
    lived(paths, "ana", AgentState.IDLE)
    with open(paths.agent("ana").story, "ab") as file:
        file.write(b'\xff{"what"\n[1]\n')
    assert recall(paths.agent("ana").story) == Memory("s-1", AgentState.IDLE)


def test_a_team_with_a_damaged_plan_can_be_taken_down(paths: RunPaths) -> None:
    Path(paths.plan).write_text("{")
    said = call("down", "--team", "crew")
    assert said.code == 0, said
    assert "plan.json: can't be read" in said.err
    assert "crew is down" in said.out


def test_a_damaged_plan_is_no_plan_for_those_who_can_do_without(paths: RunPaths) -> None:
    assert store.readable_plan(paths) is not None
    Path(paths.plan).write_text("{")
    assert store.readable_plan(paths) is None
