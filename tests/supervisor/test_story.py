"""The story's file: it stays open, and is always the one that lies there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nbs_fleet.supervisor.story import Story


def words(path: Path) -> list[str]:
    return [line.split('"what":"')[1].split('"')[0] for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "change",
    [Path.unlink, lambda path: path.rename(f"{path}.bak"), lambda path: os.replace(path, f"{path}.bak")],
    ids=["removed", "moved", "replaced"],
)
def test_a_file_that_is_not_there_any_more_is_written_to_no_longer(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    path = tmp_path / "story.jsonl"
    story = Story(str(path))
    story.tell(1.0, "one")
    story.tell(2.0, "two")
    assert words(path) == ["one", "two"]
    change(path)
    story.tell(3.0, "three")
    assert words(path) == ["three"]
    assert story.dropped == 0


def test_a_file_that_was_cut_goes_on_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "story.jsonl"
    story = Story(str(path))
    story.tell(1.0, "one")
    os.truncate(path, 0)
    story.tell(2.0, "two")
    assert words(path) == ["two"]


def test_a_new_segment_is_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "story.jsonl"
    story = Story(str(path))
    story.tell(1.0, "one")
    story.turn(2.0, {})
    story.tell(3.0, "two")
    assert words(path) == ["state", "two"]
    assert words(tmp_path / "story.jsonl.1") == ["one"]


def test_a_story_that_is_forgotten_leaves_nothing_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    stories = [Story(str(tmp_path / str(number))) for number in range(5)]
    for story in stories:
        story.tell(1.0, "one")
    assert len(os.listdir("/proc/self/fd")) == before + 5
    del stories, story
    assert len(os.listdir("/proc/self/fd")) == before
