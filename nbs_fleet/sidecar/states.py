"""The agent states, which may follow which and why: data, from which the reference page is drawn."""

from __future__ import annotations

from nbs_fleet.model import AgentState as S

TRANSITIONS: tuple[tuple[S, S, str], ...] = (
    (S.STOPPED, S.STARTING, "`up`, `start` or `restart`"),
    (S.STARTING, S.IDLE, "the client accepts input"),
    (S.STARTING, S.BUSY, "the client took its prompt"),
    (S.STARTING, S.BLOCKED, "a startup dialog waits for a choice"),
    (S.STARTING, S.LIMITED, "its first turn met the account's limit"),
    (S.STARTING, S.BACKOFF, "the client died; another start is due"),
    (S.STARTING, S.FAILED, "the client can't start, or died too often"),
    (S.IDLE, S.BUSY, "a turn began"),
    (S.IDLE, S.BLOCKED, "a dialog opened"),
    (S.IDLE, S.COMPACTING, "the client compacts its context"),
    (S.IDLE, S.LIMITED, "the account's limit is reached"),
    (S.BUSY, S.IDLE, "the turn ended"),
    (S.BUSY, S.BLOCKED, "a dialog opened"),
    (S.BUSY, S.COMPACTING, "the client compacts its context"),
    (S.BUSY, S.LIMITED, "the account's limit is reached"),
    (S.COMPACTING, S.IDLE, "the compaction ended"),
    (S.COMPACTING, S.BUSY, "the turn goes on"),
    (S.COMPACTING, S.BLOCKED, "a dialog opened"),
    (S.BLOCKED, S.IDLE, "the dialog was answered"),
    (S.BLOCKED, S.BUSY, "the dialog was answered, work goes on"),
    (S.BLOCKED, S.STARTING, "a startup dialog was answered"),
    (S.BLOCKED, S.COMPACTING, "the client compacts its context"),
    (S.COMPACTING, S.LIMITED, "the account's limit is reached"),
    (S.STARTING, S.COMPACTING, "the client compacts its context before anything else"),
    (S.BLOCKED, S.LIMITED, "the dialog was answered, and the account's limit is reached"),
    (S.LIMITED, S.IDLE, "the limit was lifted"),
    (S.LIMITED, S.BUSY, "the limit was lifted, work goes on"),
    (S.LIMITED, S.BLOCKED, "a dialog opened"),
    (S.LIMITED, S.COMPACTING, "the client compacts its context"),
    (S.BACKOFF, S.STARTING, "the wait is over"),
    (S.BACKOFF, S.STOPPED, "`stop` or `down`"),
    (S.FAILED, S.STARTING, "a person asks: `restart`, `start` or `up`"),
    (S.FAILED, S.STOPPED, "`stop` or `down`"),
)

LIVE = (S.STARTING, S.IDLE, S.BUSY, S.BLOCKED, S.LIMITED, S.COMPACTING, S.PAUSED, S.UNKNOWN)
"""States in which a client process runs. Any of them may also become UNKNOWN (no source speaks),
PAUSED (a person asked), BACKOFF, FAILED (the client died) or STOPPED (it ended well, or by us)."""

ACCEPTS_INPUT = (S.IDLE, S.BUSY, S.COMPACTING, S.LIMITED)
"""States that count as ready."""

_LISTED = frozenset((a, b) for a, b, _ in TRANSITIONS)
_ENDS = (S.UNKNOWN, S.PAUSED, S.BACKOFF, S.FAILED, S.STOPPED)


def allowed(before: S, after: S) -> bool:
    """Whether `after` may follow `before` directly."""
    if before is after or (before, after) in _LISTED:
        return True
    if before in LIVE and after in _ENDS:
        return True
    return before in (S.UNKNOWN, S.PAUSED) and after in LIVE
