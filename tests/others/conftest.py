"""One team on a root of its own, with each of the clients beside Claude Code; a behaviour may be exempt, by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPORT
from tests.support import others, private
from tests.support.fleet import Fleet

WITHIN = 120.0
Fields = dict[str, Any]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per client; none where the test's behaviour is exempt for it, by name."""
    if "other_name" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("others")
        behaviour = metafunc.definition.get_closest_marker("behaviour")
        names = marker.args if marker else sorted(others.MAKERS)
        able = [name for name in names if behaviour is None or behaviour.args[0] not in others.EXEMPT[name]]
        metafunc.parametrize("other_name", able)


@pytest.fixture
def other(other_name: str, tmp_path: Path) -> Iterator[others.Other]:
    """The client under test; skipped where it isn't installed."""
    name = other_name
    reason = others.missing(name)
    if reason:
        pytest.skip(reason)
    with others.running(name, tmp_path / "client") as client:
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


def up(fleet: Fleet, other: others.Other, **fields: Any) -> Fields:
    """One agent named ana, up and idle; its row of `ps`."""
    fleet.write_team([other.agent("ana", **fields)])
    result = fleet.up("--timeout", f"{WITHIN:.0f}s", within=WITHIN + 20.0)
    assert result.code == 0, str(result)
    return fleet.agent("ana", fleet.all_idle(within=WITHIN))


def send(fleet: Fleet, text: str, *more: str) -> str:
    """Send ana a message; its id."""
    result = fleet.run("send", "ana", text, "--json", *more, within=WITHIN)
    assert result.code == 0, str(result)
    return str(result.json()["messages"][0]["id"])


def delivered(fleet: Fleet, message_id: str) -> Fields:
    """The record of a message once it has ended."""
    path = fleet.run_dir / "agents" / "ana" / "archive" / f"{message_id}.json"
    fleet.until(path.exists, within=WITHIN, what=f"{message_id} is delivered")
    record: Fields = json.loads(path.read_text())
    assert record["outcome"] == "delivered"
    return record
