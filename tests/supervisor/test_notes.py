"""What an `up` tells of agents that wait: in the time that it waits itself, else in the end."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from nbs_fleet.model import AgentState, Moment
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.supervisor.notes import Notes

NOW = Moment(5.0, 1.0, "b")


def told(paths: RunPaths, handle: str) -> list[str]:
    with open(paths.agent(handle).story, encoding="utf-8") as file:
        return [json.loads(line)["state"] for line in file]


def test_a_pause_is_used_and_lasts_as_long_as_it_should(tmp_path: Path) -> None:
    paths = RunPaths(str(tmp_path), str(tmp_path), "", "")
    notes = Notes(paths)
    for handle in ("ana", "bo", "cy"):
        notes.add(None, AgentRecord(handle), NOW)
        notes.add(AgentRecord(handle), AgentRecord(handle, state=AgentState.STARTING), NOW)
    notes.write("bo")
    assert told(paths, "bo") == ["stopped", "starting"]
    assert os.listdir(tmp_path / "agents") == ["bo"]
    assert all(map(os.path.isdir, paths.agent("bo").folders))

    began = time.monotonic()
    notes.pause(0.0)
    assert os.listdir(tmp_path / "agents") == ["bo"]
    notes.pause(0.2)
    assert time.monotonic() - began >= 0.2
    assert told(paths, "ana") == told(paths, "cy") == ["stopped", "starting"]


def test_what_is_left_is_told_in_the_end_and_nothing_twice(tmp_path: Path) -> None:
    paths = RunPaths(str(tmp_path), str(tmp_path), "", "")
    notes = Notes(paths)
    notes.add(None, AgentRecord("ana", state=AgentState.STARTING), NOW)
    notes.close()
    notes.write("ana")
    notes.write("nobody")
    notes.add(AgentRecord("ana", state=AgentState.STARTING), AgentRecord("ana", state=AgentState.IDLE), NOW)
    notes.close()
    assert told(paths, "ana") == ["starting", "idle"]
