"""Keeps a team's budgets: where counting began is on disk, and each limit that is reached is acted upon once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from nbs_fleet.attention import budget
from nbs_fleet.attention.budget import Base, Over
from nbs_fleet.attention.queue import Need
from nbs_fleet.jsontext import MALFORMED
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.model import ProcId
from nbs_fleet.plan.types import AgentRecord, Plan
from nbs_fleet.supervisor.rendering import File


class Kept(msgspec.Struct, frozen=True):
    """The file: counting begins anew with each new tmux server of the team, so with each `up` after a `down`."""

    server: ProcId | None
    base: Base


class Spending:
    """The budgets of one plan; `act(over)` does what the team file wants at a limit."""

    def __init__(self, path: str, server: ProcId | None, *, act: Callable[[Over], None]) -> None:
        self._path, self._server, self._act = path, server, act
        self._base: Base | None = None

    def look(self, plan: Plan, records: Sequence[AgentRecord], now: float) -> dict[str, Need]:
        """What is over now, by owner (a handle, or empty for the team); raises FleetError if it can't be kept."""
        agents = {a.agent.handle: a.agent.budget for a in plan.agents}
        if plan.budget is None and not any(agents.values()):
            return {}
        base = self._base or self._begin(records, now)
        reached = budget.over(plan.budget, agents, records, base, now)
        new = budget.fresh(reached, base)
        told = tuple((one.owner, one.limit) for one in reached)
        if set(told) != set(base.told):
            base = replace(base, told=told)
            self._keep(base)
        self._base = base
        for one in new:
            self._act(one)
        return budget.needs(reached)

    def files(self) -> dict[str, File]:
        """What the file holds, by its path, once there is one."""
        return {} if self._base is None else {self._path: File(self._text(self._base))}

    def _begin(self, records: Sequence[AgentRecord], now: float) -> Base:
        """Where counting began, by the file of this tmux server; else now."""
        try:
            with open(self._path, "rb") as file:
                kept = msgspec.json.decode(file.read(), type=Kept)
            if kept.server == self._server:
                return kept.base
        except (OSError, *MALFORMED):
            pass
        base = Base(now, {record.handle: sum(record.tokens.values()) for record in records})
        self._keep(base)
        return base

    def _keep(self, base: Base) -> None:
        write_atomic(self._path, self._text(base))

    def _text(self, base: Base) -> bytes:
        return msgspec.json.encode(Kept(self._server, base))
