"""One team on a root of its own, with each of the clients beside Claude Code; a behaviour may be exempt, by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPORT
from tests.support import others, private
from tests.support.fleet import Fleet


@pytest.fixture(params=sorted(others.MAKERS))
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[others.Other]:
    """The client under test; skipped where it isn't installed, or where the test's behaviour is exempt for it."""
    name: str = request.param
    reason = others.missing(name)
    if reason:
        pytest.skip(reason)
    with others.running(name, tmp_path / "client") as client:
        marker = request.node.get_closest_marker("behaviour")
        why = client.exempt.get(marker.args[0]) if marker else None
        if why:
            pytest.skip(f"{name} is exempt: {why}")
        yield client


@pytest.fixture
def fleet(request: pytest.FixtureRequest, tmp_path: Path, short_path: Path, other: others.Other) -> Iterator[Fleet]:
    """A team that may leave nothing behind."""
    made = Fleet(tmp_path, other, private.surrounding(tmp_path, short_path), root=tmp_path / "project")
    try:
        yield made
        failed = any(report.failed for report in request.node.stash.get(REPORT, {}).values())
        if failed:
            print(made.artefacts())
            return
        if made.everything():
            ended = made.down()
            assert ended.code == 0, str(ended)
        left = made.leftovers()
        assert not left, "left behind:\n" + "\n".join(left)
    finally:
        made.end()
