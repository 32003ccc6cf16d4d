"""signal: an agent says how things stand; anything but the three signals is a loud error."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.launch.processes import identify
from nbs_fleet.plan.paths import RunPaths
from tests.support.cli_world import Said, agent, call, make_team, write_record


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return make_team(tmp_path / "root", "review", (agent("ana"), agent("bo-1", base="bo"), agent("bo-2", base="bo")))


@pytest.fixture
def in_bo_1(paths: RunPaths) -> None:
    """This process descends from the client of bo-1."""
    write_record(paths, "bo-1", proc=identify(os.getppid()))


def signalled(paths: RunPaths, handle: str = "bo-1") -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(paths.agent(handle).signal).read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize(
    ("argv", "kind", "text"),
    [
        (["complete"], "complete", ""),
        (["Escalate", "which", "schema?\x1b"], "escalate", "which schema?"),
        (["continue", "--", "--still", "at it"], "continue", "--still at it"),
        (['{"kind": "complete", "message": "all done"}'], "complete", "all done"),
        (['{"action":"escalate"}'], "escalate", ""),
        (['{"kind":', '"continue"}'], "continue", ""),
    ],
)
def test_an_agent_signals(paths: RunPaths, in_bo_1: None, argv: list[str], kind: str, text: str) -> None:
    before = time.time()
    assert call("signal", *argv) == Said(0, f"signalled {kind}\n", "")
    found = signalled(paths)
    assert before <= found.pop("at") <= time.time()
    assert found == {"kind": kind, "message": text, "handle": "bo-1"}


@pytest.mark.parametrize(
    "argv",
    [
        ["done"],
        ["completed"],
        [""],
        ["{}"],
        ["{"],
        ['{"kind": "done"}'],
        ['{"kind": 1}'],
        ['{"kind": "complete", "action": "complete"}'],
        ['{"kind": "complete", "mesage": "x"}'],
        ['{"kind": "complete", "message": 1}'],
        ['["complete"]'],
        ['"complete"'],
        ['{"kind": "complete"}', "done"],
    ],
)
def test_any_other_signal_is_a_loud_error_that_lists_what_is_right(
    paths: RunPaths, in_bo_1: None, argv: list[str]
) -> None:
    said = call("signal", *argv)
    assert said.code == 2
    assert "right are: nbs-fleet signal complete, nbs-fleet signal escalate MESSAGE" in said.err
    assert not os.path.exists(paths.agent("bo-1").signal)


def test_the_last_signal_counts(paths: RunPaths, in_bo_1: None) -> None:
    call("signal", "continue")
    call("signal", "complete", "now")
    assert signalled(paths)["kind"] == "complete"
    assert [n for n in os.listdir(paths.agent("bo-1").dir) if "signal" in n] == ["signal.json"]


def test_outside_an_agent_there_is_nothing_to_signal(paths: RunPaths) -> None:
    said = call("signal", "complete")
    assert said.code == 1
    assert "signal is for agents: this shell is none (NBS_FLEET_RUN is not set)" in said.err


def test_a_signal_of_an_agent_that_is_in_no_team_is_refused(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBS_HANDLE", "zed")
    monkeypatch.setenv("NBS_FLEET_RUN", paths.run)
    assert call("signal", "complete").code == 4
