"""Waves: who waits for whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.errors import FleetError
from nbs_fleet.plan.waves import waves
from nbs_fleet.spec.team import Agent


def agent(handle: str, *needs: str, base: str | None = None) -> Agent:
    return Agent(handle=handle, base=base or handle, role=None, driver="sim", dir="/r", depends_on=needs)


def test_who_needs_nobody_starts_first() -> None:
    assert waves([agent("a"), agent("b", "a"), agent("c", "a", "b"), agent("d")]) == {"a": 0, "b": 1, "c": 2, "d": 0}


def test_file_order_does_not_matter() -> None:
    assert waves([agent("c", "b"), agent("b", "a"), agent("a")]) == {"c": 2, "b": 1, "a": 0}


def test_a_base_handle_stands_for_all_its_copies() -> None:
    team = [agent("bo-1", base="bo"), agent("bo-2", "ana", base="bo"), agent("ana"), agent("cy", "bo")]
    assert waves(team) == {"bo-1": 0, "bo-2": 1, "ana": 0, "cy": 2}


def test_a_circle_is_named() -> None:
    with pytest.raises(FleetError) as caught:
        waves([agent("x", "a"), agent("a", "b"), agent("b", "c"), agent("c", "a"), agent("free")])
    assert caught.value.message == "depends_on goes round in a circle: a -> b -> c -> a"


def test_who_needs_itself_is_a_circle() -> None:
    with pytest.raises(FleetError, match="a -> a"):
        waves([agent("a", "a")])


@given(st.data())
def test_nobody_starts_before_those_it_needs(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 8))
    team = [
        agent(f"a{i}", *(f"a{j}" for j in data.draw(st.sets(st.integers(0, i - 1)) if i else st.just(set()))))
        for i in range(count)
    ]
    placed = waves(data.draw(st.permutations(team)))
    for one in team:
        assert placed[one.handle] == max((placed[need] + 1 for need in one.depends_on), default=0)
