"""What a team costs while nothing happens, and its memory, beside a shell loop per pane and one bare process."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack

from benchmarks import bare, machine, teams
from benchmarks.figures import Benchmark, Beside, Figure, Options, Spread, median
from benchmarks.teams import BenchmarkError, Machinery

SIZES = (10, 50, 200)
WINDOW = 30.0
"""Seconds of a window; each holds one slow poll, a tenth of a round: what rounds do is spread over their polls."""
LOOP_WINDOW = 15.0
REST = 8.0
"""Seconds that all are left alone first: what follows a start is no idleness."""
CPU_GOALS = {50: 0.02, 200: 0.05}
LESS_CPU = 3500
MEMORY_GOALS = {50: 18.0, 200: 20.0}
AGENT_GOAL = 0.02
PROCESSES = {
    "one idle asyncio process": "import asyncio",
    "the same with what the supervisor imports": "import asyncio, nbs_fleet.supervisor.__main__",
}
WAIT = """
async def wait():
    print("waits", flush=True)
    await asyncio.sleep(1000)
asyncio.run(wait())
"""

Windows = dict[int, list[tuple[float, float]]]
"""By number of agents: (percent of a core, wake-ups per second) of each window."""


def measure(machineries: dict[int, Machinery], windows: int) -> Windows:
    """Leave all teams alone, and take what each costs meanwhile."""
    found: Windows = {number: [] for number in machineries}
    time.sleep(REST)
    for _ in range(windows):
        before = {number: parts.cost() for number, parts in machineries.items()}
        began = time.monotonic()
        time.sleep(WINDOW)
        for number, parts in machineries.items():
            took = parts.cost().since(before[number])
            seconds = time.monotonic() - began
            found[number].append((took.cpu / seconds * 100, took.woken / seconds))
    return found


def of_loops(number: int) -> tuple[float, float]:
    """(percent of a core, megabytes) of so many shell loops and their tmux server."""
    with bare.looped(number, teams.STUB) as loops:
        time.sleep(REST / 2)
        before, began = loops.cpu(), time.monotonic()
        time.sleep(LOOP_WINDOW)
        percent = (loops.cpu() - before) / (time.monotonic() - began) * 100
        return percent, machine.pss(loops.pids)


def of_process(imports: str) -> float:
    """Megabytes of a Python process that has imported this and waits."""
    with subprocess.Popen([sys.executable, "-I", "-c", imports + WAIT], stdout=subprocess.PIPE) as process:
        try:
            if process.stdout is None or not process.stdout.readline():
                raise BenchmarkError(f"{imports} failed")
            return machine.pss([process.pid])
        finally:
            process.kill()


def figures(options: Options) -> list[Figure]:
    """All sizes at once, since none of them does anything; then the shell loops, one size after the other."""
    sizes = SIZES[:2] if options.quick else SIZES
    with ExitStack() as stack:
        running = {number: stack.enter_context(teams.running(teams.stubs(number))) for number in sizes}
        machineries = {number: team.machinery() for number, team in running.items()}
        windows = measure(machineries, options.some(2, 1))
        memory = {number: machine.pss((parts.supervisor, parts.control)) for number, parts in machineries.items()}
    looped = {number: of_loops(number) for number in sizes}
    found = [figure for number in sizes for figure in _cpu(number, windows[number], looped[number][0])]
    found += [_memory(number, memory[number], looped[number][1]) for number in sizes[1:]]
    small, large = sizes[-2:]
    each = (memory[large] - memory[small]) / (large - small)
    found.append(Figure(f"memory, each agent more ({small} to {large})", "MB", _one(each), at_most=AGENT_GOAL))
    return found


def _cpu(number: int, windows: list[tuple[float, float]], looped: float) -> list[Figure]:
    percent, woken = (median(values) for values in zip(*windows, strict=True))
    beside = Beside("shell loops, 1 Hz", _one(looped), at_least=LESS_CPU if number in CPU_GOALS else None, greater=True)
    return [
        Figure(f"idle CPU, {number} agents", "%", percent, at_most=CPU_GOALS.get(number), beside=(beside,)),
        Figure(f"wake-ups, {number} agents", "/s", woken, at_most=1.0 if number == 50 else None),
    ]


def _memory(number: int, took: float, looped: float) -> Figure:
    floors = tuple(Beside(name, _one(of_process(code))) for name, code in PROCESSES.items()) if number == 50 else ()
    loops = Beside("shell loops", _one(looped), at_least=3.0 if number == 200 else None, greater=True)
    name = f"memory (PSS), supervisor and control client, {number} agents"
    return Figure(name, "MB", _one(took), at_most=MEMORY_GOALS[number], beside=(loops, *floors))


def _one(value: float) -> Spread:
    return Spread(value, value, value)


BENCHMARK = Benchmark(
    "idle",
    "Teams of stubs (a shell that shows an input and sleeps) are idle. CPU and wake-ups are those of the supervisor, the "
    f"tmux server and the control client, from `/proc/PID/task/*/schedstat` (nanoseconds), over windows of {WINDOW:.0f} s, "
    "each of which holds one slow poll (of a round of ten, in which each quiet agent has its turn). The shell loops (`benchmarks/sidecar.sh`, one per pane) run on a tmux server of "
    "their own; their CPU is theirs, their children's and that server's. Memory is PSS.",
    figures,
)
