"""What explains a test that failed: the story, the screens, and a copy of its files where that was asked for."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Iterable

from msgspec.structs import replace

from nbs_fleet.testing.outcome import Trouble
from nbs_fleet.testing.world import World

STORY_LINES = 25
SCREEN_ROWS = 24
SECONDS = 20.0


async def explained(world: World, trouble: Trouble) -> Trouble:
    """The trouble with the last lines of the story and the screens of all agents, as they are now."""
    logs = await world.run("logs", "--team", world.team.name, "-n", str(STORY_LINES), seconds=SECONDS)
    screens = await asyncio.to_thread(world.eyes.screens)
    found: list[tuple[str, tuple[str, ...]]] = []
    for agent in world.team.agents:
        rows = screens.get(agent.handle) or _last_capture(world, agent.handle)
        found.append((agent.handle, tuple(row for row in rows if row.strip())[-SCREEN_ROWS:]))
    return replace(trouble, story=tuple(logs.out.splitlines()[-STORY_LINES:]), screens=tuple(found))


def _last_capture(world: World, handle: str) -> tuple[str, ...]:
    """The screen that was kept when the client ended, if any."""
    folder = world.eyes.paths.agent(handle).captures
    try:
        newest = max(os.listdir(folder))
        with open(os.path.join(folder, newest), encoding="utf-8", errors="replace") as file:
            return tuple(file.read().splitlines())
    except (OSError, ValueError):
        return ()


def store(world: World, keep: str, troubles: Iterable[Trouble]) -> str:
    """Copy the project and the run directory of a world into a new folder below `keep`; returns its path.

    Left out are sockets and the files with values of the environment.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", world.recipe.name).strip("-.") or "test"
    place, number = os.path.join(keep, name), 1
    while True:
        try:
            os.makedirs(place)
            break
        except FileExistsError:
            number += 1
            place = os.path.join(keep, f"{name}-{number}")
    for folder, what in ((world.folders.root, "project"), (world.eyes.paths.run, "run")):
        if os.path.isdir(folder):
            shutil.copytree(folder, os.path.join(place, what), symlinks=True, ignore=_special)
    text = "\n\n".join("\n".join(lines_of(trouble)) for trouble in troubles) or "passed"
    with open(os.path.join(place, "report.txt"), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    return place


def _special(folder: str, names: list[str]) -> list[str]:
    """What can't or must not be copied."""
    paths = {name: os.path.join(folder, name) for name in names}
    return [
        name
        for name, path in paths.items()
        if not (os.path.isfile(path) or os.path.isdir(path) or os.path.islink(path))
    ]


def lines_of(trouble: Trouble) -> list[str]:
    """A trouble as lines of text: what, expected, seen, story, screens."""
    place = f"{trouble.where}: " if trouble.where else ""
    lines = [f"{place}{trouble.what}"]
    if trouble.wanted:
        lines.append(f"  expected: {trouble.wanted}")
    if trouble.saw:
        lines.append(f"  seen:     {trouble.saw[0]}")
        lines += [f"            {line}" for line in trouble.saw[1:]]
    if trouble.story:
        lines += ["  what happened last:", *(f"    {line}" for line in trouble.story)]
    for handle, rows in trouble.screens:
        lines += [f"  screen of {handle}:" if rows else f"  screen of {handle}: none"]
        lines += [f"    | {row}" for row in rows]
    return lines
