"""Carries out what delivery decided: tokens, bell, keys, archive; and finds the proof that a message arrived."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from typing import Any, Protocol, assert_never

from nbs_fleet.drivers.base import Driver, Facts, Reading
from nbs_fleet.drivers.recipes import Command, Inbox
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import given, inboxes
from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.model import AgentState, BlockedKind, Delivered, Message, MessageKind
from nbs_fleet.sidecar import delivery, wording
from nbs_fleet.sidecar.delivery import Carried, PostEvent
from nbs_fleet.sidecar.looking import until

ECHO_SECONDS = 3.0
"""How long pasted text may take to show in the input box before it is given up."""


class Keys(Protocol):
    """The pane, as far as typing needs it."""

    async def read(self) -> Reading:
        """A fresh look at the screen."""
        ...

    def unread(self) -> int:
        """Bytes that were typed and that the client has not read yet."""
        ...

    async def press(self, *keys: str) -> None:
        """Press keys by their tmux names."""
        ...

    async def write(self, text: str) -> None:
        """Put text into the input box, by bracketed paste where the client knows it; no Enter."""
        ...


class Postman:
    """The messages of one agent, on disk and on their way."""

    def __init__(
        self,
        mailbox: Mailbox,
        driver: Driver,
        keys: Keys,
        lock: asyncio.Lock,
        *,
        transcripts: Callable[[], tuple[str, ...]],
        tell: Callable[..., None],
        now: Callable[[], float],
        way_in: Callable[[], tuple[Inbox | None, Facts | None]] = lambda: (None, None),
    ) -> None:
        self.mailbox, self._driver, self._keys, self._lock = mailbox, driver, keys, lock
        self._transcripts, self._tell, self._now, self._way_in = transcripts, tell, now, way_in
        self._read_to: dict[str, int] = {}

    def open(self) -> delivery.Renewed:
        """Put the folders in order after whatever ended the sidecar before, and count."""
        for token in self.mailbox.tidy():
            self._tell("token removed", token=token, why="no message waits under this id")
        message_id, entered = self.mailbox.typed_last()
        _, facts = self._way_in()
        kept = given.kept(self.mailbox.paths, facts.session_id) if facts is not None else ()
        return delivery.Renewed(
            self.count().found,
            tuple(identity for identity in self.mailbox.orphans() if identity not in kept),
            kept,
            pasted="" if entered else message_id,
            entered=message_id if entered else "",
        )

    def count(self) -> delivery.Counted:
        """The messages as they lie on disk now."""
        return delivery.Counted(tuple((p.message, p.place) for p in self.mailbox.waiting()))

    async def perform(self, action: Carried) -> PostEvent | None:
        """Do one thing; the files' new state comes back by notification, the rest as the answer."""
        match action:
            case delivery.PutMail():
                return self._put_mail(action.id)
            case delivery.PutInbox():
                return self._put_inbox(action.id)
            case delivery.Hand():
                return await self._hand(action.id)
            case delivery.TakeBack():
                self.mailbox.take_back(action.id)
                return self.count()
            case delivery.PutBack():
                self.mailbox.put_back(action.id)
                self._tell("message put back", id=action.id, why="the client died before it used it")
                return self.count()
            case delivery.Ring():
                self.mailbox.ring()
            case delivery.Probe():
                self.mailbox.put_probe()
                self.mailbox.ring()
                return delivery.ProbeTaken() if self.mailbox.probe_taken() else None
            case delivery.Type():
                return await self._type(action)
            case delivery.Enter():
                return await self._enter(action.id)
            case delivery.Seek():
                return delivery.Sought(action.ids)
            case delivery.Finish():
                self.mailbox.finish(action.id, action.outcome, action.rung, action.proof, self._now())
                self._tell(f"message {action.outcome}", id=action.id, rung=action.rung, proof=action.proof)
                return self.count()
            case _:
                assert_never(action)
        return None

    def proofs(self, *, again: bool = False) -> tuple[str, ...]:
        """Ids that the transcripts prove, from what was added since the last call (`again`: from all of it)."""
        if again:
            self._read_to.clear()
        found: list[str] = []
        for path in self._transcripts():
            found.extend(self._driver.proofs(self._added(path)))
        return tuple(dict.fromkeys(found))

    def _added(self, path: str) -> str:
        start = self._read_to.get(path, 0)
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_size < start:
                    start = 0
                file.seek(start)
                data = file.read()
        except OSError:
            return ""
        whole, newline, _ = data.rpartition(b"\n")
        self._read_to[path] = start + len(whole) + len(newline)
        return whole.decode("utf-8", "replace")

    def _message(self, message_id: str) -> Message | None:
        found = self.mailbox.find(message_id)
        return None if found is None or isinstance(found, Delivered) else found.message

    def _put_mail(self, message_id: str) -> PostEvent:
        message = self._message(message_id)
        if message is not None:
            text, broken = wording.for_mail(message.spoken())
            if self.mailbox.put_mail(message, text):
                self.mailbox.ring()
                self._told(message, "message mailed", tags_broken=broken)
        return self.count()

    def _put_inbox(self, message_id: str) -> PostEvent:
        message = self._message(message_id)
        if message is not None and self.mailbox.put_inbox(message, message.spoken()):
            self._told(message, "message put out for a hook")
        return self.count()

    async def _hand(self, message_id: str) -> delivery.Handed:
        """Claim it first: whoever dies over it, it is then neither given twice nor lost, but shown to a person."""
        message, (inbox, facts) = self._message(message_id), self._way_in()
        if message is None or inbox is None or facts is None:
            return delivery.Handed(message_id, "the client's own inbox can't be reached")
        if not self.mailbox.claim(message, message.spoken()):
            return delivery.Handed(message_id)
        if isinstance(inbox, Command) and inbox.keeps:
            given.note(self.mailbox.paths, message.id, inbox.keeps)
        problem = await inboxes.hand(inbox, message.spoken(), env=facts.env, folder=facts.real_dir)
        if problem:
            self.mailbox.put_back(message_id)
            self._tell("message refused by the client's inbox", id=message_id, why=problem)
        else:
            self._told(message, "message given to the client's inbox")
        return delivery.Handed(message_id, problem)

    def _told(self, message: Message, what: str, **more: Any) -> None:
        text = wording.summary(message.text)
        self._tell(what, id=message.id, sender=message.sender, text=text, removed=message.remarks, **more)

    async def _type(self, action: delivery.Type) -> delivery.Typed:
        """The key transaction: look, refuse or put aside what is in the way, paste, see it, Enter."""
        message = self._message(action.id)
        if message is None:
            return delivery.Typed(action.id, "gone")
        async with self._lock:
            try:
                result = await self._transaction(message, action)
            except FleetError as error:
                result = "copy mode" if "copy mode" in error.message else error.message
        if result in ("sent", "taken"):
            self._told(message, "message typed", changed=self._typed_text(message)[1])
        return delivery.Typed(action.id, result, pasted=self.mailbox.typed_last()[0] == action.id)

    def _typed_text(self, message: Message) -> tuple[str, tuple[str, ...]]:
        """What this client is given, and remarks on what was changed for it."""
        if self._driver.capabilities.paste:
            return wording.for_keys(message.spoken())
        if self._driver.submit.ascii:
            line, remarks = wording.plain_line(message.spoken())
        else:
            line, remarks = wording.one_line(message.spoken()), ()
        typed, more = wording.for_keys(line)
        return typed, (*remarks, *more)

    async def _transaction(self, message: Message, action: delivery.Type) -> str:
        """Returns what `Typed` tells of it."""
        # What a hung client was sent it will read all at once: more of it would be a second copy.
        if not await until(self._has_read, ECHO_SECONDS):
            return delivery.FROZEN
        reading = await self._keys.read()
        if await self._is_there(message, reading):
            await self._submit(message)
            return "sent"
        refused = _refusal(reading, interrupt=action.interrupt)
        if refused == "draft" and action.stash:
            await self._keys.press("C-s")
            if not await self._sees(lambda r: not r.draft):
                return "draft"
        elif refused:
            return refused
        typed, _ = self._typed_text(message)
        self.mailbox.note_typing(message.id)
        await self._keys.write(typed)
        if self._driver.submit.echo and not await self._sees(lambda r: self._is_ours(message, r.draft)):
            return delivery.HIDDEN
        # A client may take an Enter right after the text for a part of it.
        await asyncio.sleep(self._driver.submit.gap)
        await self._submit(message)
        if action.interrupt:
            await self._keys.press("Escape")
        if await self._empties(message):
            return "taken"
        return "sent"

    async def _empties(self, message: Message) -> bool:
        """Whether the client took a text that only the screen can tell of.

        A command carries no id that could come back; some clients have neither files nor hooks that could bring one.
        """
        if message.kind is MessageKind.COMMAND:
            return await self._sees(lambda r: not r.draft)
        # It was idle when the text was put in: a question that stands there now is what came of it.
        shown = (AgentState.IDLE, AgentState.BUSY, AgentState.BLOCKED)
        return self._driver.submit.emptied and await self._sees(lambda r: not r.draft and r.state in shown)

    async def _submit(self, message: Message) -> None:
        await self._keys.press("Enter")
        self.mailbox.note_typing(message.id, entered=True)

    async def _is_there(self, message: Message, reading: Reading) -> bool:
        """Whether our text stands in the input box, from an earlier try or a supervisor that died over it."""
        if self._is_ours(message, reading.draft):
            return True
        if self.mailbox.typed_last()[0] != message.id or reading.draft or _refusal(reading, interrupt=True):
            return False
        # It has been read by the client, and may be about to show.
        return await self._sees(lambda r: self._is_ours(message, r.draft))

    def _is_ours(self, message: Message, draft: str | None) -> bool:
        """Whether a draft is this message and nothing else.

        A client shows a long paste as a placeholder: it is ours only if we pasted last.
        """
        if not draft:
            return False
        if message.kind is MessageKind.COMMAND:
            return draft.strip() == message.text.strip()
        pattern = self._driver.submit.placeholder
        placeholder = pattern is not None and re.fullmatch(pattern, draft.strip()) is not None
        return draft.startswith(f"[nbs:{message.id}]") or (placeholder and self.mailbox.typed_last()[0] == message.id)

    async def _enter(self, message_id: str) -> PostEvent | None:
        """One more Enter, only if our own text is still in the box."""
        message = self._message(message_id)
        if message is None:
            return None
        async with self._lock:
            try:
                reading = await self._keys.read()
                if reading.blocked is BlockedKind.DRAFT and self._is_ours(message, reading.draft):
                    await self._keys.press("Enter")
                elif (
                    (message.kind is MessageKind.COMMAND or self._driver.submit.emptied)
                    and reading.state is AgentState.IDLE
                    and not reading.draft
                ):
                    return delivery.Typed(message_id, "taken")
            except FleetError as error:
                self._tell("key refused", id=message_id, error=error.message)
        return None

    async def _has_read(self) -> bool:
        return self._keys.unread() == 0

    async def _sees(self, holds: Callable[[Reading], bool]) -> bool:
        """Look until `holds`, ECHO_SECONDS at most."""

        async def look() -> bool:
            return holds(await self._keys.read())

        return await until(look, ECHO_SECONDS)


def _refusal(reading: Reading, *, interrupt: bool) -> str:
    """Why nothing may be typed now; empty if it may."""
    if reading.state is AgentState.BLOCKED and reading.blocked is BlockedKind.DRAFT:
        return "draft"
    if reading.state is AgentState.BLOCKED:
        return "dialog"
    if reading.draft:
        return "draft"
    if reading.state is AgentState.IDLE or (interrupt and reading.state is AgentState.BUSY):
        return ""
    return "busy"
