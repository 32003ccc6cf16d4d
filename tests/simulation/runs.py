"""Plays worlds from seeds, finds the shortest script that breaks the same law, and keeps it as a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tests.simulation.happenings import PEACE, TURMOIL, Happening, Life, script
from tests.simulation.laws import BrokenLawError
from tests.simulation.world import World

HOUR = 3_600.0


class Story(msgspec.Struct, frozen=True):
    """All that makes a run what it is, and what went wrong in it once."""

    seed: int
    agents: int
    rounds: int
    happenings: tuple[Happening, ...]
    broke: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """What came of one run: agent-hours, steps, what happened how often, and the broken law, if any."""

    seed: int
    hours: float
    steps: int
    counts: dict[str, int]
    broke: str = ""


def story(seed: int, rounds: int, agents: int = 5) -> Story:
    """The run of this seed."""
    return Story(seed, agents, rounds, script(seed, rounds, World(seed, agents=agents).handles))


def play(told: Story) -> Outcome:
    """Play it to the end, or to the first broken law."""
    world = World(told.seed, agents=told.agents)
    broke = ""
    try:
        Life(world, told.happenings, told.rounds).play()
    except BrokenLawError as error:
        broke = str(error)
    hours = world.line.t / HOUR * told.agents
    return Outcome(told.seed, hours, world.line.steps, dict(world.laws.counts), broke)


def shrink(told: Story, *, tries: int = 400) -> Story:
    """A story with fewer happenings that breaks a law too: halves are left out first, then ever smaller parts."""
    best = replace_broke(told, play(told).broke)
    size = max(1, len(best.happenings) // 2)
    while size and tries:
        start, smaller = 0, False
        while start < len(best.happenings) and tries:
            tries -= 1
            kept = (*best.happenings[:start], *best.happenings[start + size :])
            shorter = Story(best.seed, best.agents, best.rounds, kept)
            broke = play(shorter).broke
            if broke:
                best, smaller = replace_broke(shorter, broke), True
            else:
                start += size
        size = size if smaller and size > 1 else size // 2
    return best


def replace_broke(told: Story, broke: str) -> Story:
    """The story, cut off after the round that breaks the law."""
    at = float(broke.split()[1]) if broke else told.rounds * (TURMOIL + PEACE)
    rounds = min(told.rounds, int(max(0.0, at - 1.0) // (TURMOIL + PEACE)) + 1)
    happenings = tuple(h for h in told.happenings if h.t <= at)
    return Story(told.seed, told.agents, rounds, happenings, broke)


def keep(told: Story, folder: Path) -> Path:
    """Write a story down where the tests find it."""
    path = folder / f"world-{told.seed}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n")
    return path


def read(path: Path) -> Story:
    """A story that was kept."""
    return msgspec.json.decode(path.read_bytes(), type=Story)


def many(
    seeds: Sequence[int], rounds: int, run: Callable[[Story], Outcome] = play
) -> tuple[Counter[str], list[Outcome]]:
    """Play these seeds one after the other: what happened how often, and the outcomes."""
    counts: Counter[str] = Counter()
    outcomes = []
    for seed in seeds:
        outcome = run(story(seed, rounds))
        counts.update(outcome.counts)
        outcomes.append(outcome)
    return counts, outcomes
