"""The bus's contract over every way to it: in this process, and by the command that agents call."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from nbs_fleet.model import Priority
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.files import NbsFileError

pytest.register_assert_rewrite("tests.conformance.bus_suite")

from tests.conformance.bus_suite import BusSuite, Door, RefusedError, folder  # noqa: E402 -- after its asserts show

__all__ = ["folder"]
T = TypeVar("T")


class InProcess:
    """`Bus` itself."""

    def __init__(self, events: Path) -> None:
        self.bus = Bus(os.fspath(events))

    def publish(self, source: str, kind: str, priority: Priority, payload: str) -> str:
        name = self._do(lambda: self.bus.publish(source, kind, priority, payload, dedup_window=0))
        assert name is not None
        return name

    def pending(self) -> list[str]:
        return [event.name for event in self.bus.pending().events]

    def read(self, name: str) -> str:
        return self._do(lambda: self.bus.read(name)).decode()

    def ack(self, name: str) -> None:
        self._do(lambda: self.bus.ack(name))

    def prune(self, limit: int) -> None:
        self._do(lambda: self.bus.prune(limit))

    @staticmethod
    def _do(work: Callable[[], T]) -> T:
        try:
            return work()
        except NbsFileError as error:
            raise RefusedError(error.exit_code) from None


class ByCommand:
    """`nbs-fleet bus`, a process per call."""

    def __init__(self, events: Path) -> None:
        self.events = os.fspath(events)

    def _call(self, *words: str) -> str:
        argv = [sys.executable, "-m", "nbs_fleet", "bus", words[0], self.events, *words[1:]]
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=env)
        if done.returncode:
            raise RefusedError(done.returncode)
        return done.stdout

    def publish(self, source: str, kind: str, priority: Priority, payload: str) -> str:
        return self._call("publish", source, kind, str(priority), *([payload] if payload else [])).strip()

    def pending(self) -> list[str]:
        return [line.split()[1] for line in self._call("check").splitlines()]

    def read(self, name: str) -> str:
        return self._call("read", name)

    def ack(self, name: str) -> None:
        self._call("ack", name)

    def prune(self, limit: int) -> None:
        self._call("prune", f"--max-bytes={limit}")


class TestBusInProcess(BusSuite):
    @pytest.fixture
    def open_door(self) -> Callable[[Path], Door]:
        return InProcess


@pytest.mark.long
class TestBusByCommand(BusSuite):
    @pytest.fixture
    def open_door(self) -> Callable[[Path], Door]:
        return ByCommand
