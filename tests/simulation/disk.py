"""What a simulated team has on disk: it outlives every process, and may be full."""

from __future__ import annotations

from dataclasses import dataclass, field

from nbs_fleet.attention.queue import Queue
from nbs_fleet.errors import FleetError
from nbs_fleet.model import Message, ProcId
from nbs_fleet.plan.types import AgentRecord, Plan
from nbs_fleet.sidecar.actions import HookSeen
from nbs_fleet.sidecar.delivery import Place


@dataclass
class Letter:
    """A message that waits; `taker` is the client that claimed its token."""

    message: Message
    place: Place = "queue"
    taker: ProcId | None = None


@dataclass
class Transcript:
    """One session's file."""

    prompts: int = 0
    finished: int = 0
    ids: dict[str, int] = field(default_factory=dict)
    """How often each message was used in it."""
    size: int = 0


@dataclass
class Folder:
    """One agent's files."""

    letters: dict[str, Letter] = field(default_factory=dict)
    archive: dict[str, str] = field(default_factory=dict)
    """Outcome and rung of messages that ended, the last thousand."""
    spool: list[HookSeen] = field(default_factory=list)
    transcripts: dict[str, Transcript] = field(default_factory=dict)
    probe: bool = False
    typed: str = ""
    entered: bool = False
    hand_over: bool = False
    """Its hooks hand messages over at tool boundaries."""
    signal: tuple[str | None, str] = (None, "")
    paused: bool = False

    def transcript(self, session: str) -> Transcript:
        """That session's file, made if need be."""
        return self.transcripts.setdefault(session, Transcript())


class Disk:
    """The run directory."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.full = False
        self.records: dict[str, AgentRecord] = {}
        self.queue = Queue()
        self.folders = {a.agent.handle: Folder() for a in plan.agents}

    def write(self) -> None:
        """Fail where there is no room: to be called before each write of the fleet's own."""
        if self.full:
            raise FleetError("no space left on device")
