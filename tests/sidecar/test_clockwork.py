"""Standups and Pythia in virtual time: exactly one per interval and per bucket, for many sidecars."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from nbs_fleet.sidecar import pythia, standup
from nbs_fleet.sidecar.pythia import Count, Verdict
from nbs_fleet.sidecar.standup import Board

EVERY = 900.0


def test_the_first_standup_comes_after_a_full_interval() -> None:
    board = Board(None, news=1, all_idle=False)
    assert not standup.post(board, EVERY, began=1000.0, jitter=0.0, now=1000.0 + EVERY - 1)
    assert standup.post(board, EVERY, began=1000.0, jitter=0.0, now=1000.0 + EVERY)


def test_a_team_that_begins_anew_waits_a_full_interval_though_the_last_standup_is_old() -> None:
    board = Board(last=1000.0, news=1, all_idle=False)
    began = 1000.0 + 50 * EVERY
    assert standup.due(board, EVERY, began, 0.0, began + 1.0) == began + EVERY
    assert not standup.post(board, EVERY, began, 0.0, began + EVERY - 1.0)
    # A chat that is shared: the other team's standup counts, too.
    shared = Board(last=began + 60.0, news=1, all_idle=False)
    assert standup.due(shared, EVERY, began, 0.0, began + EVERY) == began + 60.0 + EVERY


def test_none_while_paused_and_none_when_all_are_idle_with_nothing_new() -> None:
    now = 10_000.0
    assert not standup.post(Board(0.0, 5, all_idle=False, paused=True), EVERY, 0.0, 0.0, now)
    assert not standup.post(Board(0.0, 0, all_idle=True), EVERY, 0.0, 0.0, now)
    assert standup.post(Board(0.0, 0, all_idle=False), EVERY, 0.0, 0.0, now)


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_six_sidecars_in_a_virtual_week_post_one_standup_per_interval(seed: int) -> None:
    rand = random.Random(seed)
    last: float | None = None
    posts: list[float] = []
    jitters = [rand.random() for _ in range(6)]
    for second in range(0, 7 * 86_400, 60):
        now = float(second)
        for jitter in rand.sample(jitters, 6):
            seen = last
            if standup.post(Board(seen, 1, all_idle=False), EVERY, 0.0, jitter, now):
                last = now
                posts.append(now)
    gaps = [b - a for a, b in pairwise(posts)]
    assert all(EVERY <= gap <= EVERY * (1 + standup.JITTER) + 60 for gap in gaps)
    assert len(posts) >= 7 * 86_400 / (EVERY * (1 + standup.JITTER) + 60) - 1


def test_a_first_sight_of_old_decisions_is_no_checkpoint() -> None:
    assert pythia.checkpoint(Count(57, None), 20) == Verdict(2, fire=False)


def test_a_bucket_that_is_crossed_fires_once() -> None:
    assert pythia.checkpoint(Count(60, 2), 20) == Verdict(3, fire=True)
    assert pythia.checkpoint(Count(61, 3), 20) == Verdict(None, fire=False)


def test_a_count_that_shrank_is_a_new_base() -> None:
    assert pythia.checkpoint(Count(5, 3), 20) == Verdict(0, fire=False)


@given(st.lists(st.sampled_from(["decide", "look", "restart", "prune"]), max_size=400), st.integers(1, 30))
def test_over_any_history_each_bucket_fires_at_most_once_between_two_prunings(steps: list[str], every: int) -> None:
    decisions, bucket = 0, None
    fired: list[int] = []
    for step in steps:
        if step == "decide":
            decisions += 1
        elif step == "prune":
            decisions = decisions // 2
            fired = []
        verdict = pythia.checkpoint(Count(decisions, bucket), every)
        if verdict.bucket is not None:
            bucket = verdict.bucket
        if verdict.fire:
            assert bucket is not None
            assert bucket not in fired
            fired.append(bucket)
