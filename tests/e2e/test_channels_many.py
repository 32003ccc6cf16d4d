"""Five agents, two chats and a bus, posts and events: each is told of what is for it, and of nothing else."""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from nbs_fleet.model import AgentState
from tests.e2e.delivery.crew import Crew, token
from tests.e2e.delivery.situations import QUESTION
from tests.support.fleet import Fleet, Json
from tests.support.notice_hindsight import Hindsight
from tests.support.notice_model import Model, Person
from tests.support.notice_traffic import HANDLES, MEMBERS, Traffic
from tests.support.tails import Tail

NOTIFY = "Have a look now - {summary} - that is all"
SUMMARY = re.compile(r"Have a look now - (.*?) - that is all")
COOLDOWN = 0.5
PATIENCE = 180.0
"""Seconds within which everybody who is free has been told, on a loaded machine."""
BURSTS = (1, 2, 5, 10, 30, 60, 90, 120)
"""Posts and events that come at once."""
HELD = 3
"""Bursts that come while an agent is busy or in a dialog."""
MARGIN = 1.0
"""Seconds after which the fleet must have seen that an agent is busy."""
SEED = os.environ.get("NBS_SEED")  # read now: tests see nothing of this person's environment
SLOW = 3
"""Seconds that a slow turn of claudeless takes."""
CLAUDELESS = {
    "responses": [
        {"pattern": {"type": "contains", "text": "[[slow"}, "response": {"text": "said", "delay_ms": SLOW * 1000}},
        {
            "pattern": {"type": "contains", "text": "[[ask"},
            "response": {"text": "", "tool_calls": [{"tool": "Bash", "input": {"command": "touch touched"}}]},
        },
        {"pattern": {"type": "any"}, "response": "ok"},
    ],
    "tool_execution": {"mode": "live"},
}


@dataclass
class Taken:
    """An agent that has something to do, or asks something: it may be told nothing from `since` to `until`."""

    handle: str
    asks: bool
    word: str
    due: int
    """The burst after which it ends."""
    message: str = ""
    since: float | None = None
    until: float | None = None
    """For what ends by itself: until when it surely goes on."""

    def holds(self, at: float) -> bool:
        """Whether the agent was surely not free at that moment."""
        return self.since is not None and self.since + MARGIN < at and (self.until is None or at < self.until)


@dataclass
class Ear:
    """One agent as its story tells of it."""

    tail: Tail
    state: str = ""
    summaries: list[str] = field(default_factory=list)
    delivered: list[str] = field(default_factory=list)
    unread: bool = False
    """It was told something and has not looked since."""


class Five:
    """The team, what happens to it, and what it is told; agents read once they are told, and only then."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.fleet, self.crew, self.random = fleet, Crew(fleet), random.Random(seed)  # repeatable, not secret
        self.crew.patience = PATIENCE
        self.real = fleet.client.name != "claudeless"
        self.secret = token()
        """Stands in every message: no notice may have it."""
        self.bursts = 0
        self.taken: dict[str, Taken] = {}
        self.past: list[Taken] = []
        self.ears: dict[str, Ear] = {}
        self._up()
        self.model = Model(MEMBERS, 0.0, COOLDOWN)
        for handle in HANDLES:
            self.model.people[handle] = Person(read={name: 0 for name, people in MEMBERS.items() if handle in people})
            self.ears[handle] = Ear(Tail(fleet.run_dir / "agents" / handle / "story.jsonl"))
        # Rarely asked for a screen: the answer has to be waited for.
        marks = ("",) * 20 + ("?",)
        self.traffic = Traffic(
            fleet.root / ".nbs", self.model, chance=self.random, clock=time.time, marks=marks, word=self.secret
        )
        self.sight = Hindsight(self.model, time.time)

    def _up(self) -> None:
        make = self.fleet.client.agent
        fields: Json = {"permissions": {"allow": ["Bash"]}} if self.real else {"scenario": CLAUDELESS}
        agents = [make(h, chats=[c for c in MEMBERS if h in MEMBERS[c]], **fields) for h in HANDLES]
        rules = {"startup_grace": "100ms", "notify_cooldown": f"{COOLDOWN * 1000:.0f}ms", "notify": NOTIFY}
        (self.fleet.root / ".nbs" / "events").mkdir(exist_ok=True)
        self.crew.write(agents, chats=list(MEMBERS), bus=[".nbs/events"], sidecar=rules)
        self.crew.up()
        self.fleet.all_idle()

    # -- what happens

    def burst(self, most: int) -> None:
        """Some posts and events at once, and what follows from them."""
        self.bursts += 1
        for _ in range(min(most, self.random.choice(BURSTS))):
            called: tuple[tuple[str, str], ...] = ()
            begun = time.time()
            with self.sight.change():
                if self.random.random() < 0.7:
                    called = self.traffic.post()
                else:
                    self.traffic.publish()
            if called:
                self.shown(called, begun)
        if self.random.random() < 0.5:
            self.occupy()
        self.release()
        if self.random.random() < 0.6:
            self.wait_until_told()
        self.hear()
        self.read()
        if self.bursts % 5 == 0:
            self.traffic.tidy()

    def shown(self, called: tuple[tuple[str, str], ...], since: float) -> None:
        """The sidecars that were asked for a screen show it in the agents' first chat, and take the events."""
        done = self.traffic.bus.processed_folder
        # They may have done so while the events were still being written.
        with self.sight.change(since):
            for handle, event in called:
                self.crew.until(lambda event=event: os.path.exists(os.path.join(done, event)), f"{handle} is shown")  # type: ignore[misc]
                self.model.post("live", "sidecar", time.time())
                self.model.acknowledge(event)
            newest = self.traffic.chats["live"].messages()[-len(called) :]
        assert {message.handle for message in newest} == {"sidecar"}
        assert {message.text.partition(":")[0] for message in newest} == {f"session output for {h}" for h, _ in called}

    def occupy(self) -> None:
        """Give somebody who is free something to do, or let it ask something."""
        free = [handle for handle in HANDLES if handle not in self.taken]
        if len(free) < 2:
            return
        one = Taken(self.random.choice(free), self.random.random() < 0.5, token(), self.bursts + HELD)
        if not self.real:
            what = "[[ask]]" if one.asks else "[[slow]]"
        elif one.asks:
            what = f"[[tool AskUserQuestion {json.dumps(QUESTION)}]]"
        else:
            what = f"[[bash touch in-{one.word}; until [ -e out-{one.word} ]; do sleep 0.1; done]]"
        if not (self.real or one.asks):
            one.until = time.time() + SLOW  # at the earliest
        self.taken[one.handle] = one
        one.message = self.crew.drop(one.handle, f"{one.word} {what}")

    def begun(self, one: Taken) -> bool:
        """Whether it has begun; from then on the agent may be told nothing."""
        if one.since is None and self._shows(one):
            one.since = time.time()
        return one.since is not None

    def _shows(self, one: Taken) -> bool:
        if one.asks:
            return self.crew.reading(one.handle).state is AgentState.BLOCKED
        if self.real:
            return (self.fleet.root / f"in-{one.word}").exists()
        return self.crew.state(one.handle) == "unknown"

    def release(self, *, everybody: bool = False) -> None:
        """End what has lasted long enough."""
        for one in list(self.taken.values()):
            self.begun(one)
            if everybody or self.bursts >= one.due:
                self._end(one)
                self.past.append(self.taken.pop(one.handle))

    def _end(self, one: Taken) -> None:
        if one.until is not None:
            # It ends by itself, and was perhaps too short to be seen; what proves it is written when it is over.
            self.crew.until(lambda: self.crew.ended(one.message), f"it is over: {one}")
            return
        self.crew.until(lambda: self.begun(one), f"it has begun: {one}")
        one.until = time.time()
        if one.asks:
            self.crew.press(one.handle, "2" if self.real else "1")
            self.crew.until(lambda: not self._shows(one), f"it is over: {one}")
        else:
            (self.fleet.root / f"out-{one.word}").touch()

    # -- what is told

    def hear(self) -> None:
        """Judge the notices that were given since the last time."""
        for handle, ear in self.ears.items():
            for record in ear.tail:
                if record["what"] == "decided":
                    self._decided(handle, ear, record)
                if record["what"] == "message delivered":
                    ear.delivered.append(record["id"])

    def _decided(self, handle: str, ear: Ear, record: Json) -> None:
        for action in record["actions"]:
            if action["type"] == "Report":
                ear.state = action["state"]
            if action["type"] == "Notify":
                assert ear.state == "idle", f"{handle} is told something while {ear.state}: {record}"
                taken = [*self.past, *self.taken.values()]
                held = [one for one in taken if one.handle == handle and one.holds(record["at"])]
                assert not held, f"{handle} is told something: {record} while {held}"
                self.sight.judge(handle, action["summary"], action["why"], record["at"])
                ear.summaries.append(action["summary"])
                ear.unread = True

    def wait_until_told(self) -> None:
        """Everybody who is free is told, within a generous time."""

        def missing() -> str:
            states = {handle: self.crew.state(handle) for handle in HANDLES}
            untold = {handle: self.sight.untold(handle) for handle in HANDLES}
            return f"{untold} untold; {states}; taken {self.taken}"

        self.fleet._until(self.all_told, PATIENCE, missing)

    def all_told(self) -> bool:
        """Whether everybody who is free was told of all that waits for it."""
        self.hear()
        return not any(self.sight.untold(handle) for handle in HANDLES if handle not in self.taken)

    def read(self) -> None:
        """Those who were told look: most read everything, some a part."""
        for handle, ear in self.ears.items():
            if not ear.unread or handle in self.taken or self.random.random() < 0.1:
                continue
            ear.unread = False
            with self.sight.change():
                if self.random.random() < 0.2:
                    self.traffic.work(handle)
                    continue
                for chat in self.model.people[handle].read:
                    self.traffic.read(handle, chat)
                for name in self.model.of(handle):
                    self.traffic.acknowledge(name)

    def settle(self) -> None:
        """All become free; in the end each was told of all that is for it, and nothing was taken by another."""
        self.release(everybody=True)
        self.wait_until_told()
        for handle in HANDLES:
            self.crew.until(lambda h=handle: self._has_all(h), f"{handle} has its notices", within=PATIENCE)  # type: ignore[misc]
            self.crew.becomes(handle, "idle", within=PATIENCE)
        self.hear()
        self.traffic.tidy()
        self.traffic.untouched()
        self.crew.audit()
        for handle in HANDLES:
            self.arrived(handle)

    def _has_all(self, handle: str) -> bool:
        """Whether each notice that was decided on was delivered; it lies in no folder until it was written down."""
        self.hear()
        ear = self.ears[handle]
        notices = [one for one in ear.delivered if one not in self.crew.sent]
        return len(notices) >= len(ear.summaries) and not self.crew.waiting(handle)

    def arrived(self, handle: str) -> None:
        """Each notice came to the agent's model, once and as it was given, and nothing of the messages with it."""
        ear, ledger = self.ears[handle], self.crew.ledger
        ids = [one for one in ear.delivered if one not in self.crew.sent]
        assert {one: ledger.times()[one] for one in ids} == dict.fromkeys(ids, 1)
        found = [SUMMARY.search(ledger.texts()[one]) for one in ids]
        assert Counter(match and match[1] for match in found) == Counter(ear.summaries)
        assert ledger.times()[self.secret] == 0
        prompts = self.fleet.client.prompts(self.fleet.agent(handle)["session_id"])
        assert not any(self.secret in prompt for prompt in prompts)


def play(fleet: Fleet, count: int) -> Five:
    """Let `count` random messages and events come to a team of five."""
    seed = int(SEED or secrets.randbelow(10**6))
    five = Five(fleet, seed)
    print(f"NBS_SEED={seed}")
    while five.traffic.made < count:
        five.burst(count - five.traffic.made)
    five.settle()
    return five


@pytest.mark.clients("sim")
def test_each_of_five_is_told_of_what_is_for_it_and_of_nothing_else(fleet: Fleet) -> None:
    five = play(fleet, 60)
    assert sum(len(ear.summaries) for ear in five.ears.values()) >= len(HANDLES)


@pytest.mark.long
def test_so_it_is_over_two_thousand_messages_and_events(fleet: Fleet) -> None:
    five = play(fleet, 2000)
    assert five.traffic.made == 2000
    assert all(len(ear.summaries) > 15 for ear in five.ears.values())
