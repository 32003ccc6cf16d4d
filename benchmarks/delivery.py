"""From a chat line to the client that acknowledged the notice of it, and a thousand messages in a second."""

from __future__ import annotations

import os
import secrets
import threading
import time
from functools import partial

from benchmarks import bare, teams
from benchmarks.bare import Loops
from benchmarks.figures import Benchmark, Beside, Figure, Options, Spread, quantile
from benchmarks.machine import cost
from benchmarks.teams import BenchmarkError, Team, until
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.model import AgentState, Message, MessageKind, Outcome

ROUNDS = 25
LOOPS = 10
READER = ("sh", "-c", 'printf "> "; while read -r line; do echo "told $(date +%s.%N)" >>"told.$$"; printf "> "; done')
"""A client that takes what is typed, at once, and says when."""
AGENTS = 10
MESSAGES = 1000
FLOOD_WITHIN = 300.0


def acknowledged(team: Team, rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds from each chat line until the idle client had acknowledged the notice, and its own part of them."""
    chat = team.chat
    took: list[float] = []
    own: list[float] = []
    for _ in range(rounds):
        until(lambda: team.state("a-1") is AgentState.IDLE, "a-1 is idle")
        story = team.story("a-1")
        at = time.time()
        chat.send("tester", "hello")
        mailed = story.wait_word("message mailed")["at"]
        delivered = story.wait_word("message delivered")["at"]
        took.append((delivered - at) * 1000)
        own.append((delivered - mailed) * 1000)
        # As if the agent had read it: the next line is news again.
        chat.set_cursor("a-1", chat.count() - 1)
        story.wait(_is_nothing_unread, "the chat is read")
    return took, own


def _is_nothing_unread(line: dict[str, object]) -> bool:
    event = line.get("event")
    if not isinstance(event, dict) or event.get("type") != "WaitingSeen":
        return False
    return not any(chat["count"] for chat in event["waiting"]["unread"])


def acknowledged_by_loops(loops: Loops, rounds: int) -> list[float]:
    """Milliseconds from each chat line until each client had the line that its loop typed."""
    logs = [os.path.join(loops.bare.folder, f"told.{pane.pid}") for pane in loops.bare.panes()]
    took = []
    for number in range(1, rounds + 1):
        bare.settle(number)
        at = time.time()
        loops.chat.send("tester", "hello")
        loops.told("noticed", number)
        took += [(until(partial(_line, log, number), f"{log} was told") - at) * 1000 for log in logs]
    return took


def _line(path: str, number: int) -> float | None:
    """The wall second of line `number`, once it is there."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return None
    return float(lines[number - 1].split()[1]) if len(lines) >= number else None


def flood(team: Team, number: int) -> tuple[float, float, int, float]:
    """Hand in so many messages at a thousand a second, all agents in turn.

    Returns the seconds that took, the seconds until all had ended, how many were delivered, the CPU seconds of all
    that the team runs beside its agents.
    """
    boxes = {handle: Mailbox(team.paths.agent(handle)) for handle in team.handles}
    machinery = team.machinery()
    # The control client hands its files to the server and sleeps; a new one may take its place on a loaded machine.
    parts = (machinery.server, machinery.supervisor)
    before, began = cost(parts), time.monotonic()
    pace = threading.Event()
    for index in range(number):
        handle = team.handles[index % len(boxes)]
        now = time.time()
        identity = new_id(MessageKind.DIRECTIVE, now, secrets.randbits(64))
        boxes[handle].accept(Message(identity, handle, "tester", f"message {index}", now))
        # An event that never comes: the next message is due then.
        pace.wait(max(0.0, began + (index + 1) / MESSAGES - time.monotonic()))
    handed = time.monotonic() - began
    share = number // len(boxes)
    until(
        lambda: all(_ended(team, handle) >= share for handle in boxes), "all messages have ended", within=FLOOD_WITHIN
    )
    over = time.monotonic() - began
    good = sum(ended.outcome is Outcome.DELIVERED for box in boxes.values() for ended in box.archived(number))
    if team.machinery().supervisor != machinery.supervisor:
        raise BenchmarkError("the supervisor died of the flood")
    return handed, over, good, cost(parts).since(before).cpu


def _ended(team: Team, handle: str) -> int:
    with os.scandir(team.paths.agent(handle).archive) as entries:
        return sum(entry.name.endswith(".json") for entry in entries)


def figures(options: Options) -> list[Figure]:
    """One agent for the way of a notice, ten for the flood, ten shell loops."""
    with teams.running(teams.simulated(1)) as team:
        ours, own = acknowledged(team, options.some(ROUNDS, 5))
    with bare.looped(LOOPS, READER) as loops:
        time.sleep(2.0)
        slow = acknowledged_by_loops(loops, options.some(4, 1))
    number = options.some(MESSAGES // 2, 100)
    with teams.running(teams.simulated(AGENTS)) as team:
        handed, over, good, cpu = flood(team, number)
    beside = (
        Beside("shell loops", quantile(slow, 0.5), at_least=10),
        Beside("the client's own part, from its mail on", quantile(own, 0.5)),
    )
    what, load = "chat line -> acknowledged by the idle client", f"{number:,} messages at {number / handed:,.0f} /s"
    return [
        Figure(f"{what}, p50", "ms", quantile(ours, 0.5), at_most=150.0, beside=beside),
        Figure(
            f"{what}, p99",
            "ms",
            quantile(ours, 0.99),
            at_most=400.0,
            beside=(Beside("shell loops", quantile(slow, 0.99), greater=True),),
        ),
        Figure(f"{load}: acknowledged", "%", _one(good / number * 100), at_least=100.0),
        Figure(f"{load}: until all acknowledged", "s", _one(over)),
        Figure(f"{load}: CPU of the machinery, each", "ms", _one(cpu / number * 1000)),
    ]


def _one(value: float) -> Spread:
    return Spread(value, value, value)


BENCHMARK = Benchmark(
    "delivery",
    "A line is appended to a simulated agent's chat while it is idle; the story says when its client's own files proved "
    "that it had the notice; its own part is from when the notice lay in its mail, as it reads that. Notices are not gathered (`notify_cooldown: 0s`). The shell loops type the notice into a "
    "client that only writes down when it had it. The flood: messages for ten simulated agents in turn, handed in at "
    "1,000 a second as `send` does it; each agent answers in turns of its own, and each message has to be acknowledged.",
    figures,
)
