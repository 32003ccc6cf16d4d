"""A team of five with a bus and two chats, in virtual time, against a model of its own: who is told what, and when."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.notice_world import World


def play(steps: int, seed: int) -> World:
    """Let things happen, then let all become quiet."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), seed)
        for _ in range(steps):
            world.step()
        world.settle()
        return world


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 80))
def test_everyone_is_told_of_all_that_is_for_it_and_of_nothing_else(seed: int, steps: int) -> None:
    play(steps, seed)


@pytest.mark.long
def test_so_it_is_over_two_thousand_messages_and_events() -> None:
    world = play(3800, 4)
    assert world.traffic.made >= 2000
    assert all(person.notices > 30 for person in world.model.people.values())
    assert len({whom for whom, _ in world.called}) == 5
