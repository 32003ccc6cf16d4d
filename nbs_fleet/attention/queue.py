"""The attention queue as a value: one item per agent and reason, oldest first; it follows what is seen. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

SKIP_SECONDS = 30.0
"""How long a skipped item is hidden."""
REMEMBERED = 100
"""Closed and replaced ids that are remembered, so that a late answer gets a reason."""


class Need(Struct, frozen=True):
    """One thing that an agent needs a person for.

    `kind` is its reason; `since` wall seconds. `mark` tells one dialog from another; empty: it is no dialog, or not
    read yet. `options` are (key, label). `text` is what it is about, `context` the agent's last words or lines.
    """

    kind: str
    since: float
    title: str
    text: str = ""
    options: tuple[tuple[str, str], ...] = ()
    context: str = ""
    mark: str = ""


class Seen(Struct, frozen=True):
    """What is known of one agent now. `keeps`: reasons whose items stay though nothing speaks for them; None: all."""

    needs: tuple[Need, ...] = ()
    keeps: frozenset[str] | None = frozenset()


class Item(Struct, frozen=True):
    """One thing that waits for a person. `place` orders the queue; `hidden` wall seconds until which it is not shown."""

    id: str
    handle: str
    need: Need
    since: float
    place: float
    hidden: float = 0.0


class Queue(Struct, frozen=True):
    """All items, the number of the last id, and what became of earlier ids (the id after it, or nothing)."""

    items: tuple[Item, ...] = ()
    number: int = 0
    past: dict[str, str] = {}

    def find(self, item_id: str) -> Item | None:
        """The open item of this id."""
        return next((item for item in self.items if item.id == item_id), None)

    def later(self, item_id: str) -> str | None:
        """The open item that took the place of this one; empty if it is closed; None if it was never heard of."""
        if item_id not in self.past:
            return None
        while item_id in self.past:
            item_id = self.past[item_id]
        return item_id

    def visible(self, now: float) -> tuple[Item, ...]:
        """What waits now, the longest first."""
        return tuple(item for item in self.items if item.hidden <= now)


def reconcile(queue: Queue, seen: Mapping[str, Seen], now: float) -> Queue:
    """The queue after a look at all agents: what is needed has one item each, what is not needed any more has none.

    An agent that is not in `seen` has left. An item keeps its first moment and its place as long as its agent needs
    a person for that reason; another dialog of the same reason takes its place under a new id.
    """
    wanted = {(handle, need.kind): need for handle, one in seen.items() for need in one.needs}
    items: list[Item] = []
    number, past = queue.number, dict(queue.past)
    for item in queue.items:
        key = (item.handle, item.need.kind)
        one = seen.get(item.handle)
        if key in wanted:
            need = wanted.pop(key)
            if item.need.mark and need.mark and need.mark != item.need.mark:
                number += 1
                past[item.id] = f"a{number}"
                item = replace(item, id=f"a{number}", need=need, hidden=0.0)  # noqa: PLW2901 - the item goes on as another
            elif need.mark or not item.need.mark:
                item = replace(item, need=need)  # noqa: PLW2901 - the same item, better known
            items.append(item)
        elif one is not None and (one.keeps is None or item.need.kind in one.keeps):
            items.append(item)
        else:
            past[item.id] = ""
    for (handle, _), need in sorted(wanted.items(), key=lambda pair: (pair[1].since, pair[0])):
        number += 1
        since = min(need.since or now, now)
        items.append(Item(f"a{number}", handle, need, since, place=since))
    kept = dict(list(past.items())[-REMEMBERED:])
    return Queue(_ordered(items), number, kept)


def skip(queue: Queue, item_id: str, now: float) -> Queue:
    """The item goes behind all others and is hidden for a while."""
    last = max((item.place for item in queue.items), default=now)
    return _change(queue, item_id, place=max(now, last) + 0.001, hidden=now + SKIP_SECONDS)


def snooze(queue: Queue, item_id: str, until: float) -> Queue:
    """The item is hidden until then and keeps its place."""
    return _change(queue, item_id, hidden=until)


def _change(queue: Queue, item_id: str, **changes: float) -> Queue:
    items = [replace(item, **changes) if item.id == item_id else item for item in queue.items]
    return replace(queue, items=_ordered(items))


def _ordered(items: list[Item]) -> tuple[Item, ...]:
    return tuple(sorted(items, key=lambda item: (item.place, int(item.id[1:]))))
