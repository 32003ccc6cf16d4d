"""How fast teams come up, beside raw tmux, raw processes, `tmuxp load`, and commands typed into shells."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from benchmarks import bare, teams
from benchmarks.bare import Bare
from benchmarks.figures import Benchmark, Beside, Figure, Options, median
from benchmarks.teams import STARTED, STUB, BenchmarkError, last_start, until

STUBS = {50: 0.25, 200: 0.45}
"""Numbers of stubs, and seconds in which they should be up."""
FLOOR_TIMES = {50: 10.0, 200: 6.0}
SIMULATED = {10: None, 50: 4.0, 100: None}
START_TIMES = 2.0


def up(number: int) -> float:
    """Seconds from the start of `nbs-fleet up` until the last stub runs."""
    with teams.team_of(teams.stubs(number)) as team:
        team.up(wait=False)
        return team.started()


def raw_tmux(number: int) -> float:
    """Seconds for a tmux server and so many windows, all by one `source-file`."""
    with tempfile.TemporaryDirectory(prefix="nbs-bench-") as folder:
        made = Bare(folder)
        began = time.time()
        try:
            made.start()
            made.open([STUB] * number)
            return last_start(made.started, number) - began
        finally:
            made.close()


def raw_processes(number: int) -> float:
    """Seconds for so many processes, each on a terminal of its own."""
    with tempfile.TemporaryDirectory(prefix="nbs-bench-") as folder:
        os.mkdir(os.path.join(folder, STARTED))
        open_files: list[int] = []
        processes: list[subprocess.Popen[bytes]] = []
        began = time.time()
        try:
            for _ in range(number):
                ours, theirs = pty.openpty()
                open_files += [ours, theirs]
                processes.append(subprocess.Popen(STUB, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs))
            return last_start(os.path.join(folder, STARTED), number) - began
        finally:
            for process in processes:
                process.kill()
                process.wait()
            for fd in open_files:
                os.close(fd)


def tmuxp(number: int) -> float:
    """Seconds for `tmuxp load` of the same windows; it types each command into a shell."""
    with tempfile.TemporaryDirectory(prefix="nbs-bench-") as folder:
        made = Bare(folder)
        windows = [{"window_name": f"a-{n}", "panes": [{"shell_command": [bare.typed(STUB)]}]} for n in range(number)]
        path = os.path.join(folder, "team.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"session_name": "bench", "start_directory": folder, "windows": windows}, file)
        argv = [
            os.path.join(os.path.dirname(sys.executable), "tmuxp"),
            "load",
            "-d",
            "-y",
            "-S",
            made.tmux.socket,
            path,
        ]
        began = time.time()
        try:
            done = subprocess.run(argv, env=made.env, cwd=folder, capture_output=True, check=False)
            if done.returncode != 0:
                raise BenchmarkError(f"tmuxp load: exit {done.returncode}\n{done.stderr.decode()[-500:]}")
            return last_start(made.started, number) - began
        finally:
            made.close()


def typed(number: int) -> float:
    """Seconds for windows made one by one, and the command typed into the shell of each."""
    with bare.bare_server() as made:
        began = time.time()
        for _ in range(number):
            pane = made.tmux.run(
                "new-window", "-d", "-t", f"={bare.SESSION}:", "-c", made.folder, "-P", "-F", "#{pane_id}"
            )
            made.tmux.run("send-keys", "-t", pane.strip(), "-l", "--", bare.typed(STUB))
            made.tmux.run("send-keys", "-t", pane.strip(), "Enter")
        return last_start(made.started, number) - began


def up_simulated(number: int) -> float:
    """Seconds that `nbs-fleet up` takes until all simulated agents are idle."""
    with teams.team_of(teams.simulated(number)) as team:
        return team.up(wait=True)


def bare_simulated(number: int) -> float:
    """Seconds until so many simulated clients are idle that a bare tmux server starts."""
    client = (sys.executable, "-I", "-m", "nbs_fleet", "sim")
    with bare.bare_server() as made:
        began = time.time()
        made.open([("env", f"CLAUDE_CONFIG_DIR={made.folder}/claude", *client)] * number)
        states = os.path.join(made.folder, "claude", "sessions")
        until(lambda: _idle(states) >= number, f"{number} simulated clients are idle")
        return time.time() - began


def _idle(folder: str) -> int:
    count = 0
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            with suppress(OSError, ValueError), open(os.path.join(folder, name), encoding="utf-8") as file:
                count += name.endswith(".json") and json.load(file).get("status") == "idle"
    return count


def in_turn(repeats: int, *ways: Callable[[], float]) -> list[list[float]]:
    """Milliseconds of each way; they take turns."""
    took: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for way, found in zip(ways, took, strict=True):
            found.append(way() * 1000)
    return took


def figures(options: Options) -> list[Figure]:
    """Stubs, then simulated agents."""
    found = []
    for number, goal in list(STUBS.items())[: options.some(2, 1)]:
        ways = [partial(way, number) for way in (up, raw_tmux, raw_processes)]
        ours, batch, processes = in_turn(options.some(3 if number == 50 else 2, 1), *ways)
        beside = [
            Beside("raw tmux, one source-file", median(batch)),
            Beside("openpty + Popen", median(processes), at_most=FLOOR_TIMES[number]),
        ]
        if number == 50:
            loads, shells = in_turn(options.some(2, 1), partial(tmuxp, number), partial(typed, number))
            beside += [
                Beside("tmuxp load", median(loads), at_least=5),
                Beside("typed into shells", median(shells), at_least=30),
            ]
        name = f"up of {number} stubs until all run"
        found.append(Figure(name, "ms", median(ours), at_most=goal * 1000, beside=tuple(beside)))
    for number, limit in list(SIMULATED.items())[: options.some(3, 1)]:
        ways = [partial(way, number) for way in (up_simulated, bare_simulated)]
        ours, alone = in_turn(options.some(2 if number < 50 else 1, 1), *ways)
        start = Beside("their own bare start", median(alone), at_most=START_TIMES)
        name = f"up of {number} simulated agents until all are idle"
        found.append(Figure(name, "ms", median(ours), at_most=limit and limit * 1000, beside=(start,)))
    return found


BENCHMARK = Benchmark(
    "starts",
    "Stubs write a file when they run; the time is from the start of the command to the last of these. Beside `up`: a "
    "fresh tmux server with all windows by one `source-file`; as many processes on terminals of their own; `tmuxp load` "
    "of the same windows; `new-window` and `send-keys` for each, by shell commands. Simulated agents are Python processes "
    "with a start of their own, which is measured in a bare tmux server, until their state files say idle.",
    figures,
)
