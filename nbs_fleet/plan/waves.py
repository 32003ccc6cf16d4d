"""Who starts before whom: waves from `depends_on`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nbs_fleet.errors import FleetError
from nbs_fleet.spec.team import Agent


def waves(agents: Sequence[Agent]) -> dict[str, int]:
    """The wave of each handle: 0 needs nobody, others come one after the last they need.

    A base handle in `depends_on` stands for all its copies; a name that is not on the team is nothing to wait for
    (the team file's own checks refuse it). FleetError names the agents of a cycle.
    """
    copies: dict[str, dict[str, None]] = {}
    for agent in agents:
        copies.setdefault(agent.base, {})[agent.handle] = None
        copies.setdefault(agent.handle, {})[agent.handle] = None
    needs = {a.handle: tuple(h for name in a.depends_on for h in copies.get(name, ())) for a in agents}
    placed: dict[str, int] = {}
    while len(placed) < len(needs):
        ready = [h for h, wanted in needs.items() if h not in placed and all(w in placed for w in wanted)]
        if not ready:
            raise FleetError(
                f"depends_on goes round in a circle: {' -> '.join(_circle(needs, placed))}",
                hint="one of them must come first",
            )
        placed |= {handle: 1 + max((placed[w] for w in needs[handle]), default=-1) for handle in ready}
    return {agent.handle: placed[agent.handle] for agent in agents}


def _circle(needs: Mapping[str, tuple[str, ...]], placed: Mapping[str, int]) -> list[str]:
    """One cycle among the agents that could not be placed: each of them needs another of them."""
    way = [next(handle for handle in needs if handle not in placed)]
    while way.count(way[-1]) == 1:
        way.append(next(wanted for wanted in needs[way[-1]] if wanted not in placed))
    return way[way.index(way[-1]) :]
