"""A team in virtual time: its machine, its files, its clients, its people, and the faults that befall them."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from nbs_fleet.drivers.base import Capabilities, Driver, Turns
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.model import Exit, ExitKind, Message, MessageKind, Priority, ProcId
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.sidecar.mind import Watching
from nbs_fleet.sidecar.notices import Pending, Unread, Waiting
from nbs_fleet.spec.team import Agent, Backoff, Layout, Recovery, RestartPolicy, SidecarSettings
from nbs_fleet.supervisor.hosting import watching_of
from tests.simulation.boss import Boss
from tests.simulation.client import Client
from tests.simulation.disk import Disk, Letter, Transcript
from tests.simulation.laws import Laws
from tests.simulation.timeline import Timeline

HANDLES = ("ana", "bo", "cy", "dee", "eli")
LOST, LATE, TWICE = 0.02, 0.03, 0.02
"""How often a notification goes missing, comes late, comes twice."""


class Plain:
    """A driver of which only the screen and the transcript are to be had."""

    capabilities = Capabilities(resume=True)
    since: ClassVar[dict[str, tuple[int, ...]]] = {}


class World:
    """One team and all that can happen to it, from one seed."""

    def __init__(self, seed: int, *, agents: int = 5) -> None:
        self.line = Timeline(seed)
        chance = self.line.random
        self.handles = HANDLES[:agents]
        self.rich = {h: chance.random() < 0.8 for h in self.handles}
        self.armed = {h: chance.random() < 0.85 for h in self.handles}
        self.trusts = {h: chance.random() < 0.5 for h in self.handles}
        self.prompted = {h: chance.random() < 0.5 for h in self.handles}
        self.must_signal = {h: chance.random() < 0.3 for h in self.handles}
        self.copy_mode = dict.fromkeys(self.handles, False)
        self.disk = Disk(
            Plan("t", "/t.yaml", "/", "x", _paths(), Layout(), tuple(self._agent(h) for h in self.handles))
        )
        self.calm = False
        self.logged_out = False
        self.tmux_gone = False
        self.room = 0
        """After so many steps of effects there is no room on the disk any more, if any."""
        self.cursed: set[str] = set()
        """Agents whose clients die soon after each start."""
        self.doom = 0
        """After so many steps of its effects the supervisor is killed, if any."""
        self.panes: dict[str, Client] = {}
        self.ends: dict[ProcId, Exit] = {}
        self.unsaved: set[str] = set()
        self.accepted: dict[str, Message] = {}
        self.unread = dict.fromkeys(self.handles, 0)
        self._last = dict.fromkeys(self.handles, 0)
        self.events: dict[str, list[str]] = {h: [] for h in self.handles}
        self._number = 0
        self.laws = Laws(self)
        self.boss = Boss(self)

    def _agent(self, handle: str) -> AgentPlan:
        pick = self.line.random.choice
        policy = RestartPolicy(max=5, within=600.0, backoff=Backoff(first=1.0, max=60.0))
        one = Agent(
            handle,
            handle,
            None,
            "claude",
            "/",
            restart=policy,
            stop="signal" if self.must_signal[handle] else "free",
            on_error=Recovery(do=pick(("nudge", "escalate", "resume"))),
            on_idle=Recovery(do=pick(("escalate", "escalate", "nudge"))),
            sidecar=SidecarSettings(delivery=pick(("auto", "auto", "keys"))),
        )
        return AgentPlan(one, {"model": "m"}, "p" if self.prompted[handle] else None, 0, handle, 0)

    # chance

    def chance(self, low: float, high: float) -> float:
        """A duration; short ones are likelier."""
        return low + (high - low) * self.line.random.random() ** 3

    def odds(self, share: float) -> bool:
        """Whether a thing of this probability happens; nothing bad does in peace."""
        return not self.calm and self.line.random.random() < share

    # the machine

    def doom_draws_near(self) -> None:
        """One more step of an effect of the fleet's own is about to be done."""
        if self.room:
            self.room -= 1
            self.disk.full = self.disk.full or (not self.room and not self.calm)
        if self.doom:
            self.doom -= 1
            if not self.doom and not self.calm:
                self.kill_supervisor(1.0)

    def kill_supervisor(self, pause: float) -> None:
        """It dies now, and is started again after a while."""
        if self.boss.alive:
            self.laws.count("supervisor killed")
            self.boss.die()
            self.line.after(pause, self._supervise)

    def _supervise(self) -> None:
        if not self.tmux_gone:
            self.boss.start()

    def notice(self, handle: str, what: str) -> None:
        """A file or a pane changed: whoever watches hears of it, as a rule."""
        station = self.boss.stations.get(handle)
        if station is None:
            return
        roll = 1.0 if self.calm else self.line.random.random()
        if roll < LOST:
            self.laws.count("notification lost")
            station.missed = True
            return
        delay = 0.001 + 0.02 * self.line.random.random()
        if roll < LOST + LATE:
            self.laws.count("notification late")
            delay = self.chance(0.1, 8.0)
        elif roll < LOST + LATE + TWICE:
            self.laws.count("notification twice")
            self.line.after(delay + 0.01, station.notice, what)
        self.line.after(delay, station.notice, what)

    def spawn(self, handle: str, session: str) -> Client:
        """A client begins in this agent's pane."""
        old = self.panes.get(handle)
        if old is not None and old.alive:
            raise self.laws.broken(f"a second client of {handle} is started")
        self._number += 1
        proc = ProcId(10_000 + self._number, self._number)
        folder = self.disk.folders[handle]
        folder.typed, folder.entered, folder.hand_over = "", False, False
        folder.probe = False
        client = Client(self, handle, proc, session, rich=self.rich[handle], armed=self.armed[handle])
        self.panes[handle] = client
        if handle in self.cursed:
            self.line.after(self.chance(0.1, 10.0), self._strike, client)
        return client

    def _strike(self, client: Client) -> None:
        if not self.calm:
            client.die(ExitKind.CRASH, signal=11)

    def died(self, client: Client) -> None:
        """A client has ended."""
        self.ends[client.proc] = client.end
        if self.boss.alive:
            self.boss.gone(client)

    def end_of(self, record: AgentRecord) -> Exit:
        """How the process of this record ended, as far as it can be told later."""
        known = self.ends.get(record.proc) if record.proc else None
        return known or Exit(ExitKind.TMUX_DIED, self.line.now().wall)

    def new_session(self) -> str:
        """Another session's id."""
        self._number += 1
        return f"s{self._number}"

    def turns(self, file: Transcript) -> Turns:
        """What a transcript says."""
        return Turns(prompts=file.prompts, finished=file.finished, last_text="done" if file.finished else None)

    def watching(self, plan: AgentPlan, *, prompted: bool, client: Client) -> Watching:
        """What a sidecar works by, as the real supervisor makes it."""
        driver: Any = Claude() if client.rich else Plain()
        made = watching_of(plan, cast("Driver", driver), prompted)
        return Watching(
            made.capabilities,
            expects_prompt=made.expects_prompt,
            addressed=True,
            means=made.means,
            rules=made.rules,
            notices=made.notices,
        )

    # messages, chats and events

    def accept(
        self,
        handle: str,
        kind: MessageKind = MessageKind.DIRECTIVE,
        *,
        priority: Priority = Priority.NORMAL,
        interrupt: bool = False,
    ) -> None:
        """A message is in the agent's queue: from here on it may not get lost."""
        self._number += 1
        message_id = f"{str(kind)[0]}-{self._number}"
        text = f"/do {message_id}" if kind is MessageKind.COMMAND else "do it"
        message = Message(
            message_id, handle, "person", text, self.line.now().wall, kind=kind, priority=priority, interrupt=interrupt
        )
        self.accepted[message_id] = message
        self.disk.folders[handle].letters[message_id] = Letter(message)
        self.notice(handle, "mail")

    def waiting(self, handle: str) -> Waiting:
        """What waits on the nbs files."""
        count, names = self.unread[handle], tuple(self.events[handle])
        unread = (Unread("live", count, ("zoe",), count, self._last[handle]),) if count else ()
        top = Priority.HIGH if any(n.startswith("h") for n in names) else Priority.NORMAL if names else None
        urgent = tuple(n for n in names if n.startswith("m"))
        return Waiting(unread, Pending((("task", len(names)),) if names else (), top, urgent, names))

    def chat(self, handle: str) -> None:
        """Somebody writes in this agent's chat."""
        self.unread[handle] += 1
        self._last[handle] += 1
        self.notice(handle, "waiting")

    def event(self, handle: str) -> None:
        """An event comes for this agent."""
        self._number += 1
        self.events[handle].append(f"{self.line.random.choice('hmn')}{self._number}")
        self.notice(handle, "waiting")

    def read(self, handle: str, ids: tuple[str, ...]) -> None:
        """An agent that is told of something reads it, as a rule."""
        kinds = [self.accepted[i].kind for i in ids if i in self.accepted]
        if MessageKind.NOTICE in kinds and not self.odds(0.1):
            self.unread[handle], self.events[handle] = 0, []
            self.notice(handle, "waiting")


def _paths() -> RunPaths:
    return RunPaths("/run", "/rt", "/run/s", "/run/t")
