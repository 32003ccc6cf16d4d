"""Counts what each agent uses: reads what its client's files have grown by. Effects only, no decisions."""

from __future__ import annotations

import asyncio
import glob
import os

from nbs_fleet.drivers.base import Driver
from nbs_fleet.drivers.usage import Tally
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import registry
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.supervisor.facts import gather
from nbs_fleet.supervisor.fleet import Metered

CHUNK = 4_000_000
"""Bytes that are read at once."""


class Meter:
    """One growing file. `read` returns the count of all its whole lines; a file that shrank is counted anew."""

    def __init__(self, driver: Driver, path: str) -> None:
        self._driver, self._path = driver, path
        self._offset, self._inode = 0, 0
        self.tally = Tally()

    def read(self) -> Tally:
        """Take in what was added since the last time; what can't be read is as it was."""
        try:
            with open(self._path, "rb") as file:
                there = os.fstat(file.fileno())
                if there.st_ino != self._inode or there.st_size < self._offset:
                    self._offset, self._inode, self.tally = 0, there.st_ino, Tally()
                file.seek(self._offset)
                rest = b""
                while chunk := file.read(CHUNK):
                    whole, end, rest = (rest + chunk).rpartition(b"\n")
                    self.tally = self._driver.count_usage(self.tally, whole.decode("utf-8", "replace"))
                    self._offset += len(whole) + len(end)
        except OSError:
            pass
        return self.tally


class Meters:
    """The meters of all agents of one supervisor."""

    def __init__(self) -> None:
        self._meters: dict[str, Meter] = {}
        self._turns = asyncio.Lock()

    async def measure(self, plan: Plan, agent: AgentPlan, record: AgentRecord) -> Metered | None:
        """What this agent has used in the session it is in; None if its client's files tell nothing of it."""
        driver = registry.of(agent.agent)
        session = record.session_id
        if session is None:
            return None
        try:
            facts = gather(plan, agent, session_id=session, resume=True, has_prompt=False)
        except FleetError:
            # Its environment is gone: the next start says so.
            return None
        transcript = driver.places(facts).transcript
        if transcript is None:
            return None
        async with self._turns:
            return await asyncio.to_thread(self._count, driver, record.handle, session, transcript)

    def _count(self, driver: Driver, handle: str, session: str, transcript: str) -> Metered | None:
        """The session's own file, and those of its subagents (Claude Code: `<session>/subagents/agent-ID.jsonl`)."""
        own = self._meter(driver, transcript).read()
        spent = own.spent
        stem = glob.escape(transcript.removesuffix(".jsonl"))
        for path in sorted(glob.glob(os.path.join(stem, "subagents", "*.jsonl"))):
            spent = spent.plus(self._meter(driver, path).read().spent)
        if not spent.total:
            return None
        return Metered(handle, session, spent.total, own.context, own.model)

    def _meter(self, driver: Driver, path: str) -> Meter:
        return self._meters.setdefault(path, Meter(driver, path))
