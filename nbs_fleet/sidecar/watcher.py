"""The sidecar of one agent: its sources are read here, its decisions performed; nothing is decided here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import assert_never

import msgspec

from nbs_fleet.drivers.base import Driver, Facts, Reading, Turns
from nbs_fleet.drivers.recipes import Inbox
from nbs_fleet.errors import FleetError, TmuxError
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.terminals import unread
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.loop import Loop
from nbs_fleet.model import AgentState, BlockedKind, Message, MessageKind, Moment, Priority
from nbs_fleet.sidecar import answering, delivery, recovery, wording
from nbs_fleet.sidecar.actions import (
    Action,
    Event,
    Faulted,
    Flickered,
    Heed,
    Look,
    Paused,
    Press,
    Pressed,
    ReadTranscript,
    Report,
    ScreenSeen,
    Settled,
    Signalled,
    StateFileSeen,
    Ticked,
    WaitingSeen,
)
from nbs_fleet.sidecar.decide import decide
from nbs_fleet.sidecar.ground import Ground, Run
from nbs_fleet.sidecar.mind import Mind
from nbs_fleet.sidecar.notices import Notify, Waiting
from nbs_fleet.sidecar.polling import is_due
from nbs_fleet.sidecar.postman import Postman
from nbs_fleet.sidecar.sources import PAUSED_FILE, StateFiles, read_signal, read_spool, read_transcript, transcript_of

PAUSE_FILE = "control-pause"
STARTUP_FLICKER = "#{history_size} #{cursor_x},#{cursor_y} #{window_activity} #{pane_title}"
"""Moves with the screen; tmux looks at it once a second and only speaks when it changed."""

ANSWERED_BY_HOOK = frozenset({BlockedKind.PLAN, BlockedKind.PERMISSION})
"""Where a hook answers, keys never do: a dialog that stays although the policy answers it is a person's."""


class Sidecar:
    """Watches the run of one client in one pane until it is cancelled.

    `tell` takes each report and each remedy for the supervisor; `heard` the agent's last words of each turn;
    `record` what was known before and after each decision; `story` a word and facts.
    """

    def __init__(
        self,
        driver: Driver,
        facts: Facts,
        run: Run,
        mind: Mind,
        *,
        ground: Ground,
        watcher: Watcher,
        tell: Callable[[Report | recovery.Restart], None],
        record: Callable[[Mind, Mind, Event, Sequence[Action], Moment], None],
        heard: Callable[[str], None],
        story: Callable[..., None],
    ) -> None:
        self.driver, self.facts, self.about = driver, facts, run
        self._ground, self._watcher, self._tell, self._heard, self._story = ground, watcher, tell, heard, story
        self._places = driver.places(facts)
        self._transcript = transcript_of(self._places)
        self._session = facts.session_id if mind.watching.addressed else None
        self._files = StateFiles(self._places.state_dir, run.proc, driver)
        self._watched: list[tuple[str, Callable[[str], None]]] = []
        self._begun = False
        """The first look was taken: until then it is not known what an earlier sidecar had begun."""
        self._lock = asyncio.Lock()
        self._post = Postman(
            Mailbox(run.paths),
            driver,
            self,
            self._lock,
            transcripts=self._transcripts,
            tell=story,
            now=_now,
            way_in=self._way_in,
        )
        self._loop: Loop[Mind, Event, Action] = Loop(
            mind,
            decide=decide,
            perform=self._perform,
            fault=_faulted,
            tick=Ticked,
            wake=_wake_at,
            record=record,
        )

    async def run(self) -> None:
        """Watch until cancelled."""
        paths = self.about.paths
        try:
            self._watch(self._places.state_dir, self._state_dir_changed)
            self._watch_transcript()
            # Our own files come whole, and to the story in there is written all the time.
            self._watch(paths.spool, self._spool_changed, writes=False)
            for folder in (paths.queue, paths.mail, paths.claimed):
                self._watch(folder, self._mail_changed, writes=False)
            self._watch(paths.dir, self._agent_dir_changed, writes=False)
            self._watch(os.path.join(self.about.root, ".nbs"), self._nbs_changed)
            self._first_look()
            await self._loop.run()
        finally:
            for directory, callback in self._watched:
                self._watcher.remove(directory, callback)

    def poll(self, number: int, *, told: bool) -> bool:
        """The slow poll, for what nobody gave notice of, if it is this sidecar's turn; whether it is."""
        if not is_due(self._loop.state, self.facts.agent.handle, number, told=told):
            return False
        seen, file = self._files.find()
        if seen and file != self._loop.state.file:
            self._loop.post(StateFileSeen(file))
        self._spool_changed("")
        self._mail_changed("", polled=True)
        self._loop.post(Ticked(poll=True))
        return True

    async def read(self) -> Reading:
        """A fresh look at the screen."""
        return self.driver.read_screen(await self._ground.look(self.about.pane))

    def unread(self) -> int:
        """Bytes typed into the pane that the client has not read."""
        return unread(self.about.proc.pid)

    async def press(self, *keys: str) -> None:
        """Press keys in the pane."""
        await self._ground.press(self.about.pane, keys)

    async def write(self, text: str) -> None:
        """Put text into the client's input box."""
        if self.driver.capabilities.paste:
            await self._ground.paste(self.about.pane, text)
        else:
            await self._ground.write(self.about.pane, text)

    def _way_in(self) -> tuple[Inbox | None, Facts]:
        return self.driver.inbox(self.facts, self._session), self.facts

    def _first_look(self) -> None:
        self._state_dir_changed("")
        self._nbs_changed(PAUSE_FILE)
        self._agent_dir_changed("signal.json")
        # The messages come first, then what hooks said of them while nobody listened.
        self._begun = True
        self._loop.post(self._post.open())
        self._spool_changed("")
        self._loop.post(Ticked(poll=True))

    def _watch(self, directory: str | None, callback: Callable[[str], None], *, writes: bool = True) -> None:
        if directory is not None:
            self._watcher.add(directory, callback, writes=writes)
            self._watched.append((directory, callback))

    def _watch_transcript(self) -> None:
        if self._transcript:
            self._watch(os.path.dirname(self._transcript), self._transcript_changed)

    def _seek_transcript(self) -> str | None:
        """The session's file. A client whose hooks don't name it makes it with its first prompt, under its own name."""
        if self._transcript is None and self.driver.capabilities.session_id:
            self._transcript = transcript_of(self._places)
            self._watch_transcript()
        return self._transcript

    def _transcripts(self) -> tuple[str, ...]:
        return tuple(path for path in (self._seek_transcript(), *self.about.earlier) if path)

    def _transcript_changed(self, name: str) -> None:
        if name not in ("", os.path.basename(self._transcript or "")):
            return
        mind = self._loop.state
        if mind.post.parcels:
            self._find_proofs()
        if not mind.acknowledged:
            self._loop.post(read_transcript(self.driver, self._transcript, self.about.transcript_from))

    def _find_proofs(self, *, again: bool = False) -> None:
        for message_id in self._post.proofs(again=again):
            self._loop.post(delivery.Proved(message_id, "transcript"))

    def _state_dir_changed(self, name: str) -> None:
        seen, file = self._files.find() if name == "" else self._files.changed(name)
        if seen:
            self._loop.post(StateFileSeen(file))

    def _spool_changed(self, _name: str) -> None:
        if not self._begun:
            return
        for seen in read_spool(
            self.driver, self.about.paths.spool, lambda f: self._story("hook event damaged", file=f)
        ):
            transcript = seen.news.transcript
            if transcript and transcript != self._transcript and not seen.news.subagent:
                self._transcript = transcript
                self._watch_transcript()
            self._session = self._session if seen.news.subagent else seen.news.session_id or self._session
            self._loop.post(seen)
            if seen.news.event == "Stop" and not seen.news.subagent:
                self._listen(seen.news.last_text)

    def _listen(self, text: str | None) -> None:
        """An agent's own last words may hold commands for the sidecar."""
        if text is None:
            text = read_transcript(self.driver, self._transcript).turns.last_text
        if text:
            self._heard(text)

    def _mail_changed(self, name: str, *, polled: bool = False) -> None:
        if name.startswith(".") or name == "tok" or not self._begun:
            return
        if self._post.mailbox.probe_taken():
            self._post.mailbox.clear_probe()
            self._loop.post(delivery.ProbeTaken())
        counted, mind = self._post.count(), self._loop.state
        # That there still is nothing is no news.
        if counted.found or mind.post.parcels or mind.noticing or not polled:
            self._loop.post(counted)
        for damaged in self._post.mailbox.damaged():
            self._story("message damaged", file=damaged)

    def _agent_dir_changed(self, name: str) -> None:
        if name in ("", PAUSED_FILE):
            self._nbs_changed(PAUSE_FILE)
        if name not in ("", "signal.json", "turn"):
            return
        kind, message = read_signal(self.about.paths.signal)
        if kind != self._loop.state.signal:
            self._loop.post(Signalled(kind, message))

    def _nbs_changed(self, name: str) -> None:
        if name in ("", PAUSE_FILE):
            whole_team = os.path.exists(os.path.join(self.about.root, ".nbs", PAUSE_FILE))
            paused = whole_team or os.path.exists(os.path.join(self.about.paths.dir, PAUSED_FILE))
            if paused != self._loop.state.paused:
                self._loop.post(Paused(paused))

    async def _perform(self, action: Action) -> Event | None:
        match action:
            case Look():
                return await self._look()
            case Heed():
                await self._heed(on=action.on)
            case ReadTranscript():
                path = self._seek_transcript()
                # That a client has none is no news.
                none = path is None and self._loop.state.turns == Turns()
                return None if none else read_transcript(self.driver, path, self.about.transcript_from)
            case Press():
                return await self._press(action)
            case Report() | recovery.Restart():
                self._tell(action)
            case recovery.Nudge():
                self._accept(MessageKind.NUDGE, action.text, Priority.NORMAL)
            case Notify():
                self._notify(action)
                return self._post.count()
            case recovery.Escalate():
                self._story("escalated", reason=action.reason, text=action.text)
            case recovery.Settle():
                self._story("escalation closed")
            case delivery.Rehook():
                self._rehook()
            case delivery.Seek():
                self._find_proofs(again=True)
                return await self._post.perform(action)
            case (
                delivery.PutMail()
                | delivery.PutInbox()
                | delivery.Hand()
                | delivery.TakeBack()
                | delivery.PutBack()
                | delivery.Ring()
                | delivery.Probe()
                | delivery.Type()
                | delivery.Enter()
                | delivery.Finish()
            ):
                return await self._post.perform(action)
            case _:
                assert_never(action)
        return None

    async def _look(self) -> ScreenSeen:
        reading = await self.read()
        answer = None
        # What the client's hook answers may be drawn for a moment; a key would come late, and stay in the input box.
        by_hook = self.driver.capabilities.permission_hook and reading.blocked in ANSWERED_BY_HOOK
        if reading.dialog is not None and not by_hook:
            answer = self.driver.answer(reading.dialog, self.facts.agent.dialogs)
        return ScreenSeen(reading, answer)

    async def _heed(self, *, on: bool) -> None:
        # Without a control client it begins with the next one; of a pane that is gone its end is told otherwise.
        with suppress(TmuxError):
            if on:
                fmt = self.driver.flicker or STARTUP_FLICKER
                can = self.driver.capabilities
                alone = not (can.hooks or can.state_file)
                await self._ground.subscribe(self.about.pane, fmt, self._flickered, alone=alone)
            else:
                await self._ground.unsubscribe(self.about.pane)

    def _flickered(self, _value: str) -> None:
        self._loop.post(Flickered())

    async def _press(self, action: Press) -> Pressed:
        """Press only if what is on the screen right now is still the dialog that was decided on."""
        async with self._lock:
            reading = await self.read()
            dialog = reading.dialog
            if reading.state is not AgentState.BLOCKED or dialog is None or dialog.text != action.dialog:
                return Pressed(ok=False, why="the dialog changed before it could be answered")
            try:
                problem = await answering.press(dialog, action.keys, self)
            except FleetError as error:
                return Pressed(ok=False, why=error.message)
        return Pressed(ok=not problem, why=problem)

    async def answer(self, wish: answering.Wish) -> str:
        """Answer the dialog that a person means, if it is still the open one; why not, or nothing."""
        async with self._lock:
            why = await answering.answer(wish, self.driver, self)
        self._loop.post(Pressed(ok=not why))
        return why

    def _rehook(self) -> None:
        """Render the client's settings with hooks at tool boundaries; Claude Code reads them at its next prompt."""
        facts = msgspec.structs.replace(self.facts, hand_over=True)
        settings = msgspec.json.format(msgspec.json.encode(self.driver.settings(facts)))
        write_atomic(facts.settings_path, settings)
        self._story("mail is not armed", instead="hooks and keys")

    def settle(self) -> None:
        """A person says that what was in the agent's way is settled."""
        self._loop.post(Settled())

    def see(self, waiting: Waiting) -> None:
        """Hear what waits for the agent on the nbs files."""
        if waiting != self._loop.state.waiting:
            self._loop.post(WaitingSeen(waiting))

    def _notify(self, notify: Notify) -> None:
        told = self.facts.agent
        folder = self.driver.skills_dir(self.facts)
        skills = tuple(f"{folder}/{name}/SKILL.md" for name in self.facts.skills) if folder else ()
        by_skill = self.driver.capabilities.skill_calls and wording.NOTICE_SKILL in self.facts.skills
        text = wording.notice(told.sidecar.notify, notify.summary, told.handle, by_skill=by_skill, plain=notify.plain)
        if notify.why == "recovery":
            text = wording.recovery(notify.summary, told.handle, told.chats, told.bus, skills)
        kind = MessageKind.COMMAND if text.startswith("/") else MessageKind.NOTICE
        self._story("noticed", why=notify.why, summary=notify.summary)
        self._accept(kind, text, notify.priority)

    def _accept(self, kind: MessageKind, text: str, priority: Priority) -> None:
        now = moment().wall
        message = Message(
            id=new_id(kind, now, int.from_bytes(os.urandom(8))),
            to=self.facts.agent.handle,
            sender="fleet",
            text=text,
            created=now,
            kind=kind,
            priority=priority,
        )
        self._post.mailbox.accept(message)


def _now() -> float:
    return moment().wall


def _faulted(action: Action, error: Exception) -> Event:
    return Faulted(f"{type(action).__name__}: {error}")


def _wake_at(mind: Mind) -> float | None:
    return mind.wake_at
