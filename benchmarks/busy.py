"""What a team costs while all of its panes are redrawn ten times a second, above what tmux itself needs for that."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks import bare, teams
from benchmarks.figures import Benchmark, Beside, Figure, Options, Spread, median
from benchmarks.machine import cost, cpu_of_ended
from benchmarks.teams import STUB, until

AGENTS = 50
HERTZ = 10
WINDOW = 6.0
REST = 3.0
GOAL = 1.5
"""For clients with hooks or a state file, whose output nobody listens to: as by default."""
BLIND_GOAL = 6.0
"""For those that are known by their screen alone."""
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


def percent(taken: Sequence[Callable[[], float]], windows: int) -> list[list[float]]:
    """Percent of a core over some windows, for each of these; `taken` say the seconds of a core so far."""
    found: list[list[float]] = [[] for _ in taken]
    time.sleep(REST)
    for _ in range(windows):
        before, began = [one() for one in taken], time.monotonic()
        time.sleep(WINDOW)
        seconds = time.monotonic() - began
        for values, one, so_far in zip(found, taken, before, strict=True):
            values.append((one() - so_far) / seconds * 100)
    return found


def figures(options: Options) -> list[Figure]:
    """A bare server, the same with shell loops, and a team, one after the other."""
    number, windows = options.some(AGENTS, 10), options.some(2, 1)
    with bare.bare_server() as server:
        server.open([STUB] * number)
        until(lambda: len(server.panes()) == number, "all panes are there")
        terminals = [row.split()[1] for row in server.tmux.run("list-panes", "-a", "-F", TTY).splitlines()][1:]
        with redrawn(terminals):
            alone = median(*percent([lambda: cost([server.server]).cpu], windows))
            with bare.loops(server, server.panes()) as loops:
                looped = median(*percent([loops.cpu], 1))
    beside = (
        Beside("shell loops, above tmux alone", _above(looped, alone), at_least=LESS),
        Beside("tmux alone, for all panes", alone),
    )
    ours = _of_team(teams.simulated(number), windows, alone.value)
    blind = _of_team(teams.stubs(number), windows, alone.value)
    redrawn_so = f"redrawn at {HERTZ} Hz, above tmux alone"
    return [
        Figure(f"CPU with {number} panes {redrawn_so}", "%", ours, at_most=GOAL, beside=beside),
        Figure(
            f"CPU with {number} panes known by their screens alone, {redrawn_so}",
            "%",
            blind,
            at_most=BLIND_GOAL,
            beside=beside[1:],
        ),
    ]


def _of_team(content: dict[str, Any], windows: int, alone: float) -> Spread:
    """What such a team takes while all its panes are redrawn, with what its tmux server takes beyond a bare one."""
    with teams.running(content) as team:
        parts = team.machinery()
        rows = team.tmux.run("list-panes", "-a", "-F", "#{@nbs_handle} #{pane_tty}").splitlines()
        lasting = (parts.supervisor, min(parts.controls))

        def own() -> float:
            # Clients that listen come and go; what they took is in their parent's account then.
            return cost(lasting).cpu + cpu_of_ended(parts.supervisor)

        with redrawn([row.split(" ")[1] for row in rows if not row.startswith(" ")]):
            servers, owns = percent((lambda: cost([parts.server]).cpu, own), windows)
    return median([max(0.0, server - alone) + mine for server, mine in zip(servers, owns, strict=True)])


def _above(whole: Spread, alone: Spread) -> Spread:
    return Spread(whole.value - alone.value, whole.low - alone.value, whole.high - alone.value, whole.number)


BENCHMARK = Benchmark(
    "busy",
    "One thread redraws all panes by writing to their terminals, so the agents themselves cost nothing. First a bare tmux "
    "server, then the same with shell loops, then teams (supervisor, control clients and tmux server): one of simulated agents, "
    "whose state file says what they do, and one of stubs, which are known by their screens alone.",
    figures,
)
