"""What is fuzzed: a reader with its inputs and its right to refuse, and the bounds that every input is held to."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from nbs_fleet import jsontext
from nbs_fleet.errors import FleetError

CPU_SECONDS = 2.0
"""Of processor time for one input: what else runs on the machine does not count."""
WALL_SECONDS = 20.0
"""For one that waits for something instead of working."""
MEMORY = 600 << 20
"""Bytes of address space that the inputs of one round may add."""


class HangError(Exception):
    """An input was not done within its time."""


class Target(NamedTuple):
    """One kind of input. `read(data)` reads it as the product does, and asserts what must hold of the result.

    `refuses`: what it may raise for an input that is none. All else is a finding.
    """

    name: str
    what: str
    inputs: Callable[[], st.SearchStrategy[bytes]]
    read: Callable[[bytes], None]
    refuses: tuple[type[Exception], ...] = (FleetError,)


def told(value: Any) -> None:
    """A value of which a story, a record or an answer may hold every part: it can be written, and read again."""
    msgspec.json.decode(jsontext.encode(value))


@contextmanager
def bounded() -> Iterator[None]:
    """Everything inside has to be done within the time of one input. For the main thread."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise HangError(f"not done within {CPU_SECONDS:g} s of processor time, {WALL_SECONDS:g} s in all")

    before = signal.signal(signal.SIGPROF, late), signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])


@contextmanager
def little_memory() -> Iterator[None]:
    """What asks for more than MEMORY gets a MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def held(target: Target, data: bytes) -> None:
    """Give one input to a target. Raises whatever the target must not raise."""
    with bounded():
        try:
            target.read(data)
        except target.refuses as error:
            # What a person is told can be printed.
            str(error).encode("utf-8", "surrogateescape")
