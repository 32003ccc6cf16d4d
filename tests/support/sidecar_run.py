"""One run of a client as its sidecar decides on it: events in, actions and the last report out."""

from __future__ import annotations

from nbs_fleet.drivers.base import Capabilities, Dialog, Option, Reading, StateFile
from nbs_fleet.model import AgentState, BlockedKind, Moment
from nbs_fleet.sidecar.actions import (
    Action,
    Event,
    Report,
    StateFileSeen,
    Ticked,
)
from nbs_fleet.sidecar.decide import decide
from nbs_fleet.sidecar.mind import Mind, Watching
from nbs_fleet.sidecar.recovery import Rules

CAN = Capabilities(state_file=True, title=True)
IDLE = Reading(AgentState.IDLE)
BUSY = Reading(AgentState.BUSY)
TRUST = Reading(
    AgentState.BLOCKED,
    blocked=BlockedKind.TRUST,
    dialog=Dialog(BlockedKind.TRUST, "trust?", (Option("Yes", "1"), Option("No", "2")), 0),
)


class Run:
    """One run of a client, driven by events."""

    def __init__(self, *, prompt: bool = False, can: Capabilities = CAN, rules: Rules | None = None) -> None:
        self.mind = Mind(Watching(can, expects_prompt=prompt, rules=rules or Rules()))
        self.now = 100.0
        self.actions: list[Action] = []

    def tell(self, *events: Event, after: float = 0.1) -> list[Action]:
        answer: list[Action] = []
        for event in events:
            self.now += after
            self.mind, actions = decide(self.mind, event, Moment(self.now, self.now))
            answer.extend(actions)
        self.actions.extend(answer)
        return answer

    def wait(self, seconds: float) -> None:
        """Nothing happens but what becomes due."""
        end = self.now + seconds
        while (at := self.mind.wake_at) is not None and at <= end:
            self.tell(Ticked(), after=at - self.now)
        self.now = end

    @property
    def report(self) -> Report:
        return self.mind.report


def file(reading: Reading) -> StateFileSeen:
    return StateFileSeen(StateFile(1, 1, "s", reading, at=99.0))
