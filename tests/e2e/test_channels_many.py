"""Five agents, two chats and a bus, posts and events: each is noticed of what is for it, and of nothing else."""

from __future__ import annotations

import json
import os
import random
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nbs_fleet.model import Priority
from nbs_fleet.nbs.bridge import publish_message
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from tests.e2e.delivery.crew import Crew, token
from tests.e2e.delivery.situations import QUESTION
from tests.support.fleet import Fleet, Json
from tests.support.notice_model import said

HANDLES = ("ana", "bo", "cy", "di", "ana2")
MEMBERS = {"live": HANDLES, "side": ("ana", "bo", "ana2")}
NOTIFY = "Have a look now - {summary} - that is all"
WINDOW = 3.0
"""Seconds by which what a notice says may be older than the notice, on a loaded machine."""
HELD = 30
"""Posts that come while a dialog is open."""
SEED = os.environ.get("NBS_SEED")  # read now: tests see nothing of this person's environment

Unread = tuple[int, frozenset[str]]


@dataclass
class Seen:
    """What waits for one agent by the test's own count, each change with its time."""

    chats: dict[str, list[str]] = field(default_factory=dict)
    events: dict[str, str] = field(default_factory=dict)
    """Pending events for it: name -> type."""
    unread: dict[str, list[tuple[float, Unread]]] = field(default_factory=dict)
    pending: list[tuple[float, Unread]] = field(default_factory=lambda: [(0.0, (0, frozenset()))])
    noticed: int = 0

    def note(self) -> None:
        """Write down how things are now."""
        now = time.time()
        for chat, senders in self.chats.items():
            self.unread.setdefault(chat, [(0.0, (0, frozenset()))]).append((now, (len(senders), frozenset(senders))))
        self.pending.append((now, (len(self.events), frozenset(self.events.values()))))


class Traffic:
    """Posts, events, work and dialogs for a team; and the agents' reading, done when they are noticed and only then."""

    def __init__(self, crew: Crew, seed: int) -> None:
        self.crew, self.random = crew, random.Random(seed)  # repeatable, not secret
        folder = crew.fleet.root / ".nbs"
        self.chats = {name: Chat(str(folder / "chat" / f"{name}.chat")) for name in MEMBERS}
        self.bus = Bus(str(folder / "events"))
        self.seen = {h: Seen({c: [] for c, people in MEMBERS.items() if h in people}) for h in HANDLES}
        self.secret = token()
        """Stands in every message: no notice may have it."""
        self.open: dict[str, int] = {}
        """Agents with a dialog, and the number of the post at which it may be answered."""
        self.asked = 0
        self.dialogs: list[tuple[str, float, float]] = []
        """Who was surely in a dialog, from when to when (wall seconds)."""

    def post(self) -> None:
        """A message, with what its mentions mean."""
        chat = self.random.choice(tuple(MEMBERS))
        sender = self.random.choice((*MEMBERS[chat], "maria", "an"))
        called = set(self.random.sample(HANDLES, self.random.choice((0, 0, 1, 2))))
        text = f"{self.secret} x@bo.example @an {' '.join(f'@{h}' for h in sorted(called))}"
        if self.random.random() < 0.05:
            called, text = set(HANDLES), f"{self.secret} @team"
        self.chats[chat].send(sender, text)
        for handle in MEMBERS[chat]:
            if handle != sender:
                self.seen[handle].chats[chat].append(sender)
        before = set(os.listdir(self.bus.folder))
        assert publish_message(self.chats[chat].path, sender, text, HANDLES) == ()
        for name in set(os.listdir(self.bus.folder)) - before:
            if "-chat-mention-" in name:
                to = addressee(Path(self.bus.folder) / name)
                if to in HANDLES:
                    called.remove(to)
                    self.seen[to].events[name] = "chat-mention"
        assert called <= {sender}, f"not called: {called}"
        for one in self.seen.values():
            one.note()

    def publish(self) -> None:
        """An event for an agent, for somebody else, or for nobody."""
        to = self.random.choice((*HANDLES, "nobody"))
        kind = self.random.choice(("task-complete", "build-failed"))
        payload = f"@{to} {self.secret} and not @bo" if to != "nobody" else f"{self.secret} @ana is quoted"
        name = self.bus.publish("ci", kind, self.random.choice(list(Priority)), payload, dedup_window=0)
        if to in HANDLES and name is not None:
            self.seen[to].events[name] = kind
            self.seen[to].note()

    def occupy(self, number: int) -> None:
        """Give somebody something to do, or have it ask something."""
        handle = self.random.choice([h for h in HANDLES if h not in self.open])
        if self.random.random() < 0.4:
            self.asked += 1
            self.open[handle] = number + HELD
            self.crew.drop(handle, f"{token()} [[tool AskUserQuestion {json.dumps(QUESTION)}]]")
        else:
            self.crew.drop(handle, f"{token()} [[slow 1 some words]]")

    def answer(self, number: int) -> None:
        """Answer the dialogs that have been open long enough."""
        for handle, due in list(self.open.items()):
            if number >= due:
                self.crew.becomes(handle, "blocked: question")
                since = time.time()
                self.post()
                self.dialogs.append((handle, since, time.time()))
                self.crew.press(handle, "2")
                self.crew.until(lambda h=handle: self.crew.state(h) != "blocked: question", "it is answered")  # type: ignore[misc]
                del self.open[handle]

    def asking(self, handle: str, at: float) -> bool:
        """Whether the agent was surely in a dialog at that moment."""
        return any(who == handle and since < at < until for who, since, until in self.dialogs)

    def read(self) -> None:
        """Let those who were noticed read their chats and acknowledge their events."""
        for handle, seen in self.seen.items():
            told = len(self.crew.fleet.told(handle, "noticed"))
            if told == seen.noticed:
                continue
            seen.noticed = told
            for chat, senders in seen.chats.items():
                found = self.chats[chat].read(unread=handle)
                self.chats[chat].mark_read(handle, found)
                senders.clear()
            for name in list(seen.events):
                self.bus.ack(name)  # an error if another took it
                del seen.events[name]
            seen.note()

    def nothing_waits(self) -> bool:
        """Whether everything was read: by those who were noticed of it."""
        self.read()
        return not any(seen.events or any(seen.chats.values()) for seen in self.seen.values())


def addressee(path: Path) -> str:
    """Whom a mention's event is for."""
    return path.read_text(encoding="utf-8").partition("payload: |\n  @")[2].partition(" from ")[0]


def play(fleet: Fleet, count: int, seed: int) -> Traffic:
    """Traffic for a team of five until `count` posts and events have come, read by whom it concerns."""
    crew = Crew(fleet)
    busy = fleet.client.name != "claudeless"
    agents = [fleet.client.agent(handle, chats=[c for c in MEMBERS if handle in MEMBERS[c]]) for handle in HANDLES]
    rules = {"startup_grace": "100ms", "notify_cooldown": "300ms", "notify": NOTIFY}
    crew.write(agents, chats=list(MEMBERS), bus=[".nbs/events"], sidecar=rules)
    crew.up()
    fleet.all_idle()
    traffic = Traffic(crew, seed)
    for number in range(count):
        if traffic.random.random() < 0.7:
            traffic.post()
        else:
            traffic.publish()
        if busy and number % 25 == 10:
            traffic.occupy(number)
        traffic.answer(number)
        if number % 5 == 0:
            traffic.read()
    traffic.answer(count + HELD)
    crew.until(traffic.nothing_waits, f"seed {seed}: all are noticed of all that is for them", within=90)
    for handle in HANDLES:
        crew.until(lambda h=handle: not crew.waiting(h), f"{handle} has its notices", within=90)  # type: ignore[misc]
        crew.becomes(handle, "idle")
    return traffic


def audit(fleet: Fleet, traffic: Traffic) -> Counter[str]:
    """Each notice was right, came to an idle agent, and arrived at its client; returns how many, by agent."""
    numbers: Counter[str] = Counter()
    for handle, seen in traffic.seen.items():
        state = ""
        summaries = []
        for record in fleet.story(handle):
            if record["what"] == "decided":
                state = decided(record, state)
            if record["what"] == "noticed":
                assert not traffic.asking(handle, record["at"]), f"{handle} was noticed in a dialog: {record}"
                right(seen, record["summary"], record["at"])
                summaries.append(record["summary"])
        prompts = "\n".join(fleet.client.prompts(fleet.agent(handle)["session_id"]))
        assert traffic.secret not in prompts
        numbers[handle] = len(summaries)
        for summary, number in Counter(summaries).items():
            assert prompts.count(NOTIFY.format(summary=summary)) == number, f"{handle}: {summary}"
    assert all(numbers[handle] for handle in HANDLES), numbers
    return numbers


def decided(record: Json, state: str) -> str:
    """The state after a decision; a notice is only decided on in an idle one. (The supervisor tells it later.)"""
    for action in record["actions"]:
        if action["type"] == "Report":
            state = action["state"]
        assert action["type"] != "Notify" or state == "idle", f"noticed while {state}: {record}"
    return state


def right(seen: Seen, summary: str, at: float) -> None:
    """What a notice says was so just before."""
    unread, events, kinds = said(summary)
    assert unread or events, summary
    for chat, changes in seen.unread.items():
        number, senders = unread.pop(chat, (0, set()))
        assert any(n == number and senders <= who for n, who in lately(changes, at)), f"{summary} at {at}: {changes}"
    assert not unread, f"chats of others: {summary}"
    assert (events, frozenset(kinds)) in lately(seen.pending, at), f"{summary} at {at}"


def lately(changes: list[tuple[float, Unread]], at: float) -> list[Unread]:
    """The values that held at some moment within the window before `at`."""
    ends = [t for t, _ in changes[1:]] + [at + 1.0]
    return [
        value for (since, value), end in zip(changes, ends, strict=True) if since <= at + 0.5 and end >= at - WINDOW
    ]


def seeded() -> int:
    """A seed: that of `NBS_SEED`, or any; a failure names it."""
    return int(SEED or secrets.randbelow(10**6))


@pytest.mark.clients("sim")
def test_each_of_five_is_noticed_of_what_is_for_it_and_of_nothing_else(fleet: Fleet) -> None:
    audit(fleet, play(fleet, 60, seeded()))
