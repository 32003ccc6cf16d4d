"""Plays each recorded history through the real deciding code; a failure names the lesson. The format: README.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from nbs_fleet.drivers.base import Capabilities
from nbs_fleet.model import Moment
from nbs_fleet.sidecar.actions import Action, Event, Ticked
from nbs_fleet.sidecar.decide import decide
from nbs_fleet.sidecar.delivery import Counted
from nbs_fleet.sidecar.mind import Mind, Watching
from nbs_fleet.sidecar.notices import NoticeRules, Notify

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("L*.json"))
TICKS = 10_000
"""More wake-ups than this in one history are a spin."""
LESSONS = 85


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """An event at a second, and what must and must not be done from then until the next step."""

    at: float
    event: Event
    must: tuple[dict[str, Any], ...] = ()
    never: tuple[dict[str, Any], ...] = ()


class History(Struct, frozen=True, forbid_unknown_fields=True):
    """One story: how the agent begins, what happens to it, and when the story ends (seconds)."""

    lesson: int
    says: str
    until: float
    steps: tuple[Step, ...]
    rules: NoticeRules = NoticeRules()
    prompted: bool = False
    capabilities: Capabilities = Capabilities(state_file=True, title=True)


def load(path: Path) -> History:
    return msgspec.json.decode(path.read_bytes(), type=History)


def within(wanted: Any, found: Any) -> bool:
    """Whether everything that is asked for is there; of a mapping, what is not asked for is free."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and within(value, found[key]) for key, value in wanted.items())
    return bool(wanted == found)


class Player:
    """A sidecar's mind in a time that the history moves."""

    def __init__(self, history: History) -> None:
        self.history, self.ticks = history, 0
        watching = Watching(history.capabilities, expects_prompt=history.prompted, notices=history.rules)
        self.mind = Mind(watching)

    def tell(self, event: Event, at: float) -> list[Action]:
        now = Moment(1000.0 + at, 1000.0 + at)
        self.mind, actions = decide(self.mind, event, now)
        if not any(isinstance(action, Notify) for action in actions):
            return list(actions)
        # The client takes a notice at once: its message came and went.
        self.mind, more = decide(self.mind, Counted(()), now)
        return [*actions, *more]

    def play(self) -> None:
        steps = self.history.steps
        ends = (*(step.at for step in steps[1:]), self.history.until)
        for number, (step, end) in enumerate(zip(steps, ends, strict=True)):
            actions = self.tell(step.event, step.at)
            while (due := self.mind.wake_at) is not None and due - 1000.0 < end:
                self.ticks += 1
                assert self.ticks < TICKS, f"{self.name}: wakes without end"
                actions += self.tell(Ticked(), max(due - 1000.0, step.at))
            self._judge(step, number, msgspec.to_builtins(actions))

    @property
    def name(self) -> str:
        return f"L{self.history.lesson} ({self.history.says})"

    def _judge(self, step: Step, number: int, actions: list[Any]) -> None:
        where = f"{self.name}, step {number} at {step.at:g} s"
        for wanted in step.must:
            assert any(within(wanted, action) for action in actions), f"{where}: no {wanted} in {actions}"
        for unwanted in step.never:
            found = [action for action in actions if within(unwanted, action)]
            assert not found, f"{where}: {found}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_lesson_was_learned(path: Path) -> None:
    history = load(path)
    assert re.match(rf"L{history.lesson:02}-", path.name)
    assert any(step.must or step.never for step in history.steps)
    Player(history).play()


def rows() -> list[tuple[int, str]]:
    """Number and last cell of each row of the table."""
    found = re.findall(r"^\| L(\d+) \|.*\| ([^|]+) \|$", (HERE / "README.md").read_text(), re.MULTILINE)
    return [(int(number), cell) for number, cell in found]


def test_the_table_has_every_lesson_once_in_order() -> None:
    assert [number for number, _ in rows()] == list(range(1, LESSONS + 1))


@pytest.mark.parametrize(("number", "cell"), rows())
def test_what_the_table_names_is_there(number: int, cell: str) -> None:
    names = re.findall(r"`([^`]+)`", cell)
    assert names or cell.startswith("not ours: "), f"L{number} is neither covered nor excused"
    for name in names:
        file, _, test = name.partition("::")
        path = HERE / file if file.startswith("L") else HERE.parent / file
        assert path.is_file(), f"L{number}: {file} is not there"
        assert not test or re.search(rf"^(async )?def {test}\(", path.read_text(), re.MULTILINE), (
            f"L{number}: no {name}"
        )


def test_each_history_is_in_the_table_under_its_lesson() -> None:
    table = dict(rows())
    for path in FILES:
        assert f"`{path.name}`" in table[load(path).lesson]
