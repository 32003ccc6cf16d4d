"""`nbs-fleet replay`: a story by its file or its agent, and an exit code that says whether it came out the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.sidecar.replay import MIND
from tests.histories.test_histories import FILES, load
from tests.sidecar.test_replay import lines, record
from tests.support.cli_world import agent, call, make_team, write_story


@pytest.fixture
def story(tmp_path: Path) -> list[dict[str, Any]]:
    record(tmp_path / "copy.jsonl", load(FILES[0]))
    return lines(tmp_path / "copy.jsonl")


def test_the_story_of_an_agent_is_replayed_with_its_older_segments(tmp_path: Path, story: list[dict[str, Any]]) -> None:
    path = make_team(tmp_path / "root", "review", (agent("ana"), agent("bo"))).agent("ana").story
    write_story(f"{path}.1", *story[:4])
    write_story(path, *story[4:])
    said = call("replay", "ana")
    assert (said.code, said.out) == (0, f"{len(story) - 1} decisions replayed, all as recorded\n")
    assert call("replay", "bo").code == 1
    assert call("replay", "cy").code == 4


def test_a_copy_from_elsewhere_is_replayed_by_its_path_and_what_differs_is_shown(
    tmp_path: Path, story: list[dict[str, Any]]
) -> None:
    told = next(n for n, line in enumerate(story) if any(a["type"] == "Notify" for a in line.get("actions", ())))
    story[told]["actions"] = []
    path = tmp_path / "copied.jsonl"
    write_story(str(path), *story)
    said = call("replay", str(path))
    assert said.code == 1
    assert said.out.startswith(f"line {told + 1}  ")
    assert "then  nothing" in said.out
    assert said.out.endswith(f"{len(story) - 1} decisions replayed, 1 differ\n")
    found = json.loads(call("replay", str(path), "--json").out)
    assert [d["line"] for d in found["differences"]] == [told + 1]


def test_what_went_with_an_older_segment_is_counted(tmp_path: Path, story: list[dict[str, Any]]) -> None:
    path = tmp_path / "copied.jsonl"
    write_story(str(path), *(line for line in story if line["what"] != MIND))
    assert call("replay", str(path)).out == (
        f"0 decisions replayed, all as recorded; {len(story) - 1} before its beginning is known\n"
    )
    assert call("replay", str(tmp_path / "none.jsonl")).code == 1
