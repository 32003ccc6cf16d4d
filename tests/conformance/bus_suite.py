"""What every way to a bus must do: a subclass gives the fixture `door`, and opens it twice for two members."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import pytest

from nbs_fleet.model import Priority

URGENT_FIRST = (Priority.CRITICAL, Priority.HIGH, Priority.NORMAL, Priority.LOW)


class Door(Protocol):
    """A way to one bus. What can't be done raises an error with the nbs tools' `exit_code`."""

    def publish(self, source: str, kind: str, priority: Priority, payload: str) -> str: ...

    def pending(self) -> list[str]: ...

    def read(self, name: str) -> str: ...

    def ack(self, name: str) -> None: ...

    def prune(self, limit: int) -> None: ...


class RefusedError(Exception):
    """What was asked for can't be done."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit {exit_code}")
        self.exit_code = exit_code


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An events directory."""
    made = tmp_path / "events"
    made.mkdir()
    return made


class BusSuite:
    """The contract of a bus. `open_door(folder)` gives a new way to it."""

    @pytest.fixture
    def door(self, open_door: Callable[[Path], Door], folder: Path) -> Door:
        return open_door(folder)

    def test_an_event_is_named_by_its_time_source_and_type(self, door: Door) -> None:
        name = door.publish("ana", "done", Priority.HIGH, "the parser")
        assert re.fullmatch(r"\d{16}-ana-done-\d+\.event", name)
        assert door.pending() == [name]

    def test_what_was_published_is_read_back(self, door: Door) -> None:
        text = door.read(door.publish("ana", "done", Priority.HIGH, "one\ntwo: ünï"))
        assert text.startswith("source: ana\ntype: done\npriority: high\ntimestamp: ")
        assert text.endswith("payload: |\n  one\n  two: ünï\n")

    def test_what_one_publishes_another_sees(self, open_door: Callable[[Path], Door], folder: Path) -> None:
        one, other = open_door(folder), open_door(folder)
        name = one.publish("ana", "done", Priority.LOW, "")
        assert other.pending() == [name]
        other.ack(name)
        assert one.pending() == []

    def test_the_most_urgent_come_first(self, door: Door) -> None:
        names = {p: door.publish("ana", str(p), p, "") for p in reversed(URGENT_FIRST)}
        assert door.pending() == [names[p] for p in URGENT_FIRST]

    def test_of_equal_ones_the_oldest_comes_first(self, door: Door) -> None:
        names = [door.publish("ana", f"k{i}", Priority.NORMAL, "") for i in range(3)]
        assert door.pending() == names

    def test_an_acknowledged_event_is_kept_among_the_processed(self, door: Door, folder: Path) -> None:
        name = door.publish("ana", "done", Priority.LOW, "")
        door.ack(name)
        assert os.listdir(folder / "processed") == [name]
        assert door.pending() == []

    def test_it_is_acknowledged_once(self, door: Door) -> None:
        name = door.publish("ana", "done", Priority.LOW, "")
        door.ack(name)
        with pytest.raises(RefusedError) as refused:
            door.ack(name)
        assert refused.value.exit_code == 3

    def test_what_is_not_there_can_not_be_read(self, door: Door) -> None:
        with pytest.raises(RefusedError) as refused:
            door.read("1777627800000000-ana-done-41.event")
        assert refused.value.exit_code == 3

    def test_a_missing_folder_is_an_error(self, open_door: Callable[[Path], Door], folder: Path) -> None:
        with pytest.raises(RefusedError) as refused:
            open_door(folder / "nowhere").publish("ana", "done", Priority.LOW, "")
        assert refused.value.exit_code == 2

    @pytest.mark.parametrize("word", ["a/b", "../up", "a b"])
    def test_a_source_or_type_that_is_no_word_is_refused(self, door: Door, folder: Path, word: str) -> None:
        for source, kind in ((word, "done"), ("ana", word)):
            with pytest.raises(RefusedError) as refused:
                door.publish(source, kind, Priority.LOW, "")
            assert refused.value.exit_code == 4
        assert not [name for name in os.listdir(folder) if name.endswith(".event")]

    def test_pruning_keeps_what_is_pending(self, door: Door, folder: Path) -> None:
        kept, gone = (door.publish("ana", kind, Priority.LOW, "x") for kind in ("kept", "gone"))
        door.ack(gone)
        door.prune(1)
        assert door.pending() == [kept]
        assert os.listdir(folder / "processed") == []

    def test_of_many_at_once_none_is_lost(self, open_door: Callable[[Path], Door], folder: Path) -> None:
        def publish(number: int) -> str:
            return open_door(folder).publish("ana", f"k{number}", Priority.NORMAL, "")

        with ThreadPoolExecutor(4) as pool:
            names = list(pool.map(publish, range(20)))
        assert sorted(open_door(folder).pending()) == sorted(names)
