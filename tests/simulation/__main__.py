"""Simulate as many agent-hours as wanted: `python -m tests.simulation --hours 1000000 -j 2`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.simulation.happenings import PEACE, TURMOIL
from tests.simulation.runs import HOUR, Outcome, keep, play, shrink, story

HISTORIES = Path(__file__).resolve().parent.parent / "histories"
AGENTS = 5
ROUNDS = 6


def one(seed: int) -> Outcome:
    """The run of a seed."""
    return play(story(seed, ROUNDS, AGENTS))


def _seeds(first: int, hours: float) -> Iterator[int]:
    each = ROUNDS * (TURMOIL + PEACE) / HOUR * AGENTS
    yield from range(first, first + max(1, round(hours / each)))


def main() -> int:
    """Exit 1 if a law was broken; the shortest story of each is kept beside the histories."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--hours", type=float, default=1_000.0, help="agent-hours to simulate")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each run has the next one")
    parser.add_argument("-j", type=int, default=1, dest="jobs", help="processes at once")
    parser.add_argument("--keep", type=Path, default=HISTORIES, help="where the stories of broken laws go")
    asked = parser.parse_args()
    begun, hours, steps, runs = time.monotonic(), 0.0, 0, 0
    counts: Counter[str] = Counter()
    broken: list[Outcome] = []
    told = begun
    with ProcessPoolExecutor(asked.jobs) as pool:
        for outcome in pool.map(one, _seeds(asked.seed, asked.hours), chunksize=8):
            hours, steps, runs = hours + outcome.hours, steps + outcome.steps, runs + 1
            counts.update(outcome.counts)
            if outcome.broke:
                broken.append(outcome)
                print(f"seed {outcome.seed}: {outcome.broke}", flush=True)
            if time.monotonic() > told + 60.0:
                told = time.monotonic()
                print(f"{hours:,.0f} agent-hours, {len(broken)} broken laws, {told - begun:.0f} s", flush=True)
    for outcome in broken[:5]:
        path = keep(shrink(story(outcome.seed, ROUNDS, AGENTS)), asked.keep)
        print(f"seed {outcome.seed}: kept as {path}")
    for name, number in sorted(counts.items()):
        print(f"{number:>12,}  {name}")
    seconds = time.monotonic() - begun
    print(
        f"{hours:,.0f} agent-hours in {runs:,} runs from seed {asked.seed}, {steps:,} steps, "
        f"{len(broken)} broken laws, {seconds:.0f} s"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
