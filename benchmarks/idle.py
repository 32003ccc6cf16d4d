"""What a team costs while nothing happens, and its memory, beside a shell loop per pane and one bare process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from benchmarks import bare, machine, teams
from benchmarks.figures import Benchmark, Beside, Figure, Options, Spread, mean
from benchmarks.teams import BenchmarkError
from nbs_fleet.sidecar.polling import POLL_SECONDS, ROUND, TOGETHER

SIZES = (10, 50, 200)
BLIND = 50
"""So many stubs, which are known by their screens alone."""
WINDOW = POLL_SECONDS
"""Seconds of a window; each holds one slow poll."""
WINDOWS = TOGETHER
"""So many windows hold a quarter of a round: one poll in which quiet agents have turns, and the others."""
REST = 35.0
"""Seconds that all are left alone first: what follows a start is no idleness, its first slow poll included."""
LOOP_REST, LOOP_WINDOW = 4.0, 12.0
CPU_GOALS = {50: 0.02, 200: 0.05}
LESS_CPU = 3500
MEMORY_GOALS = {50: 18.0, 200: 20.0}
AGENT_GOAL = 0.02
PROCESSES = {
    "one idle asyncio process": "import asyncio",
    "the same with what the supervisor imports": "import nbs_fleet.supervisor.__main__, asyncio",
}
WAIT = """
async def wait():
    print("waits", flush=True)
    await asyncio.sleep(1000)
asyncio.run(wait())
"""

BEAT = "a bare process with a heartbeat"
HEARTBEAT = f"""
import asyncio
async def beat():
    print("beats", flush=True)
    while True:
        await asyncio.sleep({POLL_SECONDS})
asyncio.run(beat())
"""

Windows = dict[str, list[tuple[float, float]]]
"""By name of the team: (percent of a core, wake-ups per second) of each window."""
Looped = dict[int, tuple[float, float]]
"""By number of shell loops: (percent of a core, megabytes) of them and their tmux server."""


def measure(processes: dict[str, tuple[int, ...]], number: int) -> Windows:
    """What each of these costs while nothing happens, in so many windows."""
    windows: Windows = {name: [] for name in processes}
    before, began = {name: machine.cost(pids) for name, pids in processes.items()}, time.monotonic()
    for _ in range(number):
        time.sleep(WINDOW)
        seconds, began = time.monotonic() - began, time.monotonic()
        for name, pids in processes.items():
            cost = machine.cost(pids)
            took, before[name] = cost.since(before[name]), cost
            windows[name].append((took.cpu / seconds * 100, took.woken / seconds))
    return windows


def measure_loops(sizes: Sequence[int]) -> Looped:
    """What so many shell loops cost, one size after the other."""
    looped: Looped = {}
    for number in sizes:
        with bare.looped(number, teams.STUB) as loops:
            time.sleep(LOOP_REST)
            before, began = loops.cpu(), time.monotonic()
            time.sleep(LOOP_WINDOW)
            looped[number] = ((loops.cpu() - before) / (time.monotonic() - began) * 100, machine.pss(loops.pids))
    return looped


@contextmanager
def heartbeat() -> Iterator[int]:
    """A process that does nothing but to wake up as often as a slow poll comes; its id."""
    with subprocess.Popen([sys.executable, "-I", "-c", HEARTBEAT], stdout=subprocess.PIPE) as process:
        try:
            if process.stdout is None or not process.stdout.readline():
                raise BenchmarkError("the heartbeat failed")
            yield process.pid
        finally:
            process.kill()


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
    """Shell loops, one size after the other, while the teams come to rest; then all teams at once, as none does anything."""
    sizes = SIZES[:2] if options.quick else SIZES
    contents = {_name(number): teams.simulated(number) for number in sizes}
    blind = options.some(BLIND, 10)
    contents[_name(blind, "stubs")] = teams.stubs(blind)
    with ExitStack() as stack:
        running = {name: stack.enter_context(teams.running(content)) for name, content in contents.items()}
        machineries = {name: team.machinery() for name, team in running.items()}
        processes = {name: parts.all for name, parts in machineries.items()} | {
            BEAT: (stack.enter_context(heartbeat()),)
        }
        resting = time.monotonic()
        looped = measure_loops(sizes)
        time.sleep(max(0.0, resting + REST - time.monotonic()))
        memory = {name: machine.pss(parts.ours) for name, parts in machineries.items()}
        windows = measure(processes, options.some(WINDOWS, 2))
    found = [figure for number in sizes for figure in _cpu(_name(number), number, windows, looped[number][0])]
    found += _cpu(_name(blind, "stubs"), None, windows, looped[blind][0])
    found += [_memory(number, memory[_name(number)], looped[number][1]) for number in sizes[1:]]
    small, large = sizes[-2:]
    each = (memory[_name(large)] - memory[_name(small)]) / (large - small)
    found.append(Figure(f"memory, each agent more ({small} to {large})", "MB", _one(each), at_most=AGENT_GOAL))
    return found


def _name(number: int, kind: str = "agents") -> str:
    return f"{number} {kind}"


def _cpu(name: str, number: int | None, windows: Windows, looped: float) -> list[Figure]:
    """The figures of one team; the goals are those of so many agents."""
    percent, woken = (mean(values) for values in zip(*windows[name], strict=True))
    goal = CPU_GOALS.get(number) if number is not None else None
    beside = (
        Beside("shell loops, 1 Hz", _one(looped), at_least=LESS_CPU if goal else None, greater=True),
        Beside(BEAT, mean([cpu for cpu, _ in windows[BEAT]])),
    )
    return [
        Figure(f"idle CPU, {name}", "%", percent, at_most=goal, beside=beside),
        Figure(f"wake-ups, {name}", "/s", woken, at_most=1.0 if number == 50 else None),
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
    "Teams of simulated agents are idle; so is one of stubs (a shell that shows an input and sleeps), which have neither hooks "
    "nor a state file. CPU and wake-ups are those of the supervisor, the "
    f"tmux server and the control clients, from `/proc/PID/task/*/schedstat` (nanoseconds): the mean of {WINDOWS} windows of "
    f"{WINDOW:.0f} s, each of which holds one slow poll, and one of which holds the turns of a quarter of the quiet agents (each "
    f"has one in {ROUND} polls). Before that, while the teams come to rest, shell loops (`benchmarks/sidecar.sh`, one per pane of a "
    "stub) run on a tmux server of their own, size after size. Their CPU is theirs, their "
    "children's and that server's. The heartbeat is that of a bare asyncio process which wakes up as often as a slow poll "
    "comes, and does nothing. Memory is PSS.",
    figures,
)
