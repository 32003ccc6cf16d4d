"""Stories for people: the last entries of several merged by time, and what is added as it comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbs_fleet.cli import stories
from nbs_fleet.cli.stories import Line, Tail, last
from nbs_fleet.plan.paths import RunPaths
from tests.support.cli_world import agent, call, make_team, write_story

AT = 1_700_000_000.0


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    """A team whose story is told by three files."""
    made = make_team(tmp_path / "root", "review", (agent("ana"), agent("bo")))
    write_story(made.story, {"at": AT, "what": "up", "agents": 2})
    write_story(made.agent("ana").story, {"at": AT + 1, "what": "started", "pid": 7, "session": "x y"})
    write_story(made.agent("bo").story, {"at": AT + 0.5, "what": "started", "pid": 8, "none": None, "sub": {"a": [1]}})
    write_story(made.agent("ana").story, {"at": AT + 2, "what": "died", "text": "\x1b[2Jboo\nnext"})
    return made


def test_lines_are_in_order_of_time_and_name_the_agent(paths: RunPaths) -> None:
    said = call("logs")
    assert said.code == 0
    assert said.out.splitlines() == [
        "2023-11-14 22:13:20 team  up  agents 2",
        '2023-11-14 22:13:20 bo    started  pid 8  sub {"a": [1]}',
        "2023-11-14 22:13:21 ana   started  pid 7  session x y",
        "2023-11-14 22:13:22 ana   died  ^[[2Jboo next",
    ]


def test_decisions_are_told_only_when_asked_for_and_states_read_well(paths: RunPaths) -> None:
    story = paths.agent("bo").story
    write_story(story, {"at": AT + 3, "what": "state", "state": {"handle": "bo"}})
    write_story(
        story, {"at": AT + 4, "what": "state", "state": "limited", "ready": True, "until": AT + 60, "detail": ""}
    )
    write_story(story, *({"at": AT + 5 + i, "what": "decided", "event": {}} for i in range(5)))
    assert call("logs", "-n", "1").out == (
        "2023-11-14 22:13:24 bo    state  limited  ready  until 2023-11-14 22:14:20\n"
    )
    assert len(call("logs", "bo", "--all").out.splitlines()) == 8
    assert len(call("logs", "bo", "--json").out.splitlines()) == 8


def test_one_agent_and_a_number_choose(paths: RunPaths) -> None:
    assert len(call("logs", "ana").out.splitlines()) == 2
    assert call("logs", "-n", "1").out == "2023-11-14 22:13:22 ana   died  ^[[2Jboo next\n"
    assert len(call("logs", "-n", "0").out.splitlines()) == 4


def test_json_gives_one_object_per_line(paths: RunPaths) -> None:
    found = [json.loads(line) for line in call("logs", "bo", "--json").out.splitlines()]
    assert found == [{"handle": "bo", "at": AT + 0.5, "what": "started", "pid": 8, "none": None, "sub": {"a": [1]}}]


def test_an_unknown_agent_is_said(paths: RunPaths) -> None:
    said = call("logs", "anna")
    assert said.code == 4
    assert 'did you mean "ana"?' in said.err


def test_what_is_no_entry_is_passed_over(paths: RunPaths) -> None:
    with open(paths.agent("bo").story, "ab") as file:
        file.write(b'{"at": 1, "wh\n\xff\xff\n[1]\n')
    assert len(call("logs", "bo").out.splitlines()) == 1


def test_older_segments_are_read_where_the_newest_has_too_little(paths: RunPaths) -> None:
    story = paths.agent("bo").story
    for number in (2, 1):
        write_story(f"{story}.{number}", {"at": AT - number, "what": f"old-{number}"})
    assert [line.entry["what"] for line in last({"bo": story}, 2)] == ["old-1", "started"]
    assert [line.entry["what"] for line in last({"bo": story}, 0)] == ["old-2", "old-1", "started"]


@settings(deadline=None, max_examples=40)
@given(sizes=st.lists(st.integers(0, 60), max_size=12), number=st.integers(0, 14), block=st.integers(1, 40))
def test_reading_from_the_end_gives_the_same_as_reading_all(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], number: int, block: int
) -> None:
    path = str(tmp_path_factory.mktemp("story") / "story.jsonl")
    entries: list[dict[str, Any]] = [{"at": float(i), "what": "x" * size} for i, size in enumerate(sizes)]
    write_story(path, *entries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stories, "BLOCK", block)
        assert [line.entry for line in last({"a": path}, number)] == (entries[-number:] if number else entries)


def test_a_tail_gives_whole_entries_once_across_segments(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = str(tmp_path / "story.jsonl")
    tail = Tail(path)
    request.addfinalizer(tail.close)
    assert tail.read() == []
    write_story(path, {"at": 1})
    assert tail.read() == [{"at": 1}]
    with open(path, "ab") as file:
        file.write(b'{"at"')
    assert tail.read() == []
    with open(path, "ab") as file:
        file.write(b': 2}\n{"at": 3}\n')
    os.rename(path, path + ".1")
    assert tail.read() == [{"at": 2}, {"at": 3}]
    write_story(path, {"at": 4})
    assert tail.read() == [{"at": 4}]
    assert tail.read() == []


def test_a_tail_begins_at_the_end_unless_told_otherwise(tmp_path: Path) -> None:
    path = str(tmp_path / "story.jsonl")
    write_story(path, {"at": 1})
    with closing(Tail(path)) as new, closing(Tail(path, from_start=True)) as all_of_it:
        assert (new.read(), all_of_it.read()) == ([], [{"at": 1}])
        write_story(path, {"at": 2})
        assert (new.read(), all_of_it.read()) == ([{"at": 2}], [{"at": 2}])
        assert [line.at for line in last({"a": path}, 0, ends={"a": new.start})] == [1.0]


def test_an_entry_without_a_time_stands_first() -> None:
    assert Line("a", {"what": "x"}).at == 0.0
    assert Line("a", {"at": True}).at in (0.0, 1.0)


def test_following_prints_what_is_added_and_ctrl_c_ends_it(paths: RunPaths) -> None:
    argv = [sys.executable, "-m", "nbs_fleet", "logs", "-f", "-n", "1", "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert json.loads(process.stdout.readline())["what"] == "died"
            write_story(paths.agent("bo").story, {"at": AT + 3, "what": "more"})
            assert json.loads(process.stdout.readline()) == {"handle": "bo", "at": AT + 3, "what": "more"}
            write_story(paths.story, {"at": AT + 4, "what": "down"})
            assert json.loads(process.stdout.readline())["what"] == "down"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=10) == 130
            assert process.stderr.read() == "error: interrupted\n"
        finally:
            process.kill()
