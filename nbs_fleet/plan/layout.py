"""Where each agent's pane goes: windows and slots, so that nobody moves because somebody else came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nbs_fleet.spec.team import Layout

SUPERVISOR_WINDOW = "fleet"
"""The window that supervise.sh runs in."""

Place = tuple[str, int]
"""A window's name and the pane's number in it, from 0."""


def place(handles: Sequence[str], layout: Layout, placed: Mapping[str, Place]) -> dict[str, Place]:
    """The place of each of `handles`, in that order.

    Who has a place in `placed` (the panes that exist) keeps it, whatever the layout says now. The others, in
    order: with one pane per window a window named after the agent; with more, the first free slots of `agents-1`,
    `agents-2`, ...
    """
    taken = set(placed.values())
    places: dict[str, Place] = {}
    for handle in handles:
        found = placed.get(handle) or _free(handle, layout, taken)
        taken.add(found)
        places[handle] = found
    return places


def _free(handle: str, layout: Layout, taken: set[Place]) -> Place:
    if layout.panes_per_window <= 1:
        # A name that no handle can have, so that the supervisor's window stays the only one of its name.
        return (f"{handle}~" if handle == SUPERVISOR_WINDOW else handle), 0
    number = 0
    while True:
        window, slot = divmod(number, layout.panes_per_window)
        candidate = (f"agents-{window + 1}", slot)
        if candidate not in taken:
            return candidate
        number += 1
