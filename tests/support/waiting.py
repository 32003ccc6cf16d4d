"""Waits in tests: on a condition, with a bound, never for a time; and reading what is being written."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 20.0
"""Seconds after which a condition will not come true any more, on a loaded machine too."""


def whole_lines(text: str) -> list[str]:
    """The lines of a file that somebody else is writing; what has no end yet is left out."""
    return text.split("\n")[:-1]


def eventually(look: Callable[[], T | None], patience: float = PATIENCE) -> T:
    """What `look` returns once that is true."""
    end = time.monotonic() + patience
    while not (found := look()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)
    return found


async def eventually_async(look: Callable[[], T | None], patience: float = PATIENCE) -> T:
    """The same, while the loop runs on."""
    end = time.monotonic() + patience
    while not (found := look()):
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.005)
    return found
