"""A team's tmux and people who attach to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.servers import Person, Server
from tests.support.waiting import eventually


@pytest.fixture
def server(short_path: Path) -> Iterator[Server]:
    folder = short_path / "tmux"
    folder.mkdir()
    made = Server(folder)
    made.start()
    yield made
    made.tmux.kill_server()


@pytest.fixture
def person(server: Server) -> Iterator[Callable[..., Person]]:
    made: list[Person] = []

    def attach(argv: list[str]) -> Person:
        made.append(Person(argv, server.environ))
        eventually(lambda: len(server.tmux.clients()) >= len(made))
        return made[-1]

    yield attach
    for one in made:
        one.leave()
