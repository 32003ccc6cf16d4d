"""The slow poll of a supervisor: who looks again, and that a team that rests is hardly touched."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import AgentState
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.sidecar.ground import Ground
from nbs_fleet.sidecar.polling import TOGETHER
from nbs_fleet.sidecar.watcher import Sidecar
from nbs_fleet.supervisor.attend import Attention
from nbs_fleet.supervisor.desk import Desk
from nbs_fleet.supervisor.fleet import Fleet, Life
from nbs_fleet.supervisor.hosting import Polled, Sidecars
from nbs_fleet.supervisor.rounds import Rounds
from nbs_fleet.supervisor.story import Story
from nbs_fleet.supervisor.upkeep import Upkeep
from tests.sidecar.test_polling import resting

HANDLES = frozenset({"ana", "bo"})


class Team:
    """Two agents whose parts only say that they were called."""

    def __init__(self, polled: Polled | None, *, waits: bool = False) -> None:
        self.polled, self.waits = polled, waits
        self.called: list[tuple[str, object]] = []
        busy, idle = AgentRecord("ana", state=AgentState.BUSY), AgentRecord("bo", state=AgentState.IDLE)
        self.fleet = Fleet(lives={"ana": Life(busy, None), "bo": Life(idle, None)})

    def poll(self) -> Polled | None:
        return self.polled

    def look(self, what: object) -> None:
        self.called.append(("look", what))

    def glance(self) -> None:
        self.called.append(("glance", None))

    def measure(self, handle: str) -> None:
        self.called.append(("measure", handle))

    def once(self) -> list[tuple[str, object]]:
        """What one poll calls."""
        rounds = Rounds(
            cast("Sidecars", self),
            cast("Desk", self),
            cast("Attention", self),
            cast("Upkeep", self),
            fleet=lambda: self.fleet,
            measure=self.measure,
        )
        rounds.poll()
        return self.called


def test_of_a_team_that_rests_only_what_is_told_nowhere_is_looked_at() -> None:
    assert Team(None).once() == [("glance", None)]


def test_time_alone_may_bring_an_item_back_so_a_queue_with_items_is_looked_at() -> None:
    team = Team(None, waits=True)
    assert team.once() == [("look", HANDLES), ("look", team.fleet), ("look", HANDLES)]


def test_whose_turn_it_is_is_looked_at_and_measured_while_it_works() -> None:
    team = Team(Polled(HANDLES, frozenset()))
    assert team.once() == [
        ("look", frozenset()),
        ("look", team.fleet),
        ("look", frozenset()),
        ("measure", "ana"),
    ]


class Known:
    """A sidecar that looks at everything whenever it is asked."""

    def __init__(self) -> None:
        self.polls = 0

    def poll(self, _number: int, *, told: bool) -> bool:
        self.polls += 1
        return True


class Telling:
    """Notification that can be relied on, or not."""

    tells = True


@pytest.fixture
def hosted(tmp_path: Path) -> Sidecars:
    return Sidecars(
        cast("Ground", None),
        cast("Watcher", Telling()),
        tell=lambda *_: None,
        heard=lambda *_: None,
        story=lambda handle: Story(str(tmp_path / handle)),
    )


def test_between_the_turns_only_who_does_not_rest_is_asked(hosted: Sidecars) -> None:
    known = {"ana": Known(), "bo": Known()}
    hosted._running.update(cast("dict[str, Sidecar]", known))
    hosted.note("ana", resting())
    hosted.note("bo", replace(resting(), presumed=True))
    for _ in range(TOGETHER):
        hosted.poll()
    assert (known["ana"].polls, known["bo"].polls) == (1, TOGETHER)
    hosted.note("bo", resting())
    assert [hosted.poll() is None for _ in range(TOGETHER)] == [True] * (TOGETHER - 1) + [False]
    assert (known["ana"].polls, known["bo"].polls) == (2, TOGETHER + 1)


def test_where_changes_may_be_silent_all_are_asked_each_time(hosted: Sidecars) -> None:
    known = Known()
    hosted._running["ana"] = cast("Sidecar", known)
    hosted.note("ana", resting())
    cast("Telling", hosted._watcher).tells = False
    assert hosted.poll() == Polled(frozenset({"ana"}), frozenset())


def test_who_left_is_not_asked_any_more(hosted: Sidecars) -> None:
    hosted._running["ana"] = cast("Sidecar", Known())
    hosted.note("ana", replace(resting(), presumed=True))
    hosted.end("ana")
    hosted.note("ana", replace(resting(), presumed=True))
    assert hosted.poll() is None
    assert not hosted._restless
