"""How soon a dialog waits for a person in the queue: `python -m benchmarks.attention [--json]`.

A simulated agent asks for a permission again and again; measured is the time from its client's hook to the item, both
as the agent's story tells them. Beside it: the time the hook program itself took, which nobody can be faster than.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbs_fleet.testing.fleet import Fleet

ROUNDS = 40
LIMIT_SECONDS = 280
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
        raise SystemExit(f"{len(fired)} dialogs, and {len(items)} items")
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


def quantile(values: list[float], share: float) -> float:
    """The value that this share of all lies below."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> int:
    """Print the figures; exit 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="dialogs (default: %(default)s)")
    given = parser.parse_args()
    signal.alarm(LIMIT_SECONDS)
    found = measure(given.rounds)
    figures = {"p50": statistics.median(found), "p99": quantile(found, 0.99), "most": max(found)}
    met = figures["p99"] <= GOAL_MS
    if given.json:
        rows = [{"name": f"dialog -> item, {name}", "value": value, "unit": "ms"} for name, value in figures.items()]
        sys.stdout.write(
            json.dumps({"schema": 1, "figures": rows, "goal": f"p99 <= {GOAL_MS:g} ms", "met": met}) + "\n"
        )
    else:
        for name, value in figures.items():
            sys.stdout.write(f"dialog -> item, {name:5} {value:7.1f} ms\n")
        sys.stdout.write(f"goal: p99 <= {GOAL_MS:g} ms: {'met' if met else 'MISSED'}\n")
    return 0 if met else 1


if __name__ == "__main__":
    os.environ.pop("NBS_HANDLE", None)
    sys.exit(main())
