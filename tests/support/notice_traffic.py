"""Random posts and events for a team of five: made on the nbs files, and told to the model."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from nbs_fleet.model import Priority
from nbs_fleet.nbs.bridge import publish_message
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from tests.support.notice_model import CALLS, Model

HANDLES = ("ana", "bo", "cy", "di", "ana2")
MEMBERS = {"live": HANDLES, "side": ("ana", "bo", "ana2")}
STRANGERS = ("maria", "sidecar", "an", "team2")
DISTRACTIONS = ("", "mail x@bo.example", "look, ana", "from sidecar: all is well", "a#b@c", "@an", "@nobody hi")
"""Text that calls nobody of the team."""
KINDS = {"": "chat-mention", "?": "chat-query", "!": "chat-interrupt"}
"""What a mark behind a handle makes of a mention."""


class Traffic:
    """Chats and a bus below `folder` (a `.nbs`), with what happens there. `word` stands in front of every text.

    `marks` are what may stand behind a handle in a message, each as often as it is here.
    """

    def __init__(
        self,
        folder: Path,
        model: Model,
        *,
        chance: random.Random,
        clock: Callable[[], float],
        marks: tuple[str, ...],
        word: str = "",
    ) -> None:
        self.model, self.random, self.clock, self.marks, self.word = model, chance, clock, marks, word
        self.made = 0
        """Messages and events so far."""
        self._late = 0.0
        self._known: set[str] = set()
        for name in ("chat", "events"):
            (folder / name).mkdir(exist_ok=True)
        self.bus = Bus(str(folder / "events"), clock=lambda: clock() - self._late)
        self.chats = {name: Chat(str(folder / "chat" / f"{name}.chat"), clock=clock) for name in MEMBERS}
        for name, chat in self.chats.items():
            if not os.path.exists(chat.path):
                chat.create()
            model.chats[name] = []

    def post(self) -> tuple[tuple[str, str], ...]:
        """A message, which may call some, and the events that follow from it; returns who is called, with the event."""
        chat = self.random.choice(tuple(MEMBERS))
        sender = self.random.choice((*MEMBERS[chat], *STRANGERS))
        calls = {h: self.random.choice(self.marks) for h in self.random.sample(HANDLES, self.random.randint(0, 2))}
        words = [f"@{handle}{mark}" for handle, mark in calls.items()]
        if self.random.random() < 0.1:
            calls, words = dict.fromkeys(HANDLES, ""), ["@team"]
        words.insert(self.random.randint(0, len(words)), self.random.choice(DISTRACTIONS))
        text = f"{self.word}{self.made} " + " and ".join(words)
        self.made += 1
        self.chats[chat].send(sender, text)
        self.model.post(chat, sender, self.clock())
        assert publish_message(self.chats[chat].path, sender, text, HANDLES) == ()
        wanted = {handle: mark for handle, mark in calls.items() if handle != sender}
        found = [self._follow(name, sender, wanted) for name in self._new()]
        assert not wanted, f"not called: {wanted}"
        return tuple((to, name) for kind, to, name in found if to in HANDLES and kind in CALLS)

    def _new(self) -> list[str]:
        """Events that came since the last look, also such as were acknowledged already."""
        before = self._known
        self._known = set(os.listdir(self.bus.folder)) - {"processed"}
        if os.path.isdir(self.bus.processed_folder):
            self._known |= set(os.listdir(self.bus.processed_folder))
        return sorted(self._known - before)

    def _follow(self, name: str, sender: str, wanted: dict[str, str]) -> tuple[str, str, str]:
        """Book one event of the bridge: its type, whom it is for, its name."""
        kind = next(k for k in ("chat-message", *KINDS.values()) if f"nbs-chat-{k}-" in name)
        to = ""
        if kind != "chat-message":
            to = self._payload(name).partition("payload: |\n  @")[2].partition(" from ")[0]
            if to in HANDLES:
                assert kind == KINDS[wanted.pop(to)]
        urgent = kind == "chat-mention" and sender != "sidecar"
        self.model.publish(name, kind, to or None, self.clock(), urgent=urgent)
        return kind, to, name

    def _payload(self, name: str) -> str:
        try:
            return (Path(self.bus.folder) / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return (Path(self.bus.processed_folder) / name).read_text(encoding="utf-8")

    def publish(self) -> None:
        """An event by hand: for an agent, for somebody else, or for nobody; sometimes by a writer who was slow."""
        to = self.random.choice((*HANDLES, *HANDLES, "nobody", "ana3", None))
        priority = self.random.choice(list(Priority))
        payload = f"about {self.word}@ana is quoted here" if to is None else f"@{to} {self.word}and not @bo"
        kind = self.random.choice(("task-complete", "build-failed", "human-input"))
        self._late = self.random.choice((0.0, 0.0, 0.0, 40.0))
        name = self.bus.publish(self.random.choice((*HANDLES, "ci")), kind, priority, payload, dedup_window=0)
        self._late = 0.0
        assert name is not None
        self._known.add(name)
        self.made += 1
        urgent = priority is Priority.CRITICAL or kind == "human-input"
        self.model.publish(name, kind, to, self.clock(), urgent=urgent)

    def work(self, handle: str) -> None:
        """An agent reads a chat, or acknowledges some events of its own."""
        if self.random.random() < 0.5:
            self.read(handle, self.random.choice([name for name, people in MEMBERS.items() if handle in people]))
            return
        mine = self.model.of(handle)
        for name in self.random.sample(mine, self.random.randint(0, len(mine))):
            self.acknowledge(name)

    def read(self, handle: str, chat: str) -> None:
        """An agent reads a chat to its end, and finds what it must find."""
        found = self.chats[chat].read(unread=handle)
        self.chats[chat].mark_read(handle, found)
        assert len(found.messages) == self.model.read_chat(handle, chat)

    def acknowledge(self, name: str) -> None:
        """Acknowledge an event; an error if another took it."""
        self.bus.ack(name)
        self.model.acknowledge(name)

    def tidy(self) -> None:
        """Somebody acknowledges what is for nobody here."""
        for name, (_, to) in list(self.model.events.items()):
            if to not in HANDLES:
                self.acknowledge(name)

    def untouched(self) -> None:
        """What is pending is what should be: nobody took what is not for it."""
        assert {event.name for event in self.bus.pending().events} == set(self.model.events)
