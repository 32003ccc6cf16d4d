"""When a standup is due: one per interval for any number of sidecars and teams that share a chat. Pure, wall time."""

from __future__ import annotations

from msgspec import Struct

JITTER = 0.1
"""The wait is stretched by up to this share of the interval, so that two posters rarely meet."""

TEXT = (
    "Check-in: please say in a line or two what you have done since the last one, what you do next, "
    "and what blocks you. Stay silent if nothing has changed."
)


class Board(Struct, frozen=True):
    """What is known of the chat when a standup may be due.

    `last`: when the last one was posted, by anyone (None: never). `news`: messages by others since then.
    """

    last: float | None
    news: int
    all_idle: bool
    paused: bool = False


def due(board: Board, every: float, began: float, jitter: float, now: float) -> float:
    """Wall seconds of the next standup: a full interval after the last one, and after the team began.

    `jitter` is in [0, 1). A last one that lies an interval or more in the future (a clock that was set back) is over;
    a nearer one still counts, so that a clock that is put right by seconds makes no second standup.
    """
    if board.last is not None and board.last >= now + every:
        return now
    last = began if board.last is None else max(board.last, began)
    return last + every * (1.0 + JITTER * jitter)


def post(board: Board, every: float, began: float, jitter: float, now: float) -> bool:
    """Whether to post one now. None while paused, and none when nothing happened: that only wakes the idle."""
    if board.paused or now < due(board, every, began, jitter, now):
        return False
    return board.news > 0 or not board.all_idle
