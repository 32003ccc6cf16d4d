"""The attention queue over whole histories: no duplicate, no ghost, nothing lost, order kept."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.attention.queue import SKIP_SECONDS, Item, Need, Queue, Seen, reconcile, skip, snooze

HANDLES = ("ana", "bo", "cy")
KINDS = ("permission", "question", "crash")

need_kinds = st.dictionaries(st.sampled_from(KINDS), st.sampled_from(("", "m1", "m2")), max_size=3)
sights = st.dictionaries(st.sampled_from(HANDLES), st.tuples(need_kinds, st.booleans()), max_size=3)
steps = st.one_of(
    st.tuples(st.just("see"), sights),
    st.tuples(st.just("skip"), st.integers(0, 5)),
    st.tuples(st.just("snooze"), st.integers(0, 5)),
    st.tuples(st.just("restart"), st.just(0)),
)


def need(kind: str = "permission", mark: str = "m1", since: float = 1.0) -> Need:
    return Need(kind, since, f"{kind} {mark}", mark=mark)


def look(sight: dict[str, tuple[dict[str, str], bool]], now: float) -> dict[str, Seen]:
    return {
        handle: Seen(tuple(need(k, m, now) for k, m in kinds.items()), keeps=None if keep else frozenset())
        for handle, (kinds, keep) in sight.items()
    }


def keys(queue: Queue) -> list[tuple[str, str]]:
    return [(item.handle, item.need.kind) for item in queue.items]


@given(st.lists(steps, max_size=40))
def test_whatever_happens_there_is_one_item_for_what_is_needed_and_none_for_what_is_not(
    history: list[tuple[str, object]],
) -> None:
    queue, now, seen_ids = Queue(), 100.0, set[str]()
    for what, arg in history:
        now += 1.0
        before = queue
        if what == "see":
            assert isinstance(arg, dict)
            seen = look(arg, now)
            queue = reconcile(queue, seen, now)
            wanted = {(h, n.kind) for h, one in seen.items() for n in one.needs}
            kept = {key for key in keys(before) if (one := seen.get(key[0])) is not None and one.keeps is None}
            assert set(keys(queue)) == wanted | kept
            old = {(i.handle, i.need.kind): i for i in before.items}
            for item in queue.items:
                earlier = old.get((item.handle, item.need.kind))
                # The first moment stays, whatever takes the place of what.
                assert earlier is None or (item.since, item.place) == (earlier.since, earlier.place)
                if earlier is None:
                    assert item.id not in seen_ids, "an id is never used twice"
        elif what == "restart":
            queue = msgspec.json.decode(msgspec.json.encode(queue), type=Queue)
            assert queue == before
        elif queue.items:
            assert isinstance(arg, int)
            chosen = queue.items[arg % len(queue.items)]
            queue = skip(queue, chosen.id, now) if what == "skip" else snooze(queue, chosen.id, now + 5)
            assert sorted(keys(queue)) == sorted(keys(before))
            assert chosen.id not in {i.id for i in queue.visible(now)}
            if what == "skip":
                assert queue.items[-1].id == chosen.id
        assert len(set(keys(queue))) == len(queue.items)
        assert len({i.id for i in queue.items}) == len(queue.items)
        assert [i.place for i in queue.items] == sorted(i.place for i in queue.items)
        seen_ids |= {i.id for i in queue.items}


@given(st.dictionaries(st.sampled_from(HANDLES), st.tuples(need_kinds, st.just(False)), max_size=3))
def test_looking_twice_changes_nothing(sight: dict[str, tuple[dict[str, str], bool]]) -> None:
    once = reconcile(Queue(), look(sight, 5.0), 5.0)
    assert reconcile(once, look(sight, 5.0), 6.0) == once


def queue_of(**first: float) -> Queue:
    return reconcile(Queue(), {h: Seen((need(since=at),)) for h, at in first.items()}, 100.0)


def ids(items: tuple[Item, ...]) -> list[str]:
    return [item.handle for item in items]


def test_who_was_stuck_first_comes_first() -> None:
    assert ids(queue_of(bo=2.0, ana=3.0, cy=1.0).items) == ["cy", "bo", "ana"]


def test_a_skipped_item_is_hidden_for_a_while_and_comes_back_last() -> None:
    queue = queue_of(ana=1.0, bo=2.0)
    queue = skip(queue, queue.items[0].id, 100.0)
    assert ids(queue.visible(100.0 + SKIP_SECONDS - 1)) == ["bo"]
    assert ids(queue.visible(100.0 + SKIP_SECONDS)) == ["bo", "ana"]


def test_a_snoozed_item_comes_back_to_its_place() -> None:
    queue = queue_of(ana=1.0, bo=2.0)
    queue = snooze(queue, queue.items[0].id, 200.0)
    assert ids(queue.visible(199.0)) == ["bo"]
    assert ids(queue.visible(200.0)) == ["ana", "bo"]


def test_another_dialog_of_the_same_reason_has_another_id_and_the_old_one_says_so() -> None:
    queue = queue_of(ana=1.0)
    old = queue.items[0]
    queue = reconcile(queue, {"ana": Seen((need(mark="m2", since=50.0),))}, 100.0)
    new = queue.items[0]
    assert (new.id != old.id, new.since) == (True, 1.0)
    assert queue.later(old.id) == new.id
    queue = reconcile(queue, {"ana": Seen()}, 101.0)
    assert queue.later(old.id) == ""
    assert queue.later("a99") is None


def test_a_dialog_that_is_read_late_keeps_its_id() -> None:
    queue = reconcile(Queue(), {"ana": Seen((need(mark=""),))}, 100.0)
    read = reconcile(queue, {"ana": Seen((need(mark="m1"),))}, 101.0)
    assert read.items[0].id == queue.items[0].id
    assert read.items[0].need.mark == "m1"
    unread = reconcile(read, {"ana": Seen((need(mark=""),))}, 102.0)
    assert unread == read


@pytest.mark.parametrize("keeps", [frozenset[str](), frozenset({"crash"})])
def test_what_speaks_for_nothing_closes_all_that_is_not_kept(keeps: frozenset[str]) -> None:
    queue = reconcile(Queue(), {"ana": Seen((need("crash", ""), need("question")))}, 100.0)
    left = reconcile(queue, {"ana": Seen(keeps=keeps)}, 101.0)
    assert [item.need.kind for item in left.items] == sorted(keeps)
