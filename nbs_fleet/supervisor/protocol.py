"""The words of the supervisor's socket: one JSON object per line, each way."""

from __future__ import annotations

from msgspec import Struct

from nbs_fleet.attention.queue import Queue
from nbs_fleet.plan.types import AgentRecord


class Request(Struct, frozen=True, omit_defaults=True):
    """What a command asks.

    `ping`, `apply`, `start`, `stop`, `restart`, `yield`, `follow`; or, of an item of
    the attention queue, `answer`, `skip` or `snooze` (until wall second `until`).
    """

    do: str
    handles: tuple[str, ...] | None = None
    now: bool = False
    up: bool = False
    fresh: bool = False
    item: str = ""
    choice: str = ""
    text: str = ""
    until: float = 0.0


class Answer(Struct, frozen=True, omit_defaults=True):
    """The first line of an answer; after a `follow`, lines with `record` (or `gone`, a handle) keep coming."""

    ok: bool = True
    error: str | None = None
    pid: int | None = None
    since: float | None = None
    record: AgentRecord | None = None
    gone: str | None = None
    sidecars: dict[str, str] | None = None
    alarm: str | None = None
    version: str | None = None
    queue: Queue | None = None
    """The attention queue as it is now."""
    complete: bool = False
    """All records as they were at the `follow` have been sent; changes come from here on."""
