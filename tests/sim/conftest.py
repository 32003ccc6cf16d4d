"""A client per test, ended with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.sim_client import SimClient

Begin = Callable[..., SimClient]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start a client in tmp_path/project with its home in tmp_path/home; idle unless `ready=False`."""
    begun: list[SimClient] = []

    def start(*args: str, ready: bool = True, **more: Any) -> SimClient:
        client = SimClient(tmp_path / "home", tmp_path / "project", *args, **more)
        begun.append(client)
        if ready:
            client.until_status("idle")
        return client

    yield start
    for client in begun:
        client.close()
