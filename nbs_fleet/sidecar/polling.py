"""Which sidecars look at everything again at a slow poll: what notifies needs it seldom. Pure."""

from __future__ import annotations

from zlib import crc32

from nbs_fleet.model import AgentState
from nbs_fleet.sidecar.mind import Mind

POLL_SECONDS = 30.0
"""Between two slow polls."""
ROUND = 20
"""So many polls are one round: in each the sidecar of every quiet agent has one turn."""
TOGETHER = 5
"""Only each so many-th poll has turns of quiet agents: what was not touched for a while is slow to be touched, and those
who have their turn together pay for what they share once."""


def is_due(mind: Mind, handle: str, number: int, *, told: bool) -> bool:
    """Whether this sidecar looks at everything again at poll `number`.

    `told`: changes of its files are told as a rule. Then those of quiet agents take turns, by their handles, so that
    the work of one round is spread over it, and who is born or dies meanwhile changes nobody else's turn.
    """
    return not told or not is_quiet(mind) or _has_turn(handle, number)


def has_turns(number: int) -> bool:
    """Whether quiet agents have turns in poll `number`."""
    return number % TOGETHER == 0


def next_number(number: int, seconds: float) -> int:
    """The number of the poll that comes `seconds` after poll `number`; none that has turns is left out."""
    return number + max(1, min(int(seconds / POLL_SECONDS + 0.1), TOGETHER - number % TOGETHER))


def seconds_to_next(number: int, *, rests: bool) -> float:
    """How long after poll `number` the next one comes; while all rests, as long as it takes until there are turns."""
    return POLL_SECONDS * (TOGETHER - number % TOGETHER if rests else 1)


def _has_turn(handle: str, number: int) -> bool:
    return has_turns(number) and (number // TOGETHER + crc32(handle.encode())) % (ROUND // TOGETHER) == 0


def is_quiet(mind: Mind) -> bool:
    """Whether it rests, nothing of ours is under way to it, and nothing that was done for it failed."""
    report = mind.report
    calm = report.state is AgentState.IDLE and report.ready and not mind.presumed
    return calm and not (mind.post.parcels or mind.post.endings or mind.fault or mind.failure or report.attention)
