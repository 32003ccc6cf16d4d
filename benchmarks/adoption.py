"""How soon a new supervisor has taken over all agents after the old one was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from benchmarks import teams
from benchmarks.figures import Benchmark, Beside, Figure, Options, median
from benchmarks.machine import TICK
from benchmarks.teams import Machinery, Team, until

AGENTS = 50
GOAL = 100.0


def adopted(team: Team, old: Machinery) -> tuple[Machinery, float, float]:
    """Kill the supervisor. (The new processes, milliseconds from its start, milliseconds from the kill) until all are kept.

    The shell script that keeps it running waits a second (then two, four ..) before it starts the next one.
    """
    stories = [team.story(handle) for handle in team.handles]
    killed = time.time()
    os.kill(old.supervisor, signal.SIGKILL)
    last = max(story.wait_word("mind")["at"] for story in stories)
    new = until(lambda: _other(team, old), "another supervisor runs")
    return new, (last - _start(new.supervisor)) * 1000, (last - killed) * 1000


def _other(team: Team, old: Machinery) -> Machinery | None:
    new = team.machinery()
    return new if new.supervisor != old.supervisor else None


def _start(pid: int) -> float:
    """The wall second at which a process began, to a tick."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / TICK


def list_panes(team: Team) -> float:
    """Milliseconds of one forked `list-panes`."""
    began = time.perf_counter()
    subprocess.run(team.tmux.argv("list-panes", "-a", "-F", "#{pane_id}"), capture_output=True, check=True)
    return (time.perf_counter() - began) * 1000


def figures(options: Options) -> list[Figure]:
    """Kill it some times; the team goes on."""
    own, whole, floor = [], [], []
    with teams.running(teams.stubs(options.some(AGENTS, 5))) as team:
        machinery = team.machinery()
        for _ in range(options.some(3, 1)):
            machinery, new, since = adopted(team, machinery)
            own.append(new)
            whole.append(since)
            floor.append(list_panes(team))
        number = len(team.handles)
    return [
        Figure(
            f"supervisor killed: the next one has {number} agents, from its start",
            "ms",
            median(own),
            at_most=GOAL,
            beside=(Beside("list-panes", median(floor)),),
        ),
        Figure("the same, from the kill (with the pause of the script that starts it)", "ms", median(whole)),
    ]


BENCHMARK = Benchmark(
    "adoption",
    "The supervisor of 50 stubs is killed (SIGKILL). Measured is from the start of the next process (to a tick of 10 ms) "
    "until its sidecar of the last agent has begun, as the stories say.",
    figures,
)
