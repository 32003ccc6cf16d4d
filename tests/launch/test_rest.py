"""A client rests when nothing of it, its threads and what it started takes anything of a core."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nbs_fleet.launch.processes import identify
from nbs_fleet.launch.rest import wait_rest
from nbs_fleet.model import ProcId

SOON = (0.02,) * 500
"""Pauses that are over as soon as half of the clients rest."""
FEW = (0.02,) * 5
WAITS = "echo up; exec sleep 1000"
COMPUTES = "echo up; while :; do :; done"
CHILD_COMPUTES = "(while :; do :; done) & echo up; wait"
THREAD_COMPUTES = """
import threading
def compute():
    while True:
        pass
threading.Thread(target=compute, daemon=True).start()
print("up", flush=True)
threading.Event().wait()
"""


@contextmanager
def running(*argv: str) -> Iterator[ProcId]:
    """A client in a group of its own, once it says that it is up."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, process_group=0) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "up\n"
            proc = identify(child.pid)
            assert proc is not None
            yield proc
        finally:
            os.killpg(child.pid, 9)


def test_a_client_that_waits_rests() -> None:
    with running("/bin/sh", "-c", WAITS) as proc:
        assert wait_rest([proc], SOON) == {proc}


@pytest.mark.parametrize(
    "argv",
    [("/bin/sh", "-c", COMPUTES), ("/bin/sh", "-c", CHILD_COMPUTES), (sys.executable, "-I", "-c", THREAD_COMPUTES)],
    ids=["itself", "its child", "its thread"],
)
def test_a_client_does_not_rest_while_something_of_it_computes(argv: tuple[str, ...]) -> None:
    with running(*argv) as proc:
        assert wait_rest([proc], FEW) == frozenset()


def test_one_that_rests_is_told_beside_one_that_does_not() -> None:
    with running("/bin/sh", "-c", WAITS) as waits, running("/bin/sh", "-c", COMPUTES) as computes:
        assert wait_rest([waits, computes], SOON) == {waits}


def test_when_most_do_not_rest_those_that_do_are_told_after_the_last_pause() -> None:
    busy = [running("/bin/sh", "-c", COMPUTES) for _ in range(2)]
    with running("/bin/sh", "-c", WAITS) as waits, busy[0] as first, busy[1] as second:
        assert wait_rest([waits, first, second], FEW * 4) == {waits}


def test_who_is_gone_does_not_rest_nor_does_a_stranger_with_its_number() -> None:
    with running("/bin/sh", "-c", WAITS) as proc:
        assert wait_rest([ProcId(proc.pid, proc.start - 1)], FEW[:1]) == frozenset()
    assert wait_rest([proc], FEW[:1]) == frozenset()
