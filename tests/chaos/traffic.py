"""Sends messages, posts, events and questions all the time, and notes each one that was accepted."""

from __future__ import annotations

import random
import secrets
import threading
import time

from msgspec import Struct

from nbs_fleet.errors import FleetError
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.model import Message, MessageKind
from nbs_fleet.testing.world import Done
from tests.chaos.ground import TEAM, Ground, handles

TEXTS = ("{0} please look", "{0} [[slow 1 a longer answer to that]]", "{0} [[bash sleep 0.5]]", "{0} " + "lorem " * 300)
ASKED = (
    ("ps", "--json", "--team", TEAM),
    ("ps", "--team", TEAM),
    ("queue", "--team", TEAM),
    ("logs", "--team", TEAM, "-n", "20"),
    ("why", "a1", "--team", TEAM),
    ("inbox", "list", "a2", "--team", TEAM),
    ("peek", "a3", "--team", TEAM),
    ("ls",),
    ("doctor", "--json"),
    ("chat", "read", "live", "--team", TEAM),
    ("signal", "--help"),
    ("metrics", "--team", TEAM),
)
PAUSE = 0.02
LETTERS_PAUSE = 0.25


class Sent(Struct, frozen=True):
    """One thing that was accepted: a directive by its id, a post or an event by its token. `at` monotonic seconds."""

    kind: str
    to: str
    token: str
    at: float
    id: str = ""


class Traffic(threading.Thread):
    """Runs until `stop`. What is refused is only counted: `Ground.said` has how."""

    def __init__(self, ground: Ground, seed: int) -> None:
        super().__init__(name="traffic", daemon=True)
        self._ground = ground
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self.accepted: list[Sent] = []
        self.refused = 0
        self.asked = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._over.wait(PAUSE):
                self._one()
        except BaseException as error:  # noqa: BLE001 -- told by the soak's own thread
            self.error = error

    def stop(self) -> None:
        """No more; what is under way is finished."""
        self._over.set()
        self.join()
        if self.error is not None:
            raise self.error

    def _one(self) -> None:
        what = self._chance.choices(("directive", "post", "event", "question"), (8, 2, 2, 1))[0]
        if what == "question":
            self._ground.command(*self._chance.choice(ASKED))
            self.asked += 1
        else:
            self.send(what, self._chance.choice(handles()))

    def send(self, what: str, handle: str) -> Sent | None:
        """Send one thing; None if it was refused."""
        token = f"tk{secrets.token_hex(6)}"
        at = time.monotonic()
        if what == "directive":
            text = self._chance.choice(TEXTS).format(token)
            done = self._ground.command("send", "--team", TEAM, handle, "--", text)
        elif what == "post":
            done = self._ground.command("chat", "send", "--team", TEAM, "live", "tester", f"@{handle} {token}")
        else:
            done = self._ground.command(
                "bus", "publish", ".nbs/events", "tester", "note", "normal", f"@{handle} {token}"
            )
        if done.code != 0:
            self.refused += 1
            return None
        sent = Sent(what, handle, token, at, identity(done) if what == "directive" else "")
        self.accepted.append(sent)
        return sent


class Letters(threading.Thread):
    """Puts directives into the agents' queues by the same code as `send`, without the cost of a command, until `stop`."""

    def __init__(self, ground: Ground, seed: int) -> None:
        super().__init__(name="letters", daemon=True)
        self._paths = ground.world.eyes.paths
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self.accepted: list[Sent] = []
        self.refused = 0

    def run(self) -> None:
        while not self._over.wait(LETTERS_PAUSE):
            handle, token = self._chance.choice(handles()), f"tk{secrets.token_hex(6)}"
            at, now = time.monotonic(), time.time()
            text = self._chance.choice(TEXTS).format(token)
            message = Message(new_id(MessageKind.DIRECTIVE, now, secrets.randbits(64)), handle, "person", text, now)
            try:
                Mailbox(self._paths.agent(handle)).accept(message)
            except FleetError:
                self.refused += 1
            else:
                self.accepted.append(Sent("directive", handle, token, at, message.id))

    def stop(self) -> None:
        """No more."""
        self._over.set()
        self.join()


def identity(done: Done) -> str:
    """The id that `send` printed."""
    words = next((line.split() for line in done.out.splitlines() if line.startswith("queued ")), [])
    return words[1] if len(words) > 1 else ""
