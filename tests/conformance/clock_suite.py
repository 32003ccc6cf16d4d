"""What every clock must do: a subclass gives the fixture `table`, the machine whose time is asked."""

from __future__ import annotations

import time

import pytest

from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.proctable import Table


class ClockSuite:
    """The contract of `moment`: windows and backoff use its monotonic time, and begin anew on another boot."""

    def test_its_wall_time_is_the_time_of_day(self, table: Table) -> None:
        before = time.time()
        wall = moment(on=table).wall
        assert before <= wall <= time.time()

    def test_its_monotonic_time_never_goes_back(self, table: Table) -> None:
        seen = [moment(on=table).mono for _ in range(200)]
        assert seen == sorted(seen)

    def test_its_monotonic_time_is_that_of_timers(self, table: Table) -> None:
        before = time.monotonic()
        mono = moment(on=table).mono
        assert before <= mono <= time.monotonic()

    def test_a_boot_has_one_name(self, table: Table) -> None:
        names = {moment(on=table).boot for _ in range(5)}
        assert len(names) == 1
        assert names != {""}

    def test_the_wall_may_be_set_back_and_the_monotonic_time_does_not_follow(
        self, table: Table, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = moment(on=table)
        monkeypatch.setattr(time, "time", lambda: first.wall - 3600)
        second = moment(on=table)
        assert second.wall < first.wall
        assert second.mono >= first.mono
