"""The pytest plugin: a fixture `fleet` that brings a team up in a world of its own and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from nbs_fleet.testing.fleet import Fleet


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--fleet-driver` and `--fleet-keep`."""
    group = parser.getgroup("nbs-fleet")
    group.addoption("--fleet-driver", metavar="NAME", help="play every agent of the fleet fixture with this driver")
    group.addoption("--fleet-keep", metavar="DIR", help="keep the files of each test's team there")


@pytest.fixture
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """A team under test: `fleet.up("team.yaml", driver="sim")`, then steps and expectations.

    At the end it is taken down. A test in which something was left behind fails.
    """
    from nbs_fleet.testing.fleet import Fleet  # noqa: PLC0415 -- a run that needs no team does not load it

    made = Fleet(
        name=request.node.name,
        folder=str(Path(request.node.path).parent),
        driver=request.config.getoption("--fleet-driver"),
        keep=request.config.getoption("--fleet-keep"),
    )
    try:
        yield made
    finally:
        left = made.close()
    if left:
        pytest.fail("something was left when the team was down:\n" + "\n".join(left), pytrace=False)
