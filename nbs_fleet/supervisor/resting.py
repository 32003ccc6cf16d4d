"""Sees which of the clients that are starting rest: the effect behind the bound on starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from nbs_fleet.launch.rest import wait_rest
from nbs_fleet.supervisor.fleet import AwaitRest, Rested

PAUSES = (0.02, 0.04, 0.08, 0.16)
"""Seconds that a client has to take nothing of a core to be seen at rest; then it is asked anew whether that matters."""


def rested(action: AwaitRest, pauses: Sequence[float] = PAUSES, pause: Callable[[float], None] = time.sleep) -> Rested:
    """See which clients rest; blocks for as long as `pauses` at most. `pause` lets so many seconds pass."""
    found = wait_rest(action.clients.values(), pauses, pause=pause)
    return Rested({handle: proc for handle, proc in action.clients.items() if proc in found})
