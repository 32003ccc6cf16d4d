"""The slow poll of a supervisor: who looks again, and that a team that rests is hardly touched."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import AgentState
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.sidecar.ground import Ground
from nbs_fleet.sidecar.polling import POLL_SECONDS, TOGETHER
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
        self.polls: list[tuple[float, int]] = []
        """When there was a poll (the loop's clock), and its number."""
        self.stirred: Callable[[], None] = lambda: None
        busy, idle = AgentRecord("ana", state=AgentState.BUSY), AgentRecord("bo", state=AgentState.IDLE)
        self.fleet = Fleet(lives={"ana": Life(busy, None), "bo": Life(idle, None)})

    def poll(self, number: int) -> Polled | None:
        with suppress(RuntimeError):
            self.polls.append((asyncio.get_running_loop().time(), number))
        return self.polled

    def look(self, what: object) -> None:
        self.called.append(("look", what))

    def glance(self) -> None:
        self.called.append(("glance", None))

    def measure(self, handle: str) -> None:
        self.called.append(("measure", handle))

    def rounds(self) -> Rounds:
        """Their slow poll."""
        return Rounds(
            cast("Sidecars", self),
            cast("Desk", self),
            cast("Attention", self),
            cast("Upkeep", self),
            fleet=lambda: self.fleet,
            measure=self.measure,
        )

    def once(self) -> list[tuple[str, object]]:
        """What one poll calls."""
        used = self.rounds().poll(1)
        assert used is (self.polled is not None or self.waits)
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


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time passes at once while nothing is to be done."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def do(self, work: Callable[[], None]) -> None:
        """Do something while the loop runs."""

        async def doing() -> None:
            work()

        self.run_until_complete(doing())

    def pass_(self, seconds: float) -> None:
        """Let this time pass."""
        end = self.now + seconds
        while (at := min((timer.when() for timer in self._timers()), default=math.inf)) <= end:
            self.now = max(self.now, at)
            self.run_until_complete(asyncio.sleep(0))
        self.now = end

    def _timers(self) -> list[asyncio.TimerHandle]:
        scheduled: list[asyncio.TimerHandle] = vars(self)["_scheduled"]
        return [timer for timer in scheduled if not timer.cancelled()]


@pytest.fixture
def clock() -> Iterator[Clock]:
    loop = Clock()
    yield loop
    loop.close()


def test_while_all_rests_there_is_a_poll_only_when_quiet_agents_have_turns(clock: Clock) -> None:
    team = Team(None)
    clock.do(team.rounds().open)
    clock.pass_(2 * TOGETHER * POLL_SECONDS + 1)
    assert team.polls == [(30.0, 1), (150.0, TOGETHER), (300.0, 2 * TOGETHER)]


def test_as_long_as_anybody_looks_there_is_one_each_half_a_minute(clock: Clock) -> None:
    team = Team(Polled(HANDLES, frozenset()))
    clock.do(team.rounds().open)
    clock.pass_(6 * POLL_SECONDS + 1)
    assert team.polls == [(number * 30.0, number) for number in range(1, 7)]


@pytest.mark.parametrize("after", [1.0, 29.0, 61.0, 100.0, 119.0])
def test_whatever_happens_the_next_poll_comes_as_soon_as_ever(clock: Clock, after: float) -> None:
    team = Team(None)
    rounds = team.rounds()
    clock.do(rounds.open)
    clock.pass_(POLL_SECONDS)
    assert len(team.polls) == 1
    clock.pass_(after)
    clock.do(team.stirred)
    clock.pass_(POLL_SECONDS)
    assert len(team.polls) == 2
    assert team.polls[1][0] <= POLL_SECONDS + after + POLL_SECONDS
    # And then those with turns are not far, nor left out.
    clock.pass_((TOGETHER + 1) * POLL_SECONDS)
    assert TOGETHER in [number for _, number in team.polls]
    rounds.close()
    seen = len(team.polls)
    clock.do(team.stirred)
    clock.pass_(20 * POLL_SECONDS)
    assert len(team.polls) == seen


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
    for number in range(1, TOGETHER + 1):
        hosted.poll(number)
    assert (known["ana"].polls, known["bo"].polls) == (1, TOGETHER)
    hosted.note("bo", resting())
    assert [hosted.poll(number) is None for number in range(1, TOGETHER + 1)] == [True] * (TOGETHER - 1) + [False]
    assert (known["ana"].polls, known["bo"].polls) == (2, TOGETHER + 1)


def test_where_changes_may_be_silent_all_are_asked_each_time(hosted: Sidecars) -> None:
    known = Known()
    hosted._running["ana"] = cast("Sidecar", known)
    hosted.note("ana", resting())
    cast("Telling", hosted._watcher).tells = False
    assert hosted.poll(1) == Polled(frozenset({"ana"}), frozenset())


def test_who_left_is_not_asked_any_more(hosted: Sidecars) -> None:
    hosted._running["ana"] = cast("Sidecar", Known())
    hosted.note("ana", replace(resting(), presumed=True))
    hosted.end("ana")
    hosted.note("ana", replace(resting(), presumed=True))
    assert hosted.poll(1) is None
    assert not hosted._restless
