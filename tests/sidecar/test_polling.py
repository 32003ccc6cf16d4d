"""Whose turn a slow poll is: each quiet agent's once in a round, everybody else's always."""

from __future__ import annotations

from msgspec.structs import replace

from nbs_fleet.drivers.base import Capabilities
from nbs_fleet.model import Message
from nbs_fleet.sidecar.actions import Faulted, Paused, ScreenSeen
from nbs_fleet.sidecar.mind import Mind
from nbs_fleet.sidecar.parcels import Parcel
from nbs_fleet.sidecar.polling import POLL_SECONDS, ROUND, TOGETHER, is_due, is_quiet, next_number, seconds_to_next
from tests.support.sidecar_run import BUSY, IDLE, Run

HANDLES = [f"a-{number}" for number in range(200)]


def resting() -> Mind:
    run = Run(can=Capabilities())
    run.tell(ScreenSeen(IDLE))
    return run.mind


def turns(mind: Mind, handle: str, *, first: int = 0, told: bool = True) -> int:
    return sum(is_due(mind, handle, number, told=told) for number in range(first, first + ROUND))


def test_a_quiet_agent_has_one_turn_in_any_round() -> None:
    mind = resting()
    assert is_quiet(mind)
    assert {turns(mind, handle, first=first) for handle in HANDLES for first in (0, 1, 7)} == {1}


def test_a_round_spreads_its_work_over_some_of_its_polls() -> None:
    mind = resting()
    together = [sum(is_due(mind, handle, number, told=True) for handle in HANDLES) for number in range(ROUND)]
    assert [number for number, some in enumerate(together) if some] == list(range(0, ROUND, TOGETHER))
    assert max(together) <= 2 * len(HANDLES) * TOGETHER / ROUND


def test_where_changes_may_be_silent_each_poll_is_everybodys() -> None:
    assert turns(resting(), "ana", told=False) == ROUND


def test_who_works_or_has_something_under_way_has_each_turn() -> None:
    run = Run(can=Capabilities())
    assert turns(run.mind, "ana") == ROUND  # not seen yet
    run.tell(ScreenSeen(BUSY))
    assert turns(run.mind, "ana") == ROUND
    mind = resting()
    waits = Parcel(Message("d-1-x", "ana", "bo", "hello", 0.0))
    assert turns(replace(mind, post=replace(mind.post, parcels=(waits,))), "ana") == ROUND


def test_what_failed_is_tried_again_at_the_next_poll() -> None:
    run = Run(can=Capabilities())
    run.tell(ScreenSeen(IDLE), Faulted("no space left"))
    assert turns(run.mind, "ana") == ROUND


def test_a_paused_agent_may_be_quiet() -> None:
    run = Run(can=Capabilities())
    run.tell(ScreenSeen(IDLE), Paused(True))
    assert is_quiet(run.mind)


def test_no_poll_with_turns_is_left_out_however_late_the_next_one_comes() -> None:
    for number in range(3 * TOGETHER):
        for seconds in (0.0, 1.0, 29.0, 30.0, 44.0, 90.0, 149.9, 150.0, 1e6):
            following = next_number(number, seconds)
            assert number < following <= number + TOGETHER
            assert following // TOGETHER == number // TOGETHER or following % TOGETHER == 0


def test_while_all_rests_the_next_poll_is_the_one_with_turns() -> None:
    for number in range(3 * TOGETHER):
        assert next_number(number, seconds_to_next(number, rests=True)) % TOGETHER == 0
        assert seconds_to_next(number, rests=False) == POLL_SECONDS
