"""What a team costs while all of its panes are redrawn ten times a second, above what tmux itself needs for that."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from benchmarks import bare, teams
from benchmarks.figures import Benchmark, Beside, Figure, Options, Spread, median
from benchmarks.machine import cost, cpu_of_ended
from benchmarks.teams import STUB, until

AGENTS = 50
HERTZ = 10
WINDOW = 10.0
REST = 3.0
GOAL = 1.5
LESS = 40
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TTY = "#{pane_id} #{pane_tty}"


@contextmanager
def redrawn(terminals: Sequence[str]) -> Iterator[None]:
    """Draw a spinner and a line of status on each of these terminals, as often as said above, from one thread."""
    over = threading.Event()
    files = [os.open(terminal, os.O_WRONLY | os.O_NOCTTY) for terminal in terminals]

    def draw() -> None:
        began, number = time.monotonic(), 0
        while not over.wait(max(0.0, began + number / HERTZ - time.monotonic())):
            number += 1
            status = f"{FRAMES[number % len(FRAMES)]} Working ({number / HERTZ:.0f}s, esc to interrupt) "
            frame = f"\x1b[H\x1b[2K{status}{'.' * 150}\r\n> ".encode()
            for file in files:
                os.write(file, frame)

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5)
        for file in files:
            os.close(file)


def percent(taken: Callable[[], float], windows: int) -> list[float]:
    """Percent of a core over some windows; `taken` says the seconds of a core so far."""
    found = []
    time.sleep(REST)
    for _ in range(windows):
        before, began = taken(), time.monotonic()
        time.sleep(WINDOW)
        found.append((taken() - before) / (time.monotonic() - began) * 100)
    return found


def figures(options: Options) -> list[Figure]:
    """A bare server, the same with shell loops, and a team, one after the other."""
    number, windows = options.some(AGENTS, 10), options.some(2, 1)
    with bare.bare_server() as server:
        server.open([STUB] * number)
        until(lambda: len(server.panes()) == number, "all panes are there")
        terminals = [row.split()[1] for row in server.tmux.run("list-panes", "-a", "-F", TTY).splitlines()][1:]
        with redrawn(terminals):
            alone = median(percent(lambda: cost([server.server]).cpu, windows))
            with bare.loops(server, server.panes()) as loops:
                looped = median(percent(loops.cpu, 1))
    with teams.running(teams.stubs(number)) as team:
        parts = team.machinery()
        rows = team.tmux.run("list-panes", "-a", "-F", "#{@nbs_handle} #{pane_tty}").splitlines()
        with redrawn([row.split(" ")[1] for row in rows if not row.startswith(" ")]):
            # Clients that listen come and go; what they took is in their parent's account then.
            lasting = (parts.server, parts.supervisor, min(parts.controls))
            ours = median(percent(lambda: cost(lasting).cpu + cpu_of_ended(parts.supervisor), windows))
    beside = (
        Beside("shell loops, above tmux alone", _above(looped, alone), at_least=LESS),
        Beside("tmux alone, for all panes", alone),
    )
    name = f"CPU with {number} panes redrawn at {HERTZ} Hz, above tmux alone"
    return [Figure(name, "%", _above(ours, alone), at_most=GOAL, beside=beside)]


def _above(whole: Spread, alone: Spread) -> Spread:
    return Spread(whole.value - alone.value, whole.low - alone.value, whole.high - alone.value, whole.number)


BENCHMARK = Benchmark(
    "busy",
    "One thread redraws all panes of stubs by writing to their terminals, so the agents themselves cost nothing. First a "
    "bare tmux server, then the same with shell loops, then a team (supervisor, control clients and its tmux server).",
    figures,
)
