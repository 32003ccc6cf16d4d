"""What an `up` tells of agents, and their folders: for those that start at once, for others while it waits anyway."""

from __future__ import annotations

import time

from nbs_fleet.model import Moment
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.story import Story
from nbs_fleet.supervisor.telling import tell


class Notes:
    """Changes of records that are not told yet. Folders and a story take an agent longer than all else of its start."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        self._stories: dict[str, Story] = {}
        self._due: dict[str, list[tuple[AgentRecord | None, AgentRecord, Moment]]] = {}

    def add(self, old: AgentRecord | None, new: AgentRecord, now: Moment) -> None:
        """Something changed at this moment."""
        self._due.setdefault(new.handle, []).append((old, new, now))

    def write(self, handle: str) -> None:
        """Tell all that is due of one agent; its folders are there then."""
        due = self._due.pop(handle, ())
        if due and handle not in self._stories:
            store.make_folders(self._paths, handle)
            self._stories[handle] = store.story(self._paths, handle)
        for old, new, now in due:
            tell(self._stories[handle], old, new, now)

    def pause(self, seconds: float) -> None:
        """Let this time pass, and use it."""
        end = time.monotonic() + seconds
        while self._due and time.monotonic() < end:
            self.write(next(iter(self._due)))
        # This time is a measure of rest, not a wait for anything: `wait_rest` looks at what clients take in it.
        time.sleep(max(0.0, end - time.monotonic()))

    def close(self) -> None:
        """Tell the rest."""
        while self._due:
            self.write(next(iter(self._due)))
