"""People are called once for each item by each rule, not while they rest, and not more often than they want."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nbs_fleet.attention.notifications import Call, Memory, Now, due, fits, is_quiet
from nbs_fleet.attention.queue import Item, Need
from nbs_fleet.spec.team import Notification

NOON = 12 * 60
ANY = Notification(("attention",), "desktop")


def item(number: int, kind: str = "permission", handle: str = "ana", since: float = 100.0, hidden: float = 0.0) -> Item:
    return Item(f"a{number}", handle, Need(kind, since, f"{kind} {number}"), since, since, hidden)


class Desk:
    """One team's rules over time."""

    def __init__(self, *rules: Notification, **own: tuple[Notification, ...]) -> None:
        self.rules = {"": rules, **own}
        self.memory = Memory()
        self.wake: float | None = None

    def see(self, *items: Item, at: float = 100.0, away: bool = False, minute: int = NOON) -> tuple[Call, ...]:
        now = Now(at, at, minute, away)
        self.memory, calls, self.wake = due(self.rules, items, self.memory, now)
        return calls


def ids(calls: tuple[Call, ...]) -> list[list[str]]:
    return [[i.id for i in call.items] for call in calls]


def test_an_item_is_called_once_and_again_only_as_another_item() -> None:
    desk = Desk(ANY)
    assert ids(desk.see(item(1))) == [["a1"]]
    assert desk.see(item(1), at=5000.0) == ()
    assert ids(desk.see(item(2))) == [["a2"]]


@pytest.mark.parametrize(
    ("word", "kinds"),
    [
        ("blocked", {"permission", "login", "plan", "trust"}),
        ("permission", {"permission"}),
        ("failed", {"failed", "crash"}),
        ("limited", {"limit"}),
        ("escalated", {"escalation", "error"}),
        ("done", {"idle-done"}),
        ("alarm", {"alarm"}),
        ("attention", {"permission", "login", "plan", "trust", "failed", "crash", "limit", "escalation", "error"}),
    ],
)
def test_which_reasons_a_word_stands_for(word: str, kinds: set[str]) -> None:
    every = [
        "permission",
        "login",
        "plan",
        "trust",
        "failed",
        "crash",
        "limit",
        "escalation",
        "error",
        "idle-done",
        "alarm",
        "budget",
    ]
    found = {kind for kind in every if fits(Notification((word,), "desktop"), kind)}
    assert found == (set(every) if word == "attention" else kinds)


def test_a_rule_waits_while_somebody_sits_there_and_not_while_they_are_away() -> None:
    desk = Desk(replace(ANY, after=60.0))
    assert desk.see(item(1)) == ()
    assert desk.wake == 160.0
    called = desk.see(item(1), at=101.0, away=True)
    assert ids(called) == [["a1"]]
    assert called[0].urgent
    assert ids(Desk(replace(ANY, after=60.0)).see(item(1), at=160.0)) == [["a1"]]


def test_a_cooldown_gathers_what_came_meanwhile_into_one_call() -> None:
    desk = Desk(replace(ANY, cooldown=300.0))
    desk.see(item(1))
    assert desk.see(item(1), item(2), at=200.0) == ()
    assert desk.wake == 400.0
    called = desk.see(item(2), item(3), at=400.0)
    assert ids(called) == [["a2", "a3"]]
    assert called[0].title == "2 wait for you"
    assert "permission 2" in called[0].text


def test_quiet_hours_hold_back_and_their_end_brings_what_still_waits() -> None:
    desk = Desk(replace(ANY, quiet="22:00-07:00"))
    assert desk.see(item(1), item(2), minute=23 * 60) == ()
    assert desk.wake == 100.0 + 8 * 3600.0
    assert ids(desk.see(item(2), at=desk.wake, minute=7 * 60)) == [["a2"]]


@pytest.mark.parametrize(
    ("quiet", "minute", "expected"),
    [
        ("22:00-07:00", 22 * 60, True),
        ("22:00-07:00", 7 * 60 - 1, True),
        ("22:00-07:00", 7 * 60, False),
        ("22:00-07:00", NOON, False),
        ("12:00-13:00", NOON, True),
        ("12:00-13:00", 13 * 60, False),
        (None, NOON, False),
    ],
)
def test_quiet_hours(quiet: str | None, minute: int, *, expected: bool) -> None:
    assert is_quiet(quiet, minute) is expected


def test_what_is_skipped_or_snoozed_is_not_called_before_it_shows_again() -> None:
    desk = Desk(ANY)
    assert desk.see(item(1, hidden=130.0)) == ()
    assert desk.wake == 130.0
    assert ids(desk.see(item(1, hidden=130.0), at=130.0)) == [["a1"]]


def test_an_agent_with_rules_of_its_own_is_not_called_by_those_of_the_team() -> None:
    own = Notification(("failed",), "webhook", url="https://x/y")
    desk = Desk(ANY, bo=(own,))
    called = desk.see(item(1), item(2, handle="bo"), item(3, "failed", "bo"))
    assert [(call.rule.via, [i.id for i in call.items]) for call in called] == [
        ("desktop", ["a1"]),
        ("webhook", ["a3"]),
    ]


def test_a_long_list_is_cut() -> None:
    called = Desk(ANY).see(*(item(n) for n in range(9)))
    assert called[0].text.splitlines()[-1] == "and 4 more"


events = st.lists(
    st.tuples(st.sets(st.integers(0, 5)), st.floats(0, 50), st.booleans(), st.integers(0, 1439)), max_size=40
)


@given(events, st.floats(0, 60), st.floats(0, 60))
def test_no_item_is_called_twice_and_none_outside_its_times(
    history: list[tuple[set[int], float, bool, int]], after: float, cooldown: float
) -> None:
    rule = replace(ANY, after=after, cooldown=cooldown, quiet="22:00-07:00")
    desk, now, called, last = Desk(rule), 100.0, set[str](), float("-inf")
    opened: dict[int, Item] = {}
    serial = 0
    for present, step, away, minute in history:
        now += step
        for number in set(opened) - present:
            del opened[number]
        for number in present - set(opened):
            serial += 1
            opened[number] = item(serial, since=now)
        for call in desk.see(*opened.values(), at=now, away=away, minute=minute):
            assert not is_quiet(rule.quiet, minute)
            assert now >= last + cooldown
            last = now
            for one in call.items:
                assert one.id not in called
                assert away or now >= one.since + after - 1e-6
                called.add(one.id)
        assert desk.wake is None or desk.wake > now - 1e-6
