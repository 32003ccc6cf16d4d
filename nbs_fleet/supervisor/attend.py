"""The supervisor's side of the attention queue: keeps it true to the fleet, and carries out what a person answers."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from nbs_fleet import jsontext
from nbs_fleet.attention import needs, remedies
from nbs_fleet.attention.budget import KIND, TEAM
from nbs_fleet.attention.keeper import Keeper
from nbs_fleet.attention.notifications import ALARM
from nbs_fleet.attention.queue import Item, Need, Queue, Seen, skip, snooze
from nbs_fleet.errors import FleetError
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.processes import identify, moment
from nbs_fleet.model import AgentState
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import Desired
from nbs_fleet.sidecar.answering import Wish
from nbs_fleet.supervisor.fleet import Event, Fleet, LaunchedAll, Life, Reported
from nbs_fleet.supervisor.protocol import Answer, Request
from nbs_fleet.supervisor.rendering import File
from nbs_fleet.supervisor.story import Story

FOREVER = 1e11
"""A wall second that nobody here will see: what a person let pass is not shown again."""


class Known(NamedTuple):
    """What an agent needs, and of what that was found: most of a fleet is as it was at the event before."""

    life: Life
    heard: bool
    budget: Need | None
    seen: Seen


class Attention:
    """The queue while this supervisor runs.

    `answer(handle, wish)` answers an agent's dialog and says why not; `act(handle, deed)` does what a person chose
    where no dialog is open; `notify(items)` may call people elsewhere. Besides the queue itself a file `waiting`
    (`PID START NUMBER`) is kept for the status line.
    """

    def __init__(
        self,
        paths: RunPaths,
        *,
        answer: Callable[[str, Wish], Awaitable[str]],
        act: Callable[[str, remedies.Deed], None],
        publish: Callable[[Answer], None],
        notify: Callable[[tuple[Item, ...]], None],
        budgets: Callable[[Fleet, float], Mapping[str, Need]],
        story: Callable[[str | None], Story],
    ) -> None:
        self._keeper = Keeper(paths.attention)
        self._waiting, self._answer, self._act = paths.waiting, answer, act
        self._publish, self._notify, self._budgets, self._story = publish, notify, budgets, story
        self._heard: set[str] = set()
        """Agents whose sidecar has spoken since this supervisor began."""
        self._known: dict[str, Known] = {}
        self._counted: int | None = None
        self._failed = False

    @property
    def waits(self) -> bool:
        """Whether time alone may change something, or what could not be written is to be tried again."""
        return self._failed or bool(self.queue.items)

    @property
    def queue(self) -> Queue:
        """The queue as it is on disk."""
        return self._keeper.queue

    def look(self, fleet: Fleet, event: Event | None = None) -> None:
        """Make the queue fit the fleet. Until an agent's sidecar has spoken, nothing of it is closed."""
        if fleet.plan is None:
            return
        if isinstance(event, Reported):
            self._heard.add(event.handle)
        if isinstance(event, LaunchedAll):
            self._heard.update(result.handle for result in event.results)
        now = moment().wall
        self._failed = False
        try:
            budgets = self._budgets(fleet, now)
        except FleetError as error:
            self._failed = True
            self._story(None).tell(now, "budget not written", error=error.message)
            budgets = {}
        seen: dict[str, Seen] = {TEAM: Seen((budgets[TEAM],) if TEAM in budgets else ())}
        for handle, life in fleet.lives.items():
            if life.plan is not None:
                seen[handle] = self._seen(handle, life, budgets.get(handle), now)
        if len(self._known) > len(fleet.lives):
            self._known = {handle: known for handle, known in self._known.items() if handle in fleet.lives}
        before = self.queue
        try:
            changed = self._keeper.look(seen)
        except FleetError as error:
            self._failed = True
            self._story(None).tell(now, "attention queue not written", error=error.message)
            return
        if changed:
            self._tell(before)
        self._notify((*self.queue.items, *_alarms(fleet, now)))
        self._count(now)

    def _seen(self, handle: str, life: Life, budget: Need | None, now: float) -> Seen:
        """What one agent needs; what was found the last time where nothing of it has changed since."""
        heard = handle in self._heard
        known = self._known.get(handle)
        if known is not None and known.life is life and known.heard == heard and known.budget == budget:
            return known.seen
        one = needs.seen(life.record, now)
        more = (budget,) if budget is not None and life.record.desired is not Desired.STOPPED else ()
        found = Seen((*one.needs, *more), None if life.alive and not heard else one.keeps)
        # What is blocked needs a person once some time has passed.
        if life.record.state is AgentState.BLOCKED:
            self._known.pop(handle, None)
        else:
            self._known[handle] = Known(life, heard, budget, found)
        return found

    async def ask(self, request: Request) -> Answer:
        """Carry out `answer`, `skip` or `snooze`."""
        item = self.queue.find(request.item)
        if item is None:
            return Answer(ok=False, error=self._gone(request.item))
        now = moment().wall
        if request.do == "answer":
            return await self._carry_out(item, request)
        self._keeper.change(
            skip(self.queue, item.id, now) if request.do == "skip" else snooze(self.queue, item.id, request.until)
        )
        self._publish(Answer(queue=self.queue))
        self._count(now)
        return Answer(queue=self.queue)

    def close(self) -> None:
        """Nobody counts any more."""
        if os.path.exists(self._waiting):
            os.unlink(self._waiting)

    async def _carry_out(self, item: Item, request: Request) -> Answer:
        need = item.need
        remedy = remedies.find(need.kind, request.choice)
        if remedy is not None:
            why = f'"{remedy.deed}" takes a text: -m TEXT' if remedy.needs_text and not request.text.strip() else ""
            if not why and need.kind == KIND and remedy.deed is remedies.Deed.GO_ON:
                self._keeper.change(snooze(self.queue, item.id, FOREVER))
            if not why:
                self._act(item.handle, remedy.deed)
        elif need.mark:
            why = await self._answer(item.handle, Wish(need.mark, request.choice, request.text))
        else:
            offered = ", ".join(key for key, _ in need.options)
            why = f'"{request.choice}" is no answer to {need.kind}' + (f"; there are {offered}" if offered else "")
        self._story(item.handle).tell(
            moment().wall,
            "answered by a person",
            item=item.id,
            dialog=need.kind,
            choice=request.choice,
            why_not=why,
        )
        return Answer(ok=not why, error=f"{item.id} ({item.handle}): {why}" if why else None)

    def _gone(self, item_id: str) -> str:
        later = self.queue.later(item_id)
        if later is None:
            return f"there is no item {item_id}"
        if not later:
            return f"{item_id} is closed: the agent moved on; nothing was pressed"
        return f"{item_id} was replaced by {later}, which asks for something else; nothing was pressed"

    def _tell(self, before: Queue) -> None:
        """The followers and the stories hear of what opened and what closed."""
        old = {item.id: item for item in before.items}
        new = {item.id: item for item in self.queue.items}
        now = moment().wall
        for item in new.values():
            if item.id not in old:
                self._story(item.handle).tell(now, "needs a person", item=item.id, reason=item.need.kind)
        for item in old.values():
            if item.id not in new:
                self._story(item.handle).tell(now, "needs nobody any more", item=item.id, reason=item.need.kind)
        self._publish(Answer(queue=self.queue))

    def files(self) -> dict[str, File]:
        """What the files of the queue hold, by path, as far as they were written."""
        queue = {self._keeper.path: File(jsontext.encode(self.queue))} if self.queue != Queue() else {}
        return {**queue, **({} if self._counted is None else {self._waiting: File(self._number(self._counted))})}

    def _count(self, now: float) -> None:
        number = len(self.queue.visible(now))
        if number == self._counted:
            return
        try:
            write_atomic(self._waiting, self._number(number))
        except FleetError as error:
            # The status line is not worth the supervisor: a full disk, say. The next look tries again.
            self._failed = True
            self._story(None).tell(now, "number for the status line not written", error=error.message)
        else:
            self._counted = number

    def _number(self, number: int) -> bytes:
        me = identify(os.getpid())
        return f"{me.pid} {me.start} {number}\n".encode() if me is not None else b""


def _alarms(fleet: Fleet, now: float) -> tuple[Item, ...]:
    """What concerns the whole team, as if it were an item: people are called for it, nobody can answer it."""
    if not fleet.alarm:
        return ()
    return (Item(f"alarm: {fleet.alarm}", "", Need(ALARM, now, fleet.alarm), now, now),)
