"""A simulated sidecar: the real deciding code, its effects in steps that a crash may cut off anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, assert_never

from nbs_fleet.errors import FleetError
from nbs_fleet.model import AgentState, BlockedKind, Message, MessageKind, Priority
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.sidecar import actions as seen
from nbs_fleet.sidecar import decide as deciding
from nbs_fleet.sidecar import delivery, recovery
from nbs_fleet.sidecar.actions import Action, Event
from nbs_fleet.sidecar.mind import Watching, first_mind
from nbs_fleet.sidecar.notices import Notify
from tests.simulation.client import PERSON, Client

if TYPE_CHECKING:
    from tests.simulation.world import World

ECHO = 3.0
"""The real postman's patience with a client that does not show what was typed."""


class Station:
    """What one sidecar knows and has in hand; it is gone with its supervisor, or when its client is."""

    def __init__(self, world: World, client: Client, record: AgentRecord, watching: Watching, *, adopted: bool) -> None:
        self.world, self.client, self.handle = world, client, client.handle
        self.alive = True
        self.missed = False
        """A notification was lost: only the slow poll finds it."""
        self.mind = first_mind(watching, record, adopted=adopted)
        self._folder = world.disk.folders[self.handle]
        self._wake_at: float | None = None
        self._wakes = 0
        self._locked = False
        self._heeds = False
        self._read: dict[str, dict[str, int]] = {}
        self._begins()

    def _begins(self) -> None:
        """The real sidecar's first look, in its order."""
        self._state()
        self._pause()
        self._signal()
        folder = self._folder
        orphans = tuple(i for i, x in folder.letters.items() if x.place == "claimed" and x.taker != self.client.proc)
        pasted = "" if folder.entered else folder.typed
        entered = folder.typed if folder.entered else ""
        self.post(delivery.Renewed(self._counted().found, orphans, pasted=pasted, entered=entered))
        self._spool()
        self.post(seen.WaitingSeen(self.world.waiting(self.handle)))
        self.post(seen.Ticked(poll=True))

    def post(self, event: Event) -> None:
        """Decide on one event, and begin what follows."""
        if not self.alive:
            return
        now = self.world.line.now()
        before = self.mind
        self.mind, actions = deciding.decide(before, event, now)
        self.world.laws.decided(self, before, event, actions, now)
        for action in actions:
            self._perform(action)
        self._arm(now.mono)

    def _arm(self, mono: float) -> None:
        at = self.mind.wake_at
        if at == self._wake_at:
            return
        self._wake_at = at
        self._wakes += 1
        if at is not None:
            self.world.line.after(max(0.0, at - mono), self._tick, self._wakes)

    def _tick(self, number: int) -> None:
        if self.alive and number == self._wakes:
            self._wake_at = None
            self.post(seen.Ticked())

    def end(self) -> None:
        """Nobody watches any more; what is in hand stays as it is."""
        self.alive = False

    # what it is told of

    def notice(self, what: str) -> None:
        """Something changed: read it as the real one does."""
        if not self.alive:
            return
        match what:
            case "state":
                self._state()
            case "spool":
                self._spool()
            case "mail":
                self._mail()
            case "transcript":
                self._transcript()
            case "flicker":
                if self._heeds:
                    self.post(seen.Flickered())
            case "signal":
                self._signal()
            case "pause":
                self._pause()
            case "waiting":
                waiting = self.world.waiting(self.handle)
                if waiting != self.mind.waiting:
                    self.post(seen.WaitingSeen(waiting))

    def poll(self) -> None:
        """The slow poll."""
        if not self.alive:
            return
        self.missed = False
        if (self.client.wrote if self.client.alive else None) != self.mind.file:
            self._state()
        self._spool()
        self._mail()
        self.notice("waiting")
        self.post(seen.Ticked(poll=True))

    def _state(self) -> None:
        if self.client.rich:
            self.post(seen.StateFileSeen(self.client.wrote if self.client.alive else None))

    def _spool(self) -> None:
        spool, self._folder.spool = self._folder.spool, []
        for hook in spool:
            self.post(hook)

    def _counted(self) -> delivery.Counted:
        return delivery.Counted(tuple((x.message, x.place) for x in self._folder.letters.values()))

    def _mail(self) -> None:
        if self.mind.post.probed_at is not None and self.mind.post.armed is not True and not self._folder.probe:
            self.post(delivery.ProbeTaken())
        self.post(self._counted())

    def _transcript(self) -> None:
        if self.mind.post.parcels:
            self._proofs(again=False)
        if not self.mind.acknowledged:
            self.post(self._turns())

    def _turns(self) -> seen.TranscriptSeen:
        file = self._folder.transcript(self.client.session)
        return seen.TranscriptSeen(self.world.turns(file), file.size)

    def _proofs(self, *, again: bool) -> None:
        if again:
            self._read.clear()
        for session, file in self._folder.transcripts.items():
            known = self._read.setdefault(session, {})
            for message_id in [i for i in file.ids if i not in known]:
                known[message_id] = 1
                self.post(delivery.Proved(message_id, "transcript"))

    def _signal(self) -> None:
        kind, text = self._folder.signal
        if kind != self.mind.signal:
            self.post(seen.Signalled(kind, text))

    def _pause(self) -> None:
        if self._folder.paused != self.mind.paused:
            self.post(seen.Paused(self._folder.paused))

    # what it does

    def soon(self, delay: float, work: Callable[..., None], *args: Any) -> None:
        """A step of an effect: it is not done if this sidecar is gone by then."""
        self.world.line.after(delay, self._step, work, args)

    def _step(self, work: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.world.doom_draws_near()
        if not self.alive:
            self.world.laws.count("effect cut off")
            return
        try:
            work(*args)
        except FleetError as error:
            self.world.laws.count("effect failed")
            self.missed = True
            self.post(seen.Faulted(error.message))

    def _perform(self, action: Action) -> None:
        chance = self.world.chance
        match action:
            case seen.Look():
                self.soon(chance(0.005, 0.1), self._look)
            case seen.ReadTranscript():
                self.soon(chance(0.001, 0.02), lambda: self.post(self._turns()))
            case seen.Press():
                self.soon(chance(0.01, 0.1), self._press, action)
            case seen.Heed():
                self._heeds = action.on
                # tmux says first how it is.
                self.soon(chance(0.01, 1.1), self.notice, "flicker")
            case seen.Report():
                self.soon(0.0, self.world.boss.reported, self, action)
            case recovery.Restart():
                self.soon(0.0, self.world.boss.wants_restart, self, action)
            case recovery.Nudge():
                self.soon(0.002, self._accept, MessageKind.NUDGE, Priority.NORMAL)
            case Notify():
                self.soon(0.002, self._notify, action)
            case recovery.Escalate() | recovery.Settle():
                pass
            case delivery.Rehook():
                self._folder.hand_over = True
            case delivery.Type():
                self.soon(chance(0.002, 0.05), self._type, action, self.world.line.t)
            case delivery.Enter():
                self.soon(chance(0.002, 0.05), self._enter, action.id)
            case _:
                self.soon(chance(0.001, 0.02), self._carry, action)

    def _look(self) -> None:
        if self.world.odds(0.001):
            raise FleetError("the pane can't be captured now")
        reading = self.client.screen()
        answer = None
        if reading.dialog is not None and reading.dialog.kind is BlockedKind.TRUST and self.world.trusts[self.handle]:
            answer = ("1",)
        # What is on the screen meanwhile is seen by another look only.
        self.soon(self.world.chance(0.001, 0.05), self.post, seen.ScreenSeen(reading, answer))

    def _press(self, action: seen.Press) -> None:
        if self._locked:
            self.soon(0.05, self._press, action)
            return
        dialog = self.client.screen().dialog
        if dialog is None or dialog.text != action.dialog:
            self.post(seen.Pressed(ok=False, why="the dialog changed before it could be answered"))
            return
        self.client.choose(dialog.mark)
        self.soon(self.world.chance(0.02, 0.3), self.post, seen.Pressed(ok=True))

    def answer(self, mark: str) -> str:
        """A person answers the dialog with this mark; why not, or nothing."""
        if not self.alive:
            return "nobody watches"
        done = self.client.choose(mark)
        self.post(seen.Pressed(ok=done))
        return "" if done else "the dialog changed"

    def _notify(self, action: Notify) -> None:
        self.world.laws.noticed(self)
        self._accept(MessageKind.NOTICE, action.priority)
        self.post(self._counted())

    def _accept(self, kind: MessageKind, priority: Priority) -> None:
        self.world.disk.write()
        self.world.accept(self.handle, kind, priority=priority)

    def _carry(self, action: delivery.PostAction) -> None:
        """The postman's work on the files; each step is one rename."""
        letters = self._folder.letters
        match action:
            case delivery.PutMail(id=i):
                self.world.disk.write()
                if i in letters and letters[i].place == "queue":
                    letters[i].place = "mail"
                    self.soon(0.001, self.client.mailed)
                    # The client watches the folder too, and finds it later without the bell.
                    self.world.line.after(0.7, self.client.mailed)
            case delivery.PutInbox(id=i):
                self.world.disk.write()
                if i in letters and letters[i].place == "queue":
                    letters[i].place = "inbox"
            case delivery.TakeBack(id=i):
                if i in letters and letters[i].place in ("mail", "inbox"):
                    letters[i].place = "queue"
            case delivery.PutBack(id=i):
                if i in letters and letters[i].place == "claimed":
                    self.world.laws.put_back(self, i)
                    letters[i].place, letters[i].taker = "queue", None
            case delivery.Ring():
                self.client.mailed()
                return
            case delivery.Probe():
                self.world.disk.write()
                self._folder.probe = True
                self.client.mailed()
                return
            case delivery.Seek(ids=ids):
                self._proofs(again=True)
                self.post(delivery.Sought(ids))
                return
            case delivery.Finish(id=i):
                self.world.disk.write()
                if i in letters:
                    self.world.laws.finished(self, action)
                    del letters[i]
                    self._folder.archive[i] = str(action.outcome)
            case delivery.Hand() | delivery.Type() | delivery.Enter() | delivery.Rehook():
                raise AssertionError(f"not by files: {action}")
            case _:
                assert_never(action)
        self.post(self._counted())

    # the key transaction

    def _refused(self, *, interrupt: bool) -> str:
        reading = self.client.screen()
        if reading.draft:
            return "draft"
        if reading.state is AgentState.BLOCKED:
            return "dialog"
        if reading.state is AgentState.IDLE or (interrupt and reading.state is AgentState.BUSY):
            return ""
        return "busy"

    def _type(self, action: delivery.Type, begun: float) -> None:
        if self._locked:
            self.soon(0.05, self._type, action, begun)
            return
        letter = self._folder.letters.get(action.id)
        if letter is None:
            self._typed(action.id, "gone")
            return
        if self.client.unread_keys:
            if self.world.line.t < begun + ECHO:
                self.soon(0.2, self._type, action, begun)
            else:
                self._typed(action.id, delivery.FROZEN)
            return
        if self.client.draft == action.id and self.client.dialog is None:
            self._submit(action)
            return
        if self.world.copy_mode[self.handle]:
            self._typed(action.id, "copy mode")
            return
        refused = self._refused(interrupt=action.interrupt)
        if refused:
            self._typed(action.id, refused)
            return
        try:
            self.world.disk.write()
        except FleetError as error:
            self._typed(action.id, error.message)
            return
        self._locked = True
        self._folder.typed, self._folder.entered = action.id, False
        self.soon(0.002, self._paste, action)

    def _paste(self, action: delivery.Type) -> None:
        self.client.paste(action.id)
        self.soon(0.1, self._echo, action, self.world.line.t)

    def _echo(self, action: delivery.Type, begun: float) -> None:
        if self.client.draft == action.id and not self.client.frozen and self.client.dialog is None:
            self.soon(0.15, self._submit, action)
        elif self.world.line.t < begun + ECHO:
            self.soon(0.2, self._echo, action, begun)
        else:
            self._typed(action.id, delivery.HIDDEN)

    def _submit(self, action: delivery.Type) -> None:
        self.client.enter()
        self._folder.typed, self._folder.entered = action.id, True
        if action.interrupt:
            self.soon(0.05, self.client.escape)
        self.soon(0.02, self._typed, action.id, "sent")

    def _typed(self, message_id: str, result: str) -> None:
        self._locked = False
        self.post(delivery.Typed(message_id, result, pasted=self._folder.typed == message_id))

    def _enter(self, message_id: str) -> None:
        if not self._locked and self.client.draft == message_id and self.client.dialog is None:
            self.client.enter()

    def draft_is_a_persons(self) -> bool:
        """Whether somebody types in the pane."""
        return self.client.draft.startswith(PERSON)

    def message(self, message_id: str) -> Message | None:
        """The message of this id, if it waits."""
        letter = self._folder.letters.get(message_id)
        return letter.message if letter else None
