"""A story that was recorded is decided on as it was then; what this version decides otherwise is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.model import Moment
from nbs_fleet.sidecar import replay as module
from nbs_fleet.sidecar.actions import Event, Ticked
from nbs_fleet.sidecar.decide import decide
from nbs_fleet.sidecar.mind import Mind, Watching
from nbs_fleet.sidecar.replay import replay
from nbs_fleet.supervisor.story import Story
from tests.histories.test_histories import FILES, History, load


def record(path: Path, history: History) -> int:
    """Play a history with a story beside it, as the supervisor keeps one; the number of decisions."""
    story = Story(str(path))
    mind = Mind(Watching(history.capabilities, expects_prompt=history.prompted, notices=history.rules))
    story.tell(1000.0, module.MIND, mind=mind)
    number = 0

    def step(event: Event, at: float) -> None:
        nonlocal mind, number
        # Thousandths are not enough for a time at which something becomes due.
        now = Moment(1000.0 + at, 1000.0 + at)
        before = mind
        mind, actions = decide(before, event, now)
        times = {"wall": now.wall, "mono": now.mono}
        if actions:
            story.tell(now.wall, module.DECIDED, event=event, actions=actions, **times)
        elif mind != before:
            story.tell(now.wall, module.SEEN, event=event, **times)
        number += bool(actions) or mind != before

    for one in history.steps:
        step(one.event, one.at + 0.000_123_456_7)
        for _ in range(3):
            if mind.wake_at is not None:
                step(Ticked(), mind.wake_at - 1000.0)
    return number


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_history_is_replayed_to_the_same_decisions(tmp_path: Path, path: Path) -> None:
    number = record(tmp_path / "story.jsonl", load(path))
    found = replay(lines(tmp_path / "story.jsonl"))
    assert (found.decisions, found.headless, found.differences) == (number, 0, ())
    assert number > 2


def test_a_decision_that_comes_out_otherwise_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "story.jsonl", load(FILES[0]))
    story = lines(tmp_path / "story.jsonl")
    told = next(n for n, line in enumerate(story) if any(a["type"] == "Notify" for a in line.get("actions", ())))

    def silent(mind: Mind, event: Event, now: Moment) -> tuple[Mind, tuple[Any, ...]]:
        mind, actions = decide(mind, event, now)
        return mind, tuple(action for action in actions if type(action).__name__ != "Notify")

    monkeypatch.setattr(module, "decide", silent)
    first = replay(story).differences[0]
    assert (first.line, first.event, first.then) == (
        told + 1,
        story[told]["event"]["type"],
        tuple(story[told]["actions"]),
    )
    assert "Notify" not in str(first.now)


def test_what_has_no_beginning_is_counted_and_what_can_t_be_read_is_said(tmp_path: Path) -> None:
    record(tmp_path / "story.jsonl", load(FILES[0]))
    story = lines(tmp_path / "story.jsonl")
    found = replay(story[1:])
    assert (found.decisions, found.headless) == (0, len(story) - 1)
    odd = {"at": 1.0, "what": "decided", "event": {"type": "FromTheFuture"}, "actions": [], "wall": 1.0, "mono": 1.0}
    found = replay([*story[:3], odd, *story[3:]])
    assert [(d.line, d.event) for d in found.differences] == [(4, "FromTheFuture")]
    assert "can't be read" in found.differences[0].now
    assert found.headless == len(story) - 3
    assert replay([{"what": "mind", "mind": {"no": "mind"}}, *story[1:]]).decisions == 0


def test_other_lines_of_a_story_are_no_decisions() -> None:
    assert replay([{"at": 1.0, "what": "noticed"}, {"what": "state", "state": {}}, {}]).decisions == 0
