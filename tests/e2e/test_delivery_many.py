"""Many messages of mixed size and kind to four agents in random states, with and without kills: once each."""

from __future__ import annotations

import os
import random
import secrets
import signal
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import psutil
import pytest

from nbs_fleet.model import MessageKind, Outcome, Priority, ProcId
from tests.e2e.delivery import situations
from tests.e2e.delivery.crew import Crew, token
from tests.support.fleet import Fleet, Json

HANDLES = ("ana", "bo", "cy", "di")
SIZES = (1, 60, 60, 60, 300, 300, 2_000, 2_000, 9_000, 30_000, 100_000)
KINDS = (MessageKind.DIRECTIVE, MessageKind.DIRECTIVE, MessageKind.NOTICE, MessageKind.NUDGE)
STATES: tuple[Callable[[Crew, str], AbstractContextManager[None]], ...] = (
    situations.idle,
    situations.streaming,
    situations.tool,
    situations.compacting,
    situations.permission,
    situations.question,
    situations.draft,
)
KILLS = 8
"""The shell loop around the supervisor gives up after ten deaths in ten minutes."""
PATIENCE = 150.0
"""Seconds for what waits until a killed supervisor is back: the loop waits longer each time."""
SHORT, LONG = 40, 200
SEED = os.environ.get("NBS_SEED")  # read now: tests see nothing of this person's environment


@pytest.fixture
def big(fleet: Fleet) -> Crew:
    """Four agents; the test writes the team file."""
    made = Crew(fleet)
    made.patience = PATIENCE
    return made


def bring_up(crew: Crew, way: str) -> None:
    """Four agents whose messages go by mail, or by keys."""
    fields: Json = {"permissions": {"allow": ["Bash"]}}
    if way == "keys":
        fields["sidecar"] = {"delivery": "keys"}
    if crew.client.name == "sim":
        fields["scenario"] = {"timeouts": {"compact_delay_ms": 4000}}
    agents = [crew.client.agent(handle, **fields) for handle in HANDLES]
    crew.write(agents, restart={"max": 1000, "backoff": {"first": "200ms", "max": "1s"}})
    crew.up()


class Person(threading.Thread):
    """Brings one agent from state to state, and sends it messages in each; `seed` decides which."""

    def __init__(self, crew: Crew, handle: str, count: int, seed: int) -> None:
        super().__init__(name=handle, daemon=True)
        self.crew, self.handle, self.left = crew, handle, count
        self.random = random.Random(seed)  # repeatable, not secret
        self.error: BaseException | None = None
        self.doing = ""

    def run(self) -> None:
        states = list(STATES)
        self.random.shuffle(states)
        # There is nothing to summarise before the first turns.
        states.sort(key=lambda state: state is situations.compacting)
        try:
            while self.left:
                state = states.pop(0)
                states.append(state)
                self.round(state)
        except BaseException as error:  # noqa: BLE001  # told by the test's own thread
            self.error = error

    def round(self, state: Callable[[Crew, str], AbstractContextManager[None]]) -> None:
        """Into a state, some messages, out of it, and all of them must come."""
        crew, handle = self.crew, self.handle
        self.doing = f"{handle} {state.__name__}"
        crew.until(lambda: crew.state(handle) == "idle" and not crew.waiting(handle), f"{self.doing}: quiet before")
        with state(crew, handle):
            for _ in range(min(self.left, self.random.randint(1, 3))):
                self.send()
        crew.until(lambda: not crew.waiting(handle), f"{self.doing}: all has come", within=PATIENCE * 2)

    def send(self) -> None:
        """One message of random size, kind and priority."""
        self.left -= 1
        size = self.random.choice(SIZES)
        text = f"{token()} " + "lorem ipsum\n" * (size // 12)
        kind, priority = self.random.choice(KINDS), self.random.choice((Priority.NORMAL, Priority.HIGH, Priority.LOW))
        self.crew.drop(self.handle, text[: max(size, 15)].rstrip(), kind=kind, priority=priority)


def supervisor(crew: Crew) -> psutil.Process | None:
    """The supervisor's process, if one runs."""
    for process in crew.fleet.everything():
        try:
            if "nbs_fleet.supervisor" in process.cmdline():
                return process
        except psutil.Error:
            continue
    return None


def play(crew: Crew, count: int, seed: int, kills: int = 0) -> None:
    """Let four persons play until each has sent its share, and meanwhile kill the supervisor at random moments."""
    persons = [Person(crew, handle, count // len(HANDLES), seed + n) for n, handle in enumerate(HANDLES)]
    chance = random.Random(seed)
    crew.hunted = kills > 0
    for person in persons:
        person.start()
    for _ in range(kills):
        pause = chance.uniform(0.5, 4.0)
        if not any(p.is_alive() for p in persons):
            break
        persons[0].join(pause)
        victim = supervisor(crew)
        if victim is not None:
            victim.kill()
            with_new_one(crew, victim.pid)
    for person in persons:
        person.join(timeout=PATIENCE * 8)
        assert not person.is_alive(), f"{person.doing} goes on and on"
        assert person.error is None, f"seed {seed}: {person.doing}: {person.error!r}"
    assert len(crew.sent) == count
    for handle in HANDLES:
        crew.becomes(handle, "idle", within=PATIENCE)
    crew.audit()


def with_new_one(crew: Crew, old: int) -> None:
    """Wait until another supervisor runs."""

    def runs() -> bool:
        process = supervisor(crew)
        return process is not None and process.pid != old

    crew.until(runs, "the supervisor is back", within=PATIENCE)


def seeded() -> int:
    """A seed: that of `NBS_SEED`, or any; a failure names it."""
    return int(SEED or secrets.randbelow(10**6))


@pytest.mark.clients("sim", "claude")
@pytest.mark.parametrize("way", ["mail", "keys"])
def test_some_messages_arrive_once_each_while_the_supervisor_is_killed(big: Crew, way: str) -> None:
    bring_up(big, way)
    play(big, SHORT, seeded(), kills=3)


@pytest.mark.long
@pytest.mark.clients("sim", "claude")
@pytest.mark.parametrize("kills", [0, KILLS])
@pytest.mark.parametrize("way", ["mail", "keys"])
def test_200_messages_arrive_once_each(big: Crew, way: str, kills: int) -> None:
    bring_up(big, way)
    play(big, LONG, seeded(), kills=kills)


def restarted(crew: Crew, handle: str, old: ProcId) -> bool:
    """Whether another process of this agent runs."""
    return crew.record(handle).proc not in (None, old)


def nothing_waits(crew: Crew, handle: str) -> bool:
    """Whether every message of this agent has ended."""
    return not crew.waiting(handle)


def kill_clients(crew: Crew, count: int, kills: int, seed: int) -> None:
    """Send messages that make the agents work, and kill clients meanwhile; none may be lost."""
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    due = sorted(chance.sample(range(count), kills))
    for n in range(count):
        handle = chance.choice(HANDLES)
        work = chance.choice(["", "", f"[[slow 1 some words {n}]]", "[[bash sleep 0.3]]"])
        crew.drop(handle, f"{token()} {work} {'lorem ipsum ' * chance.choice((0, 0, 10, 1000))}".strip())
        if n in due:
            victim = chance.choice(HANDLES)
            threading.Event().wait(chance.uniform(0.0, 0.8))  # a random moment of what the message started
            proc = crew.record(victim).proc
            if proc is not None:
                killed[victim] += 1
                os.kill(proc.pid, signal.SIGKILL)
                crew.until(partial(restarted, crew, victim, proc), f"{victim} is started again")
    for handle in HANDLES:
        crew.until(partial(nothing_waits, crew, handle), f"{handle} has all", within=PATIENCE)
        crew.becomes(handle, "idle", within=PATIENCE)
    crew.repeats |= {i for i, message in crew.sent.items() if killed[message.to]}
    crew.audit()
    too_often = [i for i, message in crew.sent.items() if crew.count(i) > 1 + killed[message.to]]
    assert not too_often, f"seed {seed}: {too_often}"


@pytest.mark.clients("sim", "claude", long=("claude",))
@pytest.mark.parametrize("way", ["mail", "keys"])
def test_no_message_is_lost_when_clients_are_killed(big: Crew, way: str) -> None:
    bring_up(big, way)
    kill_clients(big, 24, 4, seeded())


@pytest.mark.long
@pytest.mark.clients("sim", "claude")
@pytest.mark.parametrize("way", ["mail", "keys"])
def test_no_message_of_200_is_lost_when_clients_are_killed(big: Crew, way: str) -> None:
    bring_up(big, way)
    kill_clients(big, LONG, 25, seeded())


@pytest.mark.clients("sim", "claude", long=("claude",))
def test_what_is_sent_while_the_supervisor_is_dead_arrives_later(big: Crew) -> None:
    bring_up(big, "mail")
    with big.fleet.without_supervisor():
        ids = [big.send(handle, token()) for handle in HANDLES]
        assert all(big.ended(message_id) is None for message_id in ids)
    for message_id in ids:
        ended = big.arrives(message_id)
        assert ended.outcome is Outcome.DELIVERED
    big.audit()
