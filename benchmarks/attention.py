"""How soon a dialog waits for a person in the queue.

A simulated agent asks for a permission again and again; measured is the time from its client's hook to the item, both
as the agent's story tells them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Benchmark, Figure, Options, quantile
from benchmarks.teams import BenchmarkError
from nbs_fleet.testing.fleet import Fleet

ROUNDS = 25
TEAM = {"version": 1, "team": "asking", "driver": "sim", "agents": [{"handle": "ana"}]}
GOAL_MS = 100.0


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """A story, oldest line first."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def delays(story: Path) -> list[float]:
    """Milliseconds from each hook that told of a dialog to the item that waits for a person.

    The screen may tell of a dialog before the hook's word is read: so the first hook belongs to the first item, and so on.
    """
    fired: list[float] = []
    items: list[float] = []
    for line in lines(story):
        event = line.get("event")
        if isinstance(event, dict) and event.get("news", {}).get("event") == "PermissionRequest":
            fired.append(float(event["at"]))
        if line["what"] == "needs a person":
            items.append(float(line["at"]))
    if len(fired) != len(items):
        raise BenchmarkError(f"{len(fired)} dialogs, and {len(items)} items")
    return [(item - hook) * 1000 for hook, item in zip(fired, items, strict=True)]


def measure(rounds: int) -> list[float]:
    """Let the agent ask so often, and answer each time."""
    with tempfile.TemporaryDirectory(prefix="nbs-bench-") as folder:
        fleet = Fleet(name="attention", folder=folder)
        try:
            fleet.up(TEAM)
            fleet.wait_state("ana", "idle")
            for number in range(rounds):
                fleet.send("ana", f"[[bash touch {number}.txt]]")
                fleet.answer("ana", "approve")
                fleet.wait_file(f"{number}.txt")
            run = json.loads(fleet.run("ls", "--json").out)["teams"][0]["run"]
            return delays(Path(run) / "agents" / "ana" / "story.jsonl")
        finally:
            fleet.close()


def figures(options: Options) -> list[Figure]:
    """Both quantiles of the same rounds."""
    found = measure(options.some(ROUNDS, 5))
    return [
        Figure("dialog on the screen -> it waits for a person, p50", "ms", quantile(found, 0.5)),
        Figure("dialog on the screen -> it waits for a person, p99", "ms", quantile(found, 0.99), at_most=GOAL_MS),
    ]


BENCHMARK = Benchmark(
    "attention",
    "A simulated agent asks for a permission again and again, and is answered. The time is from its client's hook to the "
    "item in the queue, as the agent's story tells both.",
    figures,
)
