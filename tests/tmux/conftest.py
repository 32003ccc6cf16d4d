from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nbs_fleet.spec.team import Layout
from tests.support.servers import Person, Server
from tests.support.waiting import eventually

Make = Callable[..., Server]


@pytest.fixture
def make(short_path: Path) -> Iterator[Make]:
    made: list[Server] = []

    def server(layout: Layout | None = None, wishes: str = "", name: str = "") -> Server:
        folder = short_path / (name or str(len(made)))
        folder.mkdir()
        made.append(Server(folder, layout, wishes))
        return made[-1]

    yield server
    for one in made:
        one.tmux.kill_server()


@pytest.fixture
def server(make: Make) -> Server:
    made = make()
    made.start()
    return made


@pytest.fixture
def person(server: Server) -> Iterator[Callable[..., Person]]:
    made: list[Person] = []

    def attach(argv: list[str], **size: int) -> Person:
        made.append(Person(argv, server.environ, **size))
        count = len(made)
        eventually(lambda: len(server.tmux.clients()) >= count)
        return made[-1]

    yield attach
    for one in made:
        one.leave()
