"""The restart policy: what follows an end, how long it waits, when it gives up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.model import Exit, ExitKind
from nbs_fleet.spec.team import Backoff, RestartPolicy
from nbs_fleet.supervisor.policy import JITTER, after_exit, delay, within

CRASH = Exit(ExitKind.CRASH, 0.0, code=1)
CLEAN = Exit(ExitKind.CLEAN, 0.0, code=0)


@pytest.mark.parametrize(
    ("policy", "end", "then"),
    [
        ("on-failure", CRASH, "restart"),
        ("on-failure", CLEAN, "rest"),
        ("always", CRASH, "restart"),
        ("always", CLEAN, "restart"),
        ("never", CRASH, "failed"),
        ("never", CLEAN, "rest"),
        ("always", Exit(ExitKind.STOPPED, 0.0), "rest"),
        ("always", Exit(ExitKind.MISSING_PROGRAM, 0.0, code=127), "failed"),
        ("always", Exit(ExitKind.NOT_EXECUTABLE, 0.0, code=126), "failed"),
        ("always", Exit(ExitKind.REFUSED, 0.0, code=1), "failed"),
        ("on-failure", Exit(ExitKind.SESSION_IN_USE, 0.0, code=1), "restart"),
        ("on-failure", Exit(ExitKind.NO_CONVERSATION, 0.0, code=1), "restart"),
        ("on-failure", Exit(ExitKind.TMUX_DIED, 0.0), "restart"),
    ],
)
def test_each_kind_of_end_has_its_own_answer(policy: str, end: Exit, then: str) -> None:
    chosen = RestartPolicy(policy=policy)  # type: ignore[arg-type]
    assert after_exit(chosen, end, (0.0,), 1.0, 0.0).then == then


def test_the_last_allowed_start_is_the_last() -> None:
    policy = RestartPolicy(max=3, within=600.0)
    assert after_exit(policy, CRASH, (1.0, 2.0), 3.0, 0.0).then == "restart"
    verdict = after_exit(policy, CRASH, (1.0, 2.0, 3.0), 4.0, 0.0)
    assert verdict.then == "failed"
    assert verdict.reason == "3 starts in 10 min"


def test_starts_outside_the_window_do_not_count() -> None:
    policy = RestartPolicy(max=3, within=10.0)
    assert after_exit(policy, CRASH, (1.0, 2.0, 30.0), 31.0, 0.0).then == "restart"


@given(st.integers(1, 200), st.floats(0, 1, exclude_max=True))
def test_the_wait_grows_to_its_bound_and_no_further(starts: int, jitter: float) -> None:
    policy = RestartPolicy(backoff=Backoff(first=1.0, max=60.0))
    wait = delay(policy, starts, jitter)
    assert min(2.0 ** (starts - 1), 60.0) <= wait <= 60.0 * (1 + JITTER)


@given(st.lists(st.floats(0, 1e6)), st.floats(0, 1e6), st.floats(0.1, 1e4))
def test_only_starts_inside_the_window_are_kept(starts: list[float], now: float, window: float) -> None:
    assert all(at > now - window for at in within(tuple(starts), now, window))
