"""The guard rail: an agent can't do what is a person's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nbs_fleet.cli import guard, lookup
from nbs_fleet.errors import FleetError
from nbs_fleet.launch.processes import identify
from nbs_fleet.model import ProcId
from tests.support.cli_world import agent, make_team, write_record


@pytest.fixture
def found(tmp_path: Path) -> lookup.Found:
    make_team(tmp_path / "root", "review", (agent("ana"), agent("bo")))
    return lookup.find_team("review")


def test_a_person_may(found: lookup.Found) -> None:
    write_record(found.paths, "ana", proc=ProcId(1, 1))
    guard.require_person(found)
    assert guard.agent_of(found) is None


def test_whoever_has_an_agent_s_environment_may_not(found: lookup.Found) -> None:
    with pytest.raises(FleetError, match="this is for a person to do"):
        guard.require_person(found, environ={"NBS_FLEET_RUN": "/x"})


def test_a_person_who_uses_the_nbs_tools_by_hand_is_still_a_person(found: lookup.Found) -> None:
    guard.require_person(found, environ={"NBS_HANDLE": "ana"})
    assert guard.speaker(found, environ={"NBS_HANDLE": "ana"}) == "person"


def test_whoever_descends_from_a_client_may_not(found: lookup.Found) -> None:
    write_record(found.paths, "bo", proc=identify(os.getppid()))
    with pytest.raises(FleetError, match=r"the caller is an agent \(bo\)"):
        guard.require_person(found)


def test_a_pid_that_was_used_again_proves_nothing(found: lookup.Found) -> None:
    mine = identify(os.getppid())
    assert mine is not None
    write_record(found.paths, "bo", proc=ProcId(mine.pid, mine.start - 1))
    guard.require_person(found)
