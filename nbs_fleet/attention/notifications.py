"""Which notifications are due: the queue against the rules of the team file; each item is called once by each rule. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.attention.queue import Item
from nbs_fleet.model import BlockedKind
from nbs_fleet.spec.team import Notification

ALARM = "alarm"
"""The reason of what concerns the whole team and waits for nobody in particular."""
SHOWN = 5
"""Items that one notification names."""
DAY = 1_440
"""Minutes."""
OCCASIONS: Mapping[str, frozenset[str]] = {
    "blocked": frozenset(kind.value for kind in BlockedKind),
    "failed": frozenset({"failed", "crash"}),
    "limited": frozenset({"limit"}),
    "escalated": frozenset({"escalation", "error"}),
    "done": frozenset({"idle-done"}),
}
"""The reasons that a word of `on:` stands for, where it is not the reason itself; `attention` stands for every one."""


class Now(Struct, frozen=True):
    """One moment: wall and monotonic seconds, the minute of the local day, and whether nobody looks at the team."""

    wall: float
    mono: float
    minute: int
    away: bool


class Told(Struct, frozen=True):
    """What one rule of one agent (or of the team) has called for, and when it last did (monotonic seconds)."""

    ids: frozenset[str] = frozenset()
    last: float | None = None


class Memory(Struct, frozen=True):
    """What was called so far, by (owner, number of the rule); `owner` is a handle, or empty for the team."""

    told: dict[tuple[str, int], Told] = {}


class Call(Struct, frozen=True):
    """One notification to send."""

    rule: Notification
    title: str
    text: str
    items: tuple[Item, ...]
    urgent: bool


def due(
    rules: Mapping[str, Sequence[Notification]], items: Sequence[Item], memory: Memory, now: Now
) -> tuple[Memory, tuple[Call, ...], float | None]:
    """What to send now, and the next monotonic second at which more may be due.

    `rules` are each agent's own, or those of the team under an empty handle for agents that have none. An item that
    is hidden (skipped, snoozed) is not called. What a cooldown or quiet hours hold back is called in one notification
    when they end, if it still waits then.
    """
    told: dict[tuple[str, int], Told] = {}
    calls: list[Call] = []
    wakes: list[float] = []
    for owner, own in rules.items():
        for number, rule in enumerate(own):
            before = memory.told.get((owner, number), Told())
            mine = tuple(item for item in items if _owner(item, rules) == owner and fits(rule, item.need.kind))
            kept = replace(before, ids=before.ids & {item.id for item in mine})
            after, sent, wake = _one(rule, tuple(i for i in mine if i.id not in kept.ids), kept, now)
            told[owner, number] = after
            calls.extend(sent)
            wakes.extend(wake)
    return Memory(told), tuple(calls), min(wakes, default=None)


def fits(rule: Notification, kind: str) -> bool:
    """Whether the rule is about this reason."""
    return any(word in ("attention", kind) or kind in OCCASIONS.get(word, ()) for word in rule.on)


def is_quiet(quiet: str | None, minute: int) -> bool:
    """Whether this minute of the day lies within `22:00-07:00` (the end does not)."""
    if not quiet:
        return False
    begin, end = (_minute(part) for part in quiet.split("-"))
    return begin <= minute < end if begin <= end else minute >= begin or minute < end


def _owner(item: Item, rules: Mapping[str, Sequence[Notification]]) -> str:
    return item.handle if item.handle in rules else ""


def _one(
    rule: Notification, fresh: tuple[Item, ...], told: Told, now: Now
) -> tuple[Told, tuple[Call, ...], list[float]]:
    """One rule and what it has not called yet."""
    wakes: list[float] = []
    ripe: list[Item] = []
    for item in fresh:
        # Nobody who could see it sits there: there is nothing to wait for.
        wait = 0.0 if now.away else rule.after
        begin = max(item.since + wait, item.hidden)
        if begin <= now.wall:
            ripe.append(item)
        else:
            wakes.append(now.mono + begin - now.wall)
    if not ripe:
        return told, (), wakes
    if is_quiet(rule.quiet, now.minute):
        return told, (), [*wakes, now.mono + 60.0 * _minutes_left(rule.quiet or "", now.minute)]
    if told.last is not None and now.mono < told.last + rule.cooldown:
        return told, (), [*wakes, told.last + rule.cooldown]
    after = Told(told.ids | {item.id for item in ripe}, now.mono)
    return after, (_call(rule, tuple(ripe), urgent=now.away),), wakes


def _call(rule: Notification, items: tuple[Item, ...], *, urgent: bool) -> Call:
    first = items[0]
    who = first.handle or "the team"
    title = f"{who}: {first.need.kind}" if len(items) == 1 else f"{len(items)} wait for you"
    lines = [f"{item.handle or 'the team'}: {item.need.kind}: {item.need.title}" for item in items[:SHOWN]]
    if len(items) > SHOWN:
        lines.append(f"and {len(items) - SHOWN} more")
    return Call(rule, title, first.need.title if len(items) == 1 else "\n".join(lines), items, urgent)


def _minute(text: str) -> int:
    hour, _, minute = text.partition(":")
    return int(hour) * 60 + int(minute)


def _minutes_left(quiet: str, minute: int) -> int:
    return (_minute(quiet.split("-")[1]) - minute) % DAY or DAY
