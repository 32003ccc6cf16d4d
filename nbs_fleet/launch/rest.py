"""Which clients rest: what their processes have taken of a core between two looks, for the bound on starts at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence

from nbs_fleet.launch import processes
from nbs_fleet.launch.proctable import Table
from nbs_fleet.model import ProcId

_COMPUTES = (b"R", b"D")
"""States of a thread that runs, waits for a core, or waits for a disk."""

Taken = frozenset[tuple[int, bytes]]
"""Each thread of a client and of all that it started, with what the kernel counts of its time on a core."""


def taken(proc: ProcId, *, on: Table | None = None) -> Taken | None:
    """What a client and its descendants have taken so far; None if one of them wants a core now, or it can't be told."""
    if not processes.alive(proc, on=on):
        return None
    found: set[tuple[int, bytes]] = set()
    left = [proc.pid]
    try:
        while left:
            folder = f"/proc/{left.pop()}/task"
            for thread in os.listdir(folder):
                state = _read(f"{folder}/{thread}/stat").rpartition(b") ")[2][:1]
                if state in _COMPUTES:
                    return None
                found.add((int(thread), _read(f"{folder}/{thread}/schedstat")))
                left += map(int, _read(f"{folder}/{thread}/children").split())
    except OSError:
        # A thread has just ended, so something happens here; or this system counts nothing of the kind.
        return None
    return frozenset(found)


def wait_rest(
    clients: Iterable[ProcId],
    pauses: Sequence[float],
    *,
    on: Table | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> frozenset[ProcId]:
    """Those of `clients` that take nothing of a core during one of the `pauses` (seconds); blocks.

    Returns once half of them rested, else after the last pause; where nothing can be told, none rests.
    """
    before = {proc: taken(proc, on=on) for proc in clients}
    found: set[ProcId] = set()
    for seconds in pauses:
        # What does not happen can't be awaited: rest is that nothing happens for some time.
        pause(seconds)
        after = {proc: taken(proc, on=on) for proc in before}
        found |= {proc for proc, now in after.items() if now is not None and now == before[proc]}
        if 2 * len(found) >= len(before):
            break
        before = after
    return frozenset(found)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
