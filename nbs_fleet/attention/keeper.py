"""Keeps the attention queue of one team in a file: whoever supervises writes it, anybody may read it."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from nbs_fleet import jsontext
from nbs_fleet.attention.queue import Queue, Seen, reconcile
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.processes import moment

_QUEUE = msgspec.json.Decoder(Queue)
"""Made at import: what msgspec makes of a type at its first use is not safe where two threads come first (0.22, seen)."""


def read(path: str) -> Queue | None:
    """The queue in this file; None if there is none or it is damaged."""
    try:
        with open(path, "rb") as file:
            return _QUEUE.decode(file.read())
    except (OSError, *jsontext.MALFORMED):
        return None


class Keeper:
    """The queue of a running supervisor; every change is on disk before anybody hears of it.

    A damaged file is begun afresh from what the agents need now, under numbers that no earlier id can have.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        found = read(path)
        damaged = found is None and os.path.exists(path)
        self.queue = found or Queue(number=int(moment().wall) if damaged else 0)

    def look(self, seen: Mapping[str, Seen]) -> bool:
        """Make the queue fit what is seen of the agents; whether it changed."""
        return self.change(reconcile(self.queue, seen, moment().wall))

    def change(self, queue: Queue) -> bool:
        """Put this queue in place of the old one. FleetError: it can't be written; the old one is kept."""
        if queue == self.queue:
            return False
        write_atomic(self.path, jsontext.encode(queue))
        self.queue = queue
        return True
