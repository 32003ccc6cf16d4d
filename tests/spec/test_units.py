"""Durations as people write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.spec.units import PATTERN, duration, seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [("90s", 90.0), ("15m", 900.0), ("1h30m", 5400.0), ("500ms", 0.5), ("1.5s", 1.5), ("2d", 172800.0), ("0s", 0.0)],
)
def test_a_duration_is_a_number_of_seconds(text: str, value: float) -> None:
    assert seconds(text) == value
    assert re.match(PATTERN, text)


@pytest.mark.parametrize("text", ["", "15", "s", "15 m", "15min", "1m1h", "-5s", "1e3s", "5s5s", "٣s", "9" * 50 + "s"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"; (write|did you mean)"):
        seconds(text)


@pytest.mark.parametrize(("text", "meant"), [("15", "15s"), ("15 min", "15m"), ("2 hours", "2h"), ("10 sec", "10s")])
def test_what_was_probably_meant_is_said(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"did you mean {meant}?")):
        seconds(text)


@given(st.integers(0, 3650 * 86_400_000))
def test_every_duration_can_be_written_and_read_again(milliseconds: int) -> None:
    assert round(seconds(duration(milliseconds / 1000)) * 1000) == milliseconds
