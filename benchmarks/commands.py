"""How long commands take that people and scripts call often, beside a bare Python start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from benchmarks import teams
from benchmarks.figures import Benchmark, Beside, Figure, Options, median

AGENTS = 50
GOALS = {"--version": 80.0, "ps --json": 120.0}


def took(run: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1000


def bare_start() -> None:
    """Start Python and end it."""
    argv = [sys.executable, "-I", "-S", "-c", "pass"]
    subprocess.run(argv, check=True, close_fds=False, stdin=subprocess.DEVNULL, env={"PATH": os.defpath})


def figures(options: Options) -> list[Figure]:
    """Each command and a bare start take turns."""
    found = []
    with teams.running(teams.stubs(options.some(AGENTS, 10))) as team:
        for words, goal in GOALS.items():
            pairs = [
                (took(bare_start), took(partial(team.command, *words.split()))) for _ in range(options.some(20, 5))
            ]
            bare, ours = zip(*pairs, strict=True)
            name = words if words == "--version" else f"{words}, {len(team.handles)} agents"
            beside = Beside("bare Python start", median(bare))
            found.append(Figure(f"nbs-fleet {name}", "ms", median(ours), at_most=goal, beside=(beside,)))
    return found


BENCHMARK = Benchmark(
    "commands",
    "The wall time of `nbs-fleet --version` and of `nbs-fleet ps --json` in a team of 50 stubs, from the start of the "
    "process to its end. `python -I -S -c pass` takes turns with each.",
    figures,
)
