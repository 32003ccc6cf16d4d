"""What a sidecar stands on: the run of a client that it is about, and the pane, a seam that the supervisor fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from nbs_fleet.drivers.base import Screen
from nbs_fleet.model import ProcId
from nbs_fleet.plan.paths import AgentPaths


class Ground(Protocol):
    """What a sidecar stands on: the pane's screen and keys."""

    async def look(self, pane: str) -> Screen:
        """The pane as it is now."""
        ...

    async def press(self, pane: str, keys: Sequence[str]) -> None:
        """Press keys, by their tmux names."""
        ...

    async def paste(self, pane: str, text: str) -> None:
        """Paste text, bracketed where the client asked for it."""
        ...

    async def write(self, pane: str, text: str) -> None:
        """Type text literally."""
        ...

    async def subscribe(self, pane: str, fmt: str, changed: Callable[[str], None], *, alone: bool) -> None:
        """Call `changed` when the value of this tmux format changes in the pane.

        `alone`: nothing else tells what its client does, so any output is worth being told of at once.
        """
        ...

    async def unsubscribe(self, pane: str) -> None:
        """Do so no longer."""


class Run(msgspec.Struct, frozen=True):
    """What one sidecar is about: the client's process and pane, and what is known from before.

    `ready`: found ready before (a sidecar that takes over). `earlier`: transcripts of the sessions before this one.
    `transcript_from`: see AgentRecord. `root`: the project, for control-pause.
    """

    proc: ProcId
    pane: str
    paths: AgentPaths
    root: str
    ready: bool
    earlier: tuple[str, ...] = ()
    transcript_from: int = 0
