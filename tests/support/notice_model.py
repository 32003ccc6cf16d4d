"""What a team ought to be told, kept by itself: messages, events, who they are for; shares no code with nbs_fleet."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

FAR = -1e9
CALLS = ("chat-query", "chat-interrupt")
"""Events that a sidecar answers itself: no agent is told of them."""
_UNREAD = re.compile(r"(\d+) unread in (\w+)(?: \(([^)]*)\))?")
_EVENTS = re.compile(r"(\d+) events? \(([^)]*)\)")


Summary = tuple[dict[str, tuple[int, set[str]]], int, set[str]]
"""Per chat with unread messages how many and by whom; how many events, and their types."""


@dataclass
class Item:
    """Something that waits for one agent, since when, and whether it waits for no cooldown."""

    since: float
    urgent: bool = False
    covered: bool = False
    """A notice was given while it waited."""


@dataclass
class Person:
    """One agent as the model knows it."""

    state: str = "idle"
    idle_since: float = 0.0
    began: float = 0.0
    last_notice: float = FAR
    read: dict[str, int] = field(default_factory=dict)
    """Per chat, how many of its messages were read."""
    items: dict[str, Item] = field(default_factory=dict)
    """By `chat#number` or the event's name."""
    notices: int = 0


@dataclass
class Model:
    """The team. `members` has the handles of each chat; times are seconds of the simulated clock."""

    members: dict[str, tuple[str, ...]]
    grace: float
    cooldown: float
    people: dict[str, Person] = field(default_factory=dict)
    chats: dict[str, list[str]] = field(default_factory=dict)
    """The senders of each chat's messages."""
    events: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Pending events: name -> (type, whom it is for)."""

    def post(self, chat: str, sender: str, now: float) -> None:
        """A message in a chat."""
        self.chats[chat].append(sender)
        number = len(self.chats[chat])
        for handle in self.members[chat]:
            person = self.people[handle]
            if sender == handle:
                # Who has read all the others' messages has read its own, too.
                seen = person.read[chat]
                if all(who == handle for who in self.chats[chat][seen:]):
                    person.read[chat] = number
            elif sender != "sidecar":
                person.items[f"{chat}#{number}"] = Item(now)

    def publish(self, name: str, kind: str, to: str | None, now: float, *, urgent: bool = False) -> None:
        """An event in the bus, for an agent or for nobody."""
        self.events[name] = (kind, to)
        if to in self.people and kind not in CALLS:
            self.people[to].items[name] = Item(now, urgent)

    def read_chat(self, handle: str, chat: str) -> int:
        """The agent reads a chat to its end; returns how many messages it finds."""
        person = self.people[handle]
        found = len(self.chats[chat]) - person.read[chat]
        person.read[chat] = len(self.chats[chat])
        person.items = {key: item for key, item in person.items.items() if not key.startswith(f"{chat}#")}
        return found

    def acknowledge(self, name: str) -> None:
        """An event is done with."""
        _, to = self.events.pop(name)
        if to in self.people:
            self.people[to].items.pop(name, None)

    def of(self, handle: str) -> list[str]:
        """The pending events for an agent."""
        return [name for name, (_, to) in self.events.items() if to == handle]

    def told(self, handle: str, summary: str, why: str, now: float) -> None:
        """A notice was given: it must be right in every word."""
        person = self.people[handle]
        assert person.state == "idle", f"{handle} is {person.state}: {summary}"
        assert now >= person.began + self.grace
        assert person.items, f"{handle} is told of nothing: {summary}"
        fresh = [item for item in person.items.values() if not item.covered]
        assert fresh or why in ("reminder", "recovery", "catch-up"), f"{handle} is told twice: {why}: {summary}"
        if why == "new":
            assert now >= person.last_notice + self.cooldown
        if why == "urgent":
            assert any(item.urgent for item in fresh)
        assert said(summary) == self.expected(handle), summary
        for item in person.items.values():
            item.covered = True
        person.last_notice = now
        person.notices += 1

    def expected(self, handle: str) -> Summary:
        """What a notice has to say now."""
        unread: dict[str, tuple[int, set[str]]] = {}
        for chat, senders in self.chats.items():
            others = [who for who in senders[self.people[handle].read.get(chat, 0) :] if who != handle]
            if handle in self.members[chat] and others:
                unread[chat] = (len(others), set(list(dict.fromkeys(others))[:4]))
        mine = [self.events[name][0] for name in self.of(handle)]
        kinds = [kind for kind in mine if kind not in CALLS]
        return unread, len(kinds), set(kinds)

    def due(self, handle: str) -> float | None:
        """When the agent must have been told of what waits, if it stays idle."""
        person = self.people[handle]
        if person.state != "idle":
            return None
        ready = max(person.idle_since, person.began + self.grace)
        times = []
        for item in person.items.values():
            if not item.covered:
                wait = FAR if item.urgent else person.last_notice + self.cooldown
                times.append(max(ready, item.since, wait))
        return min(times, default=None)

    def check(self, now: float, slack: float) -> None:
        """Nobody idle waits longer for a notice than it may."""
        for handle in self.people:
            due = self.due(handle)
            assert due is None or now <= due + slack, f"{handle} was not told in time: {self.people[handle]}"


def said(summary: str) -> Summary:
    """What a summary says: per chat how many and by whom, how many events, and their types."""
    unread = {chat: (int(number), set(who.split(", "))) for number, chat, who in _UNREAD.findall(summary)}
    events = _EVENTS.search(summary)
    return unread, int(events[1]) if events else 0, set(events[2].split(", ")) if events else set()
