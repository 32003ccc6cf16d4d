from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from nbs_fleet.launch.control import Control
from nbs_fleet.launch.layout import conf
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.spec.team import Layout
from tests.fakes.fake_control import FakeControl
from tests.fakes.fake_tmux import FakeTmux

pytest.register_assert_rewrite("tests.conformance.tmux_suite")

from tests.conformance.tmux_suite import ControlSuite, TmuxSuite  # noqa: E402 -- after its asserts can be shown


class Fake:
    @pytest.fixture
    def tmux(self) -> FakeTmux:
        return FakeTmux()

    @pytest.fixture
    def control(self, tmux: FakeTmux) -> Callable[[], FakeControl]:
        return lambda: FakeControl(tmux)


@pytest.mark.tmux
class Real:
    @pytest.fixture
    def tmux(self, short_path: Path) -> Iterator[Tmux]:
        file = short_path / "tmux.conf"
        file.write_text(conf(Layout(), "team"), encoding="utf-8")
        server = Tmux(os.fspath(short_path / "s"), os.fspath(file))
        yield server
        server.kill_server()

    @pytest.fixture
    async def control(self) -> AsyncIterator[Callable[[], Control]]:
        made: list[Control] = []

        def make() -> Control:
            made.append(Control())
            return made[-1]

        yield make
        for client in made:
            await client.close()


class TestFakeTmux(Fake, TmuxSuite):
    pass


class TestFakeControl(Fake, ControlSuite):
    pass


class TestRealTmux(Real, TmuxSuite):
    pass


class TestRealControl(Real, ControlSuite):
    pass
