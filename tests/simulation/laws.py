"""What must hold at every step of a simulated team's life, and what must be so once it is left in peace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nbs_fleet.attention.queue import Queue
from nbs_fleet.model import AgentState, MessageKind, Moment, Outcome
from nbs_fleet.plan.types import Desired
from nbs_fleet.sidecar import actions as seen
from nbs_fleet.sidecar import delivery
from nbs_fleet.sidecar.mind import Mind
from nbs_fleet.sidecar.states import allowed
from nbs_fleet.supervisor import fleet as of

if TYPE_CHECKING:
    from tests.simulation.client import Client
    from tests.simulation.station import Station
    from tests.simulation.world import World

GLANCE = 0.3
"""Seconds between a look at a pane and a key in it: what a person or the client begins in them nobody can see."""
BUSY_LOOP = 400
"""Decisions of one sidecar in one second of its time; a burst of events is some dozens."""
SETTLED = 60.0


class BrokenLawError(AssertionError):
    """Something happened that never may; the text says what, to whom and when."""


class Laws:
    """Watches a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.counts: Counter[str] = Counter()
        self.delivered: dict[str, str] = {}
        self.uses: Counter[str] = Counter()
        self._pace: dict[str, tuple[float, int]] = {}
        self._starts: dict[str, list[tuple[float, bool]]] = {}

    def count(self, what: str) -> None:
        """Something worth counting happened."""
        self.counts[what] += 1

    def broken(self, what: str) -> BrokenLawError:
        """The error that says so."""
        return BrokenLawError(f"at {self.world.line.t:.3f} s: {what}")

    # messages

    def used(self, handle: str, message_id: str) -> None:
        """A client used a message, for good."""
        if not message_id or message_id not in self.world.accepted:
            raise self.broken(f"{handle} used {message_id!r}, which nobody sent")
        self.uses[message_id] += 1
        command = self.world.accepted[message_id].kind is MessageKind.COMMAND
        if self.uses[message_id] > 1 and not command:
            raise self.broken(f"{handle} got {message_id} {self.uses[message_id]} times")

    def finished(self, station: Station, action: delivery.Finish) -> None:
        """A message is put into the archive."""
        if action.id in self.delivered:
            raise self.broken(f"{station.handle}: {action.id} ends twice")
        self.delivered[action.id] = str(action.outcome)
        command = self.world.accepted[action.id].kind is MessageKind.COMMAND
        told = action.proof.startswith("hook")
        if action.outcome is Outcome.DELIVERED and not self.uses[action.id] and not command and not told:
            raise self.broken(f"{station.handle}: {action.id} is called delivered and was not used ({action.proof})")
        self.count(f"delivered by {action.rung}")

    def put_back(self, station: Station, message_id: str) -> None:
        """A claimed message goes back to the queue."""
        if message_id in station.client.claimed:
            raise self.broken(f"{station.handle}: {message_id} is put back although its client is about to use it")

    def pasted(self, client: Client, message_id: str) -> None:
        """Our text arrives in an input box."""
        t = self.world.line.t
        if client.dialog is not None and t > client.dialog_since + GLANCE:
            raise self.broken(f"{client.handle}: {message_id} is typed into a dialog")
        if client.draft and t > client.draft_since + GLANCE:
            raise self.broken(f"{client.handle}: {message_id} is typed behind {client.draft!r}")
        self.count("typed")

    def entered(self, client: Client) -> None:
        """Our Enter arrives."""
        t = self.world.line.t
        if client.dialog is not None and t > client.dialog_since + GLANCE:
            raise self.broken(f"{client.handle}: Enter is pressed in a dialog")

    def noticed(self, station: Station) -> None:
        """A notice is made: only for an agent that has nothing of ours under way."""
        self.count("noticed")
        waiting = [
            x for x in self.world.disk.folders[station.handle].letters.values() if x.message.kind is MessageKind.NOTICE
        ]
        if len(waiting) > 1:
            raise self.broken(f"{station.handle}: {len(waiting)} notices wait at once")

    # decisions

    def decided(
        self, station: Station, before: Mind, event: seen.Event, actions: Sequence[seen.Action], now: Moment
    ) -> None:
        """A sidecar decided."""
        mind = station.mind
        if mind.wake_at is not None and mind.wake_at <= now.mono:
            raise self.broken(f"{station.handle} wants to wake in the past")
        second, number = self._pace.get(station.handle, (0.0, 0))
        number = number + 1 if self.world.line.t < second + 1.0 else 1
        self._pace[station.handle] = (second if number > 1 else self.world.line.t, number)
        if number > BUSY_LOOP:
            raise self.broken(f"{station.handle} decides {number} times in a second, now on {event}")
        if sum(isinstance(action, seen.Look) for action in actions) > 1:
            raise self.broken(f"{station.handle} looks twice at once")
        if len(mind.answered) > 20 or len(mind.noticed.told_events) > 200:
            raise self.broken(f"{station.handle} remembers more and more")
        typing = [p for p in mind.post.parcels if p.typing]
        if len(typing) > 1:
            raise self.broken(f"{station.handle} types {len(typing)} messages at once")
        if mind.paused and before.paused and any(isinstance(a, delivery.Type | delivery.PutMail) for a in actions):
            raise self.broken(f"{station.handle} is paused and is given something")

    def ruled(
        self, before: of.Fleet, after: of.Fleet, event: of.Event, actions: Sequence[of.Action], now: Moment
    ) -> None:
        """The supervisor decided."""
        if after.wake_at is not None and after.wake_at <= now.mono:
            raise self.broken("the supervisor wants to wake in the past")
        for handle, life in after.lives.items():
            old = before.lives.get(handle)
            if old is None or old.record is life.record or isinstance(event, of.Found):
                continue
            was, now_is = old.record.state, life.record.state
            if not allowed(was, now_is) and not self._resets(event):
                raise self.broken(f"{handle} goes from {was} to {now_is} on {type(event).__name__}")
            if now_is is AgentState.BACKOFF and life.due is None:
                raise self.broken(f"{handle} backs off for ever")
            if len(life.record.starts) > 50 or len(life.record.sessions) > 20:
                raise self.broken(f"{handle}'s record grows and grows")
        for action in actions:
            if isinstance(action, of.Start):
                self._begins(after, action, now)

    def _resets(self, event: of.Event) -> bool:
        """Whether a person's wish may turn any state into any other."""
        return isinstance(event, of.Asked | of.Loaded | of.LaunchedAll | of.Launched | of.Ended)

    def _begins(self, fleet: of.Fleet, action: of.Start, now: Moment) -> None:
        for one in action.starts:
            life = fleet.lives[one.handle]
            client = self.world.panes.get(one.handle)
            if client is not None and client.alive:
                raise self.broken(f"{one.handle} is started although it runs")
            policy = life.plan.agent.restart if life.plan else None
            if (
                policy is not None
                and len([at for at in life.record.starts if at > now.mono - policy.within]) > policy.max
            ):
                raise self.broken(f"{one.handle} is started more often than its policy allows")
            self.count("started")

    def queued(self, queue: Queue) -> None:
        """The attention queue changed."""
        keys = [(item.handle, item.need.kind) for item in queue.items]
        if len(set(keys)) != len(keys):
            raise self.broken(f"two items for one reason: {keys}")
        if list(queue.items) != sorted(queue.items, key=lambda i: (i.place, int(i.id[1:]))):
            raise self.broken("the queue is out of order")
        if len(queue.past) > 100:
            raise self.broken("the queue remembers more and more")
        self.count("queue changed")

    # peace

    def peace(self) -> None:
        """After a while without faults, with persons who answer: all is right, nothing is lost."""
        world = self.world
        if not world.boss.alive:
            raise self.broken("no supervisor in peace")
        for handle, folder in world.disk.folders.items():
            life, client = world.boss.fleet.lives[handle], world.panes.get(handle)
            if handle not in world.boss.stations and life.alive:
                raise self.broken(f"nobody watches {handle}")
            where = f"{handle} ({life.record.state}, {life.record.detail!r}, {life.record.attention!r})"
            if life.record.desired is Desired.STOPPED:
                if client is not None and client.alive:
                    raise self.broken(f"{where} is stopped and runs")
                continue
            if client is None or not client.alive:
                raise self.broken(f"{where} is not up in peace")
            if client.state is not AgentState.IDLE:
                raise self.broken(f"{where}: its client is {client.state} since {world.line.t - client.since:.0f} s")
            if life.record.state is not AgentState.IDLE:
                raise self.broken(f"{where} is not seen to be idle since {world.line.t - client.since:.0f} s")
            if life.record.failure is not None:
                raise self.broken(f"{where}: nobody does anything about its failure: {life.record.failure}")
            left = [f"{i} in {x.place}" for i, x in folder.letters.items()]
            if left:
                raise self.broken(f"{where}: messages still wait: {left}; {world.boss.stations[handle].mind.post}")
        lost = [i for i in world.accepted if i not in self.delivered and i not in self._of_stopped()]
        if lost:
            raise self.broken(f"lost: {lost}")
        if world.disk.queue.items:
            raise self.broken(f"ghosts in the queue: {world.disk.queue.items}")
        never = [
            i
            for i, m in world.accepted.items()
            if m.kind is not MessageKind.COMMAND and not self.uses[i] and self.delivered.get(i) == Outcome.DELIVERED
        ]
        if never:
            raise self.broken(f"delivered, they say, and never used: {never}")
        self.count("peace")
        self.forget()

    def _of_stopped(self) -> set[str]:
        return {
            i
            for handle in self.world.disk.folders
            for i in self.world.disk.folders[handle].letters
            if self.world.boss.resting(handle)
        }

    def forget(self) -> None:
        """What ended long ago is not looked at again."""
        kept = {i for folder in self.world.disk.folders.values() for i in folder.letters}
        self.world.accepted = {i: m for i, m in self.world.accepted.items() if i in kept}
        self.delivered = {i: o for i, o in self.delivered.items() if i in kept}
        self.uses = Counter({i: n for i, n in self.uses.items() if i in kept})
        for folder in self.world.disk.folders.values():
            folder.archive.clear()
            for file in folder.transcripts.values():
                file.ids = {i: n for i, n in file.ids.items() if i in kept}
