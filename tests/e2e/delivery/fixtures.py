"""One team per test module and client: brought up once, quiet before each test, audited at the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.delivery.crew import Crew
from tests.support import clients, private
from tests.support.fleet import Fleet


@pytest.fixture(scope="module")
def team(request: pytest.FixtureRequest, client_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """The team that the module's `declare(crew)` writes down, up and idle. At the end nothing of it may be left.

    And every message that was sent must have arrived exactly once.
    """
    clients.need(client_name)
    base = tmp_path_factory.mktemp("delivery")
    runtime = private.short_folder()
    root = base / "project"
    failed = request.session.testsfailed
    with clients.running(client_name, base / "client", trusted=(str(root.resolve()),)) as client:
        fleet = Fleet(base, client, private.surrounding(base, runtime), root=root)
        crew = Crew(fleet)
        try:
            request.module.declare(crew)
            crew.up()
            yield crew
            if request.session.testsfailed == failed:
                crew.audit()
                down = fleet.down()
                assert down.code == 0, str(down)
                assert fleet.leftovers() == []
        finally:
            fleet.end()
            shutil.rmtree(runtime, ignore_errors=True)


@pytest.fixture
def crew(request: pytest.FixtureRequest, team: Crew) -> Iterator[Crew]:
    """The module's team, quiet; a failed test shows what explains it."""
    for handle in handles(team):
        team.settle(handle)
    failed = request.session.testsfailed
    yield team
    if request.session.testsfailed != failed:
        print(team.fleet.artefacts())


def handles(team: Crew) -> list[str]:
    """Every agent of the team."""
    return sorted(path.name for path in (team.fleet.run_dir / "agents").iterdir() if path.is_dir())


def gate(crew: Crew) -> Path:
    """A path that is not there yet, for what waits until it is."""
    return crew.fleet.base / f"gate-{len(list(crew.fleet.base.glob('gate-*')))}"
