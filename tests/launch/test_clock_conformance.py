"""The clock's contract over every process table, the one in memory included."""

from __future__ import annotations

import pytest

from nbs_fleet.launch.proctable import LinuxTable, PortableTable, Table
from tests.fakes.fake_processes import FakeTable

pytest.register_assert_rewrite("tests.conformance.clock_suite")

from tests.conformance.clock_suite import ClockSuite  # noqa: E402 -- after its asserts can be shown


class TestClockOfLinux(ClockSuite):
    @pytest.fixture
    def table(self) -> Table:
        return LinuxTable()


class TestClockOfOtherSystems(ClockSuite):
    @pytest.fixture
    def table(self) -> Table:
        return PortableTable()


class TestClockInMemory(ClockSuite):
    @pytest.fixture
    def table(self) -> Table:
        return FakeTable()
