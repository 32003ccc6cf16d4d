"""How soon the supervisor knows of what happens: states, chat lines, bus events, deaths; beside inotify and shell loops."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping

from benchmarks import bare, teams
from benchmarks.bare import Drawn, Loops, Noticed
from benchmarks.figures import Benchmark, Beside, Figure, Options, median, quantile
from benchmarks.teams import BUS, CHAT, STUB, BenchmarkError, Team, until
from nbs_fleet.model import AgentState, Priority
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.ears import BRIEF

ROUNDS = 90
DEATHS = 20
LOOPS = 10
HEARD = 5.0
"""Seconds after which the output of quiet panes is listened to."""
SETTLED = 0.02
"""Seconds between two rounds: each is to meet a supervisor at rest."""
INOTIFY = "bare inotify"
Times = tuple[list[float], list[float]]
"""Milliseconds until the supervisor knew, and until bare inotify knew."""


def states(team: Team, rounds: int) -> Times:
    """The client's own state file turns busy and idle, written by us in its place."""
    record = store.read_record(team.paths, "a-1")
    if record is None or record.proc is None:
        raise BenchmarkError("a-1 has no process")
    path = _state_file(team, record.proc.pid)
    with open(path, encoding="utf-8") as file:
        fields = json.load(file)

    def prepare(number: int) -> tuple[bytes, str]:
        now = int(time.time() * 1000)
        fields.update(status="idle" if number % 2 else "busy", updatedAt=now, statusUpdatedAt=now)
        return json.dumps(fields).encode(), path

    found = _rounds(team, "StateFileSeen", prepare, rounds)
    until(lambda: team.state("a-1") is AgentState.IDLE, "a-1 is idle again")
    return found


def _state_file(team: Team, pid: int) -> str:
    for top, _, names in os.walk(team.world.folders.base):
        if f"{pid}.json" in names and os.path.basename(top) == "sessions":
            return os.path.join(top, f"{pid}.json")
    raise BenchmarkError("a-1 has no state file")


def lines(team: Team, rounds: int) -> Times:
    """Somebody appends to the chat. The agent is paused: noticed is what waits, not told."""
    copy = Chat(os.path.join(team.world.folders.base, f"{CHAT}.chat"))
    copy.create()

    def prepare(_number: int) -> tuple[bytes, str]:
        copy.send("tester", "hello")
        with open(copy.path, "rb") as file:
            return file.read(), team.chat.path

    return _rounds(team, "WaitingSeen", prepare, rounds)


def events(team: Team, rounds: int) -> Times:
    """Somebody publishes on the bus."""
    bus = Bus(os.path.join(team.world.folders.base, "bus"))
    os.mkdir(bus.folder)

    def prepare(_number: int) -> tuple[bytes, str]:
        name = bus.publish("tester", "hello", Priority.NORMAL, "@a-1 hello") or ""
        with open(os.path.join(bus.folder, name), "rb") as file:
            return file.read(), os.path.join(team.root, BUS, name)

    # As many as are pending are looked at: each round is to have one.
    return _rounds(team, "WaitingSeen", prepare, rounds, undone=True)


def _rounds(
    team: Team, kind: str, prepare: Callable[[int], tuple[bytes, str]], rounds: int, *, undone: bool = False
) -> Times:
    """Put a file (its content and path are prepared) in its place by a rename, again and again.

    `undone`: the file is removed again after each round. Taken is the time from just before that until an event of this kind was decided on, and until inotify told of it.
    """
    story = team.story("a-1")
    noticed: Noticed | None = None
    ours: list[float] = []
    floor: list[float] = []
    try:
        for number in range(rounds):
            data, path = prepare(number)
            noticed = noticed or Noticed(os.path.dirname(path))
            beside = os.path.join(team.world.folders.base, "prepared")
            with open(beside, "wb") as file:
                file.write(data)
            at = time.time()
            os.replace(beside, path)
            ours.append((story.wait_event(kind)["wall"] - at) * 1000)
            floor.append((noticed.after(at) - at) * 1000)
            if undone:
                os.unlink(path)
                story.wait_event(kind)
            time.sleep(SETTLED)
    finally:
        if noticed is not None:
            noticed.close()
    return ours, floor


def outputs(team: Team, rounds: int) -> Times:
    """A client that is known by its screen alone draws: we write to its terminal."""
    story = team.story("a-1")
    (terminal,) = team.tmux.run("list-panes", "-a", "-f", "#{@nbs_handle}", "-F", "#{pane_tty}").split()
    ours: list[float] = []
    floor: list[float] = []
    drawn = Drawn()
    file = os.open(terminal, os.O_WRONLY | os.O_NOCTTY)
    try:
        time.sleep(HEARD)
        for number in range(rounds):
            frame = f"\x1b[H\x1b[2K{number}\r\n> ".encode()
            at = time.time()
            os.write(file, frame)
            ours.append((story.wait_event("Flickered", after=at)["wall"] - at) * 1000)
            at = time.time()
            os.write(drawn.side, frame)
            floor.append((drawn.after(at) - at) * 1000)
            # Output that comes in two pieces is told of twice, and what follows that so much later.
            time.sleep(2 * BRIEF + SETTLED)
    finally:
        os.close(file)
        drawn.close()
    return ours, floor


def tmux_outputs(rounds: int) -> list[float]:
    """Milliseconds until a bare control client of a bare tmux server tells of output."""
    took = []
    with bare.bare_server() as server:
        attached = bare.Attached(server)
        try:
            time.sleep(1.0)
            for number in range(rounds):
                at = time.time()
                os.write(attached.side, f"\x1b[H\x1b[2K{number}\r\n> ".encode())
                took.append((attached.after(at) - at) * 1000)
                time.sleep(2 * BRIEF + SETTLED)
        finally:
            attached.close()
    return took


def deaths(team: Team) -> list[float]:
    """Milliseconds from SIGKILL for each agent in turn until its exit status is known."""
    took = []
    for handle in team.handles:
        record, story = store.read_record(team.paths, handle), team.story(handle)
        if record is None or record.proc is None:
            raise BenchmarkError(f"{handle} has no process")
        at = time.time()
        os.kill(record.proc.pid, signal.SIGKILL)
        ended = story.wait_word("ended")
        if ended["signal"] != signal.SIGKILL:
            raise BenchmarkError(f"{handle} was killed, and the story says {ended}")
        took.append((ended["at"] - at) * 1000)
    return took


def of_loops(loops: Loops, rounds: int) -> list[float]:
    """Milliseconds until shell loops notice a chat line."""
    took = []
    for number in range(1, rounds + 1):
        bare.settle(number)
        at = time.time()
        loops.chat.send("tester", "hello")
        took += [(told - at) * 1000 for told in loops.told("noticed", number)]
    return took


def deaths_of_loops(loops: Loops) -> list[float]:
    """Milliseconds until shell loops notice that their panes are dead."""
    at = {}
    for pane, log in zip(loops.bare.panes(), loops.logs, strict=True):
        at[log] = time.time()
        os.kill(pane.pid, signal.SIGKILL)
        time.sleep(1 / LOOPS)
    return [(told - killed) * 1000 for told, killed in zip(loops.told("dead", 1), at.values(), strict=True)]


def figures(options: Options) -> list[Figure]:
    """One simulated agent for what it is told of; stubs for deaths; shell loops for both."""
    rounds = options.some(ROUNDS, 10)
    with teams.running(teams.simulated(1)) as team:
        state = states(team, rounds)
        team.command("pause", "a-1")
        line, event = lines(team, rounds), events(team, rounds)
    with teams.running(teams.stubs(1)) as team:
        output, tmuxs = outputs(team, rounds), tmux_outputs(rounds // 3)
    with teams.running(teams.stubs(options.some(DEATHS, 3))) as team:
        died = deaths(team)
    with bare.looped(LOOPS, STUB) as loops:
        time.sleep(2.0)
        slow = of_loops(loops, options.some(4, 1))
        slow_deaths = deaths_of_loops(loops)
    dead = Beside("shell loops", median(slow_deaths), at_least=50)
    return [
        *_pair("state file written -> known", state, slow, (0.5, 5.0), (INOTIFY, 5)),
        *_pair("pane output -> known", output, slow, (0.5, 3.0), ("raw pty", 6), more={"a bare control client": tmuxs}),
        *_pair("chat line written -> known", line, slow, (0.5, 3.0), (INOTIFY, 3)),
        *_pair("bus event written -> known", event, slow, (0.1, 3.0), (INOTIFY, 3)),
        Figure("agent killed -> its exit known, p50", "ms", quantile(died, 0.5), at_most=10.0, beside=(dead,)),
        Figure("agent killed -> its exit known, p99", "ms", quantile(died, 0.99)),
    ]


def _pair(
    name: str,
    times: Times,
    slow: list[float],
    goals: tuple[float, float],
    floor: tuple[str, float],
    *,
    more: Mapping[str, list[float]] | None = None,
) -> list[Figure]:
    """Two figures; `more`: what else they are measured beside."""
    ours, bare_times = times
    (p50, p99), (bare, most) = goals, floor
    others = {bare: bare_times, **(more or {})}

    def beside(share: float) -> Iterator[Beside]:
        for what, values in others.items():
            yield Beside(what, quantile(values, share), at_most=most if (what, share) == (bare, 0.5) else None)

    loops = Beside("shell loops, chat line", quantile(slow, 0.5), at_least=1000)
    return [
        Figure(f"{name}, p50", "ms", quantile(ours, 0.5), at_most=p50, beside=(*beside(0.5), loops)),
        Figure(f"{name}, p99", "ms", quantile(ours, 0.99), at_most=p99, beside=tuple(beside(0.99))),
    ]


BENCHMARK = Benchmark(
    "notices",
    "A simulated agent's state file, its chat and its bus are written again and again, by an own process; the story says "
    "to the microsecond when the supervisor decided on it. Each time begins just before the rename that puts the file in "
    "its place. The floor is a thread that blocks on inotify of the same folder. A stub's terminal is written to in the same way; "
    "its floor is a thread that reads a terminal of its own, and beside it is a thread that reads what a bare control client of a "
    "bare tmux server tells. Agents are killed (SIGKILL) one after the other; the story's "
    "milliseconds say when the exit status was known. Ten shell loops hear of chat lines and deaths the same way.",
    figures,
)
