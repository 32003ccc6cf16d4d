"""The team's side on the nbs files: what is watched for whom, what waits, and the regular business."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from zlib import crc32

from nbs_fleet.attention.remedies import GO_ON_TEXT
from nbs_fleet.errors import FleetError
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import PERSON, Message, MessageKind
from nbs_fleet.nbs.bus_format import Event
from nbs_fleet.plan.types import Plan
from nbs_fleet.sidecar.notices import Waiting
from nbs_fleet.supervisor.board import Board
from nbs_fleet.supervisor.calls import Calls, caller
from nbs_fleet.supervisor.clockwork import Clockwork
from nbs_fleet.supervisor.registrations import Registrations
from nbs_fleet.supervisor.story import Story


class Desk:
    """Board, registrations and clockwork of one plan.

    `tell(handle, waiting)` hears what waits for an agent; `all_idle()` says whether the team rests; `rows(handle)`
    reads an agent's screen.
    """

    def __init__(
        self,
        plan: Plan,
        watcher: Watcher,
        *,
        tell: Callable[[str, Waiting], None],
        all_idle: Callable[[], bool],
        rows: Callable[[str], Awaitable[tuple[str, ...]]],
        story: Callable[[str | None], Story],
    ) -> None:
        self._plan, self._story = plan, story
        self._calls = Calls(
            rows=rows,
            interrupt=self._interrupt,
            chat=self._first_chat,
            tell=self._tell_agent,
            began=moment().wall,
        )
        self.board = Board(watcher, tell=tell, problem=self._problem, roster=self._roster, calls=self._calls.see)
        self._registrations = Registrations(
            lambda: self._plan, watcher, assign=self.board.assign, refuse=self._refuse, tell=self._tell_agent
        )
        self._clockwork = Clockwork(watcher, all_idle, self._tell)

    def open(self, plan: Plan) -> None:
        """Work for this plan from now on."""
        self._plan = plan
        self._registrations.open()
        self._clockwork.open(plan)

    async def close(self) -> None:
        """Stop all timers and watches of its own."""
        self._registrations.close()
        self._clockwork.close()
        await self._calls.close()

    def begin(self, handle: str, *, client: int, fresh: bool, session: str) -> None:
        """A client lives, in the session with this id; `fresh`: it is not one that is merely taken over."""
        self._registrations.begin(handle, client=client, fresh=fresh, session=session)

    def end(self, handle: str, *, client: int | None) -> None:
        """It is gone."""
        self._registrations.end(handle, client=client)

    def heard(self, handle: str, text: str) -> None:
        """What an agent said at the end of a turn."""
        self._registrations.heard(handle, text)

    def go_on(self, handle: str) -> None:
        """Tell an agent for a person that what was in its way is settled."""
        self._accept(handle, GO_ON_TEXT, sender=PERSON)

    def notify(self, handle: str, text: str) -> None:
        """Tell an agent something that nobody in particular says."""
        self._accept(handle, text)

    def look(self, others: frozenset[str]) -> None:
        """The slow poll, but for agents whose turn it is not."""
        self.board.look(others)

    def _first_chat(self, handle: str) -> str | None:
        return self.board.first_chat(handle)

    def _roster(self) -> tuple[str, ...]:
        return tuple(a.agent.handle for a in self._plan.agents)

    def _problem(self, text: str) -> None:
        self._tell("file problem", text=text)

    def _tell(self, what: str, **more: object) -> None:
        self._story(None).tell(moment().wall, what, **more)

    def _tell_agent(self, handle: str, what: str, **more: object) -> None:
        self._story(handle).tell(moment().wall, what, **more)

    def _refuse(self, handle: str, text: str) -> None:
        """Tell an agent that what it asked for was refused."""
        self._accept(handle, text)

    def _interrupt(self, handle: str, event: Event) -> None:
        """Stop an agent in what it does; what was said stands in the chat."""
        text = f"{caller(event)} interrupts you. Stop what you do, read your chats, and do what is asked there first."
        # Known by its event: if that can't be acknowledged, the same message comes again, and changes nothing.
        at = event.at_us / 1e6
        message_id = new_id(MessageKind.NOTICE, at, crc32(f"{handle} {event.name}".encode()))
        self._put(Message(message_id, handle, "fleet", text, at, kind=MessageKind.NOTICE, interrupt=True))

    def _accept(self, handle: str, text: str, *, sender: str = "fleet") -> None:
        now = moment().wall
        message_id = new_id(MessageKind.NOTICE, now, int.from_bytes(os.urandom(8)))
        self._put(Message(message_id, handle, sender, text, now, kind=MessageKind.NOTICE))

    def _put(self, message: Message) -> None:
        handle = message.to
        try:
            Mailbox(self._plan.paths.agent(handle)).accept(message)
        except FleetError as error:
            self._tell_agent(handle, "notice lost", error=error.message)
