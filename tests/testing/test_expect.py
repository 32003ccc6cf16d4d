"""Expectations: when one is met, when it can't be any more, and what a newcomer is told instead."""

from __future__ import annotations

from typing import Any

import pytest

from nbs_fleet.testing.expect import Verdict, judge, wanted
from nbs_fleet.testing.schema import ExpectFile
from nbs_fleet.testing.seen import AgentNow, EventNow, ItemNow, MessageNow, Seen

IDLE = AgentNow("ana", "idle", since=1.0)
CHAT = (MessageNow("ana", "begun"), MessageNow("bo", "hm"), MessageNow("ana", "done: 3 of 4"))


def expected(**what: Any) -> ExpectFile:
    return ExpectFile.model_validate(what)


def verdict(seen: Seen, **what: Any) -> Verdict:
    return judge(expected(**what), seen)


MET = [
    (Seen(agents=(IDLE,)), {"agent": {"handle": "ana", "state": "idle", "restarts": 0}}),
    (Seen(agents=(AgentNow("ana", "failed", exit=137),)), {"agent": {"handle": "ana", "exit": 137}}),
    (Seen(agents=(AgentNow("ana", "blocked", blocked="plan"),)), {"agent": {"handle": "ana", "blocked": "plan"}}),
    (Seen(chat=CHAT), {"messages": {"chat": "live", "from": "ana", "count": 2}}),
    (Seen(chat=CHAT), {"messages": {"chat": "live", "order": ["begun", "done"]}}),
    (Seen(chat=()), {"messages": {"chat": "live", "count": 0}}),
    (Seen(pending=(EventNow("x", "build", "red"),), processed=()), {"events": {"where": "pending", "type": "build"}}),
    (Seen(prompts=("Run it", "Stop")), {"prompts": {"agent": "ana", "matches": "^Run"}}),
    (Seen(screen=("a", "rate limit")), {"screen": {"agent": "ana", "matches": "rate +limit"}}),
    (Seen(items=(ItemNow("a1", "ana", "crash", "t"),)), {"attention": {"agent": "ana", "kind": "crash"}}),
    (Seen(), {"attention": {"count": 0}}),
    (Seen(file="- write"), {"file": {"path": "plan.md", "matches": "write"}}),
    (Seen(), {"file": {"path": "plan.md", "exists": False}}),
    (Seen(agents=(IDLE,)), {"nothing": {"for": "1s"}}),
]


@pytest.mark.parametrize(("seen", "what"), MET)
def test_what_is_there_is_found(seen: Seen, what: dict[str, Any]) -> None:
    found = verdict(seen, **what)
    assert found.met
    assert not found.over


# Ten expectations that are wrong, and what is told of each: (what is there, the expectation, words of the answer, over).
FAILED = AgentNow("ana", "failed", exit_words="crash (exit 3): no such model", restarts=4)
ASKING = AgentNow("ana", "blocked", blocked="permission", asks="Bash: rm -r build")
WRONG = [
    (
        Seen(agents=(AgentNow("ana", "busy", detail="Bash"),)),
        {"agent": {"handle": "ana", "state": "idle"}},
        ("ana is busy (Bash)", "started again since up: never"),
        False,
    ),
    (
        Seen(agents=(ASKING,)),
        {"agent": {"handle": "ana", "state": "idle"}},
        ("ana is blocked: permission", "it waits for a person: Bash: rm -r build; a step `answer` answers it"),
        False,
    ),
    (
        Seen(agents=(FAILED,)),
        {"agent": {"handle": "ana", "state": "idle"}},
        ("failed is final", "its client ended before: crash (exit 3): no such model"),
        True,
    ),
    (
        Seen(agents=(AgentNow("ana", "idle", restarts=2),)),
        {"agent": {"handle": "ana", "restarts": 1}},
        ("started again since up: twice",),
        True,
    ),
    (Seen(), {"agent": {"handle": "ana", "state": "idle"}}, ("ana was not started yet",), False),
    (
        Seen(agents=(AgentNow("ana", "idle", ready=False),)),
        {"agent": {"handle": "ana", "state": "idle"}},
        ("ana is idle", "it has not taken the prompt yet that it was started with"),
        False,
    ),
    (
        Seen(chat=CHAT),
        {"messages": {"chat": "live", "from": "bo", "matches": "done"}},
        ("0 fit", "in live:", "  ana: begun", "  bo: hm", "  ana: done: 3 of 4"),
        False,
    ),
    (
        Seen(chat=CHAT),
        {"messages": {"chat": "live", "order": ["done", "begun"]}},
        ("/begun/ came too early after /done/",),
        False,
    ),
    (Seen(chat=CHAT), {"messages": {"chat": "live", "from": "ana", "count": 1}}, ("2 fit",), True),
    (
        Seen(pending=(EventNow("ci", "build-failed", "red"),), processed=()),
        {"events": {"where": "processed", "type": "build-failed"}},
        ("0 fit", "processed: nothing", "pending:", "  build-failed from ci: red"),
        False,
    ),
    (
        Seen(agents=(AgentNow("ana", "paused", queued=2),), prompts=("You are ana",)),
        {"prompts": {"agent": "ana", "matches": "Run"}},
        ("given to ana:", "  You are ana", "ana is paused", "2 messages wait in its queue"),
        False,
    ),
    (
        Seen(screen=("", "❯ ", "")),
        {"screen": {"agent": "ana", "matches": "limit"}},
        ("its screen shows:", "  ❯ "),
        False,
    ),
    (Seen(), {"screen": {"agent": "ana", "matches": "x"}}, ("ana has no screen now",), False),
    (Seen(file="red\n"), {"file": {"path": "r.txt", "matches": "green"}}, ("r.txt holds:", "  red"), False),
    (Seen(), {"file": {"path": "r.txt"}}, ("there is no r.txt",), False),
    (
        Seen(items=(ItemNow("a1", "bo", "plan", "Plan: x"),)),
        {"attention": {"agent": "ana"}},
        ("waiting for a person:", "  a1 bo: plan, Plan: x"),
        False,
    ),
    (Seen(), {"messages": {"chat": "live"}}, ("there is no chat live",), False),
]


@pytest.mark.parametrize(("seen", "what", "words", "over"), WRONG)
def test_what_is_not_there_is_told_in_plain_words(
    seen: Seen, what: dict[str, Any], words: tuple[str, ...], over: bool
) -> None:
    found = verdict(seen, **what)
    assert not found.met
    assert found.over is over
    told = "\n".join(found.saw)
    for word in words:
        assert word in told, told


def test_nothing_is_broken_by_a_state_that_came_back_and_by_one_more_message() -> None:
    before = Seen(agents=(IDLE,), counts=(("messages in live", 1),))
    again = Seen(agents=(AgentNow("ana", "idle", since=2.0),), counts=(("messages in live", 3),))
    found = judge(expected(nothing={"for": "1s"}), again, before)
    assert found.over
    assert found.saw == ("ana was idle and became idle", "2 more messages in live")
    assert judge(expected(nothing={"for": "1s"}), before, before).met


def test_what_is_kept_is_the_group_else_the_text() -> None:
    assert verdict(Seen(chat=CHAT), messages={"chat": "live", "matches": r"(\d) of"}).kept == "3"
    assert verdict(Seen(chat=CHAT), messages={"chat": "live", "matches": "begun"}).kept == "begun"
    assert verdict(Seen(prompts=("a", "b")), prompts={"agent": "ana", "matches": "."}).kept == "b"


def test_an_expectation_is_a_sentence() -> None:
    assert wanted(expected(agent={"handle": "ana", "state": "idle", "restarts": 1})) == (
        "ana is idle and was started again once"
    )
    assert wanted(expected(messages={"chat": "live", "from": "bo", "matches": "done", "count": 2})) == (
        "exactly 2 messages from bo in live with /done/"
    )
    assert wanted(expected(events={"where": "pending", "count": 0})) == "no pending event"
    assert wanted(expected(attention={"agent": "ana"})) == "an item in the queue for ana"
