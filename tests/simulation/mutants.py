"""Plausible faults, put into the deciding code one at a time: the simulation must notice each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from msgspec.structs import replace

from nbs_fleet.attention import queue as queueing
from nbs_fleet.sidecar import decide as sidecar
from nbs_fleet.sidecar import delivery, recovery
from nbs_fleet.supervisor import decide as policy

Change = tuple[Any, str, Callable[[Any], Any]]
"""A module, the name of a function in it, and what makes the faulty one of the right one."""


def _renewed_without_search(right: Any) -> Any:
    """A new sidecar sends at once what waits, without looking whether it has arrived."""

    def wrong(post: Any, event: Any, now: float) -> Any:
        post, _ = right(post, event, now)
        return replace(post, parcels=tuple(replace(p, seeking=False, orphan=False) for p in post.parcels)), ()

    return wrong


def _hook_is_final(right: Any) -> Any:
    """What a hook tells is taken for final: a client that dies at once takes the message with it."""

    def wrong(post: Any, event: Any, now: float) -> Any:
        final = replace(event, final=True) if isinstance(event, delivery.Proved) else event
        return right(post, final, now)

    return wrong


def _forgets_endings(right: Any) -> Any:
    """What has arrived and could not be archived is taken for a new message."""
    return lambda post, event, now: right(replace(post, endings=()), event, now)


def _types_whatever_is_there(right: Any) -> Any:
    """Messages are typed two at a time."""

    def wrong(post: Any, view: Any, now: float) -> Any:
        post, actions = right(replace(post, parcels=tuple(replace(p, typing=False) for p in post.parcels)), view, now)
        return post, actions

    return wrong


def _limbo_gives_back(right: Any) -> Any:
    """What a living client took and does not use at once is put back."""

    def wrong(parcel: Any, view: Any, now: float) -> Any:
        if now > parcel.since + 0.2:
            return parcel, (delivery.PutBack(parcel.message.id),)
        return right(parcel, view, now)

    return wrong


def _items_stay(right: Any) -> Any:
    """What an agent needs no more stays in the queue."""

    def wrong(queue: Any, seen: Any, now: float) -> Any:
        made = right(queue, seen, now)
        gone = tuple(item for item in queue.items if made.find(item.id) is None and item.need.kind == "permission")
        return replace(made, items=tuple(sorted((*made.items, *gone), key=lambda i: (i.place, int(i.id[1:])))))

    return wrong


def _deaths_do_not_count(right: Any) -> Any:
    """A client that dies is started again however often it died."""

    def wrong(policy_: Any, end: Any, starts: Any, now: float, jitter: float) -> Any:
        return right(policy_, end, (), now, jitter)

    return wrong


def _adopts_nothing(right: Any) -> Any:
    """A supervisor that comes back does not watch what lives."""

    def wrong(fleet: Any, event: Any, now: Any) -> Any:
        fleet, _ = right(fleet, event, now)
        return fleet, ()

    return wrong


def _limits_last(right: Any) -> Any:
    """An agent whose turn failed is never tried again."""
    return lambda stuck, scene, rules, now: right(stuck, replace(scene, error=None), rules, now)


def _never_looks_again(right: Any) -> Any:
    """What changes during a look at the screen is not looked at afterwards."""
    return lambda mind, event, now: right(replace(mind, look_again=False), event, now)


def _wakes_now(right: Any) -> Any:
    """Something is always due at once."""

    def wrong(post: Any, view: Any, now: float) -> Any:
        at = right(post, view, now)
        return now + 1e-6 if post.parcels else at

    return wrong


def _starts_what_runs(right: Any) -> Any:
    """A person's `up` starts also what runs."""

    def wrong(life: Any, now: Any) -> Any:
        return replace(right(life, now), due=now.mono, alive=False, flight="")

    return wrong


MUTANTS: dict[str, Change] = {
    "sends before it has searched": (delivery, "_renewed", _renewed_without_search),
    "believes a hook at once": (delivery, "_proved", _hook_is_final),
    "forgets what could not be archived": (delivery, "_counted", _forgets_endings),
    "types two at a time": (delivery, "dispatch", _types_whatever_is_there),
    "takes back what is being used": (delivery, "_in_limbo", _limbo_gives_back),
    "leaves ghosts in the queue": (queueing, "reconcile", _items_stay),
    "restarts without a bound": (policy, "after_exit", _deaths_do_not_count),
    "adopts nobody": (policy, "_found", _adopts_nothing),
    "gives up after an error": (recovery, "recover", _limits_last),
    "looks only once": (sidecar, "_screen", _never_looks_again),
    "never sleeps": (delivery, "wake", _wakes_now),
    "starts what runs": (policy, "_wanted", _starts_what_runs),
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """The code with this fault in it."""
    module, function, make = MUTANTS[name]
    with mock.patch.object(module, function, make(getattr(module, function))):
        yield
