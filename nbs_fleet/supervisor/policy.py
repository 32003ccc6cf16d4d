"""What follows when a client is gone: restart after a wait, fail, or rest. Pure; the jitter comes in."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nbs_fleet.model import Exit, ExitKind
from nbs_fleet.spec.team import RestartPolicy

HOPELESS = {
    ExitKind.MISSING_PROGRAM: "the program is missing",
    ExitKind.NOT_EXECUTABLE: "the program can't be executed",
    ExitKind.REFUSED: "the client refused to start",
}
"""Ends that another start can't mend: a person is needed at once."""

SESSIONS = 50
"""Sessions of an agent whose tokens are remembered one by one."""

JITTER = 0.2
"""The wait is stretched by up to this share, so that agents that died together come back apart."""


class Verdict(Struct, frozen=True):
    """`restart` after `delay` seconds, `failed` until a person acts, or `rest` (stopped, nothing wrong)."""

    then: Literal["restart", "failed", "rest"]
    delay: float = 0.0
    reason: str = ""


def within(starts: tuple[float, ...], now: float, window: float) -> tuple[float, ...]:
    """The starts (monotonic seconds) that still count at `now`."""
    return tuple(at for at in starts if at > now - window)


def delay(policy: RestartPolicy, starts: int, jitter: float) -> float:
    """Seconds to wait after the `starts`-th start in the window; `jitter` is in [0, 1)."""
    doubled = policy.backoff.first * 2.0 ** min(max(starts - 1, 0), 32)
    return min(doubled, policy.backoff.max) * (1.0 + JITTER * jitter)


def after_exit(policy: RestartPolicy, end: Exit, starts: tuple[float, ...], now: float, jitter: float) -> Verdict:
    """What follows after `end`; `starts` are the monotonic seconds of this agent's starts, newest last."""
    if end.kind is ExitKind.STOPPED:
        return Verdict("rest")
    if end.kind in HOPELESS:
        return Verdict("failed", reason=HOPELESS[end.kind])
    if policy.policy == "never":
        return Verdict("rest") if end.kind is ExitKind.CLEAN else Verdict("failed", reason="restart.policy is never")
    if policy.policy == "on-failure" and end.kind is ExitKind.CLEAN:
        return Verdict("rest")
    counted = within(starts, now, policy.within)
    if len(counted) >= policy.max:
        return Verdict("failed", reason=f"{len(counted)} starts in {_span(policy.within)}")
    return Verdict("restart", delay=delay(policy, len(counted), jitter), reason=end.describe())


def _span(seconds: float) -> str:
    if seconds >= 60 and seconds % 60 == 0:
        return f"{int(seconds // 60)} min"
    return f"{seconds:g} s"


def add(known: dict[str, int], session: str, spent: int, kept: int = SESSIONS) -> dict[str, int]:
    """Tokens by session, with the new count of this one; sessions beyond the last `kept` are one sum under ""."""
    merged = {name: tokens for name, tokens in known.items() if name != session}
    # A session's file that was cut down or removed takes back nothing.
    merged[session] = max(spent, known.get(session, 0))
    names = [name for name in merged if name]
    for old in names[:-kept]:
        merged[""] = merged.get("", 0) + merged.pop(old)
    return merged
