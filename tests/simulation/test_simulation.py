"""A team's life in virtual time keeps every law, whatever befalls it; and no plausible fault goes unnoticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.mutants import MUTANTS, mutated
from tests.simulation.runs import many, play, read, shrink, story

KEPT = sorted((Path(__file__).resolve().parent.parent / "histories").glob("world-*.json"))
FAULTS = (
    "happened: supervisor",
    "happened: kill",
    "happened: disk",
    "effect cut off",
    "notification lost",
    "effect failed",
)


@pytest.mark.parametrize("first", [0, 16])
def test_every_law_is_kept_over_hours(first: int) -> None:
    counts, outcomes = many(range(first, first + 16), 2)
    assert not [outcome.broke for outcome in outcomes if outcome.broke]
    assert counts["peace"] == 32
    assert all(counts[fault] for fault in FAULTS), counts


@pytest.mark.long
@pytest.mark.parametrize("first", range(100_000, 100_400, 50))
def test_every_law_is_kept_over_days(first: int) -> None:
    _, outcomes = many(range(first, first + 50), 6)
    assert not [f"seed {outcome.seed}: {outcome.broke}" for outcome in outcomes if outcome.broke]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_once_broke_a_law_does_so_no_more(path: Path) -> None:
    assert play(read(path)).broke == ""


def test_a_run_can_be_repeated() -> None:
    assert play(story(7, 1)) == play(story(7, 1))


def test_a_broken_law_is_shrunk_to_what_it_takes() -> None:
    with mutated("takes back what is being used"):
        told = story(0, 1)
        short = shrink(told, tries=40)
        assert play(short).broke == short.broke != ""
    assert len(short.happenings) < len(told.happenings) / 2
    assert play(short).broke == ""


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_in_the_deciding_code_is_noticed(name: str) -> None:
    with mutated(name):
        assert any(play(story(seed, 2)).broke for seed in range(600))
