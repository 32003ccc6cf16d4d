"""A simulated client: what it does with prompts, mail, keys and dialogs, and what can be seen of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nbs_fleet.drivers.base import Dialog, HookNews, Option, Reading, StateFile
from nbs_fleet.model import AgentState, BlockedKind, ErrorKind, Exit, ExitKind, ProcId
from nbs_fleet.sidecar.actions import HookSeen

if TYPE_CHECKING:
    from tests.simulation.world import World

OPTIONS = {
    BlockedKind.TRUST: ("Yes, proceed", "No, exit"),
    BlockedKind.PERMISSION: ("Yes", "No"),
    BlockedKind.PLAN: ("Yes, and go on", "No, keep planning"),
    BlockedKind.QUESTION: ("Red", "Blue", "Green"),
}
FAILURES = (ErrorKind.OVERLOAD, ErrorKind.NETWORK, ErrorKind.RATE_LIMIT, ErrorKind.AUTHENTICATION, ErrorKind.OTHER)
PERSON = "person:"


class Client:
    """One process. `rich` has a state file, hooks and mail; another shows only its screen and its transcript."""

    def __init__(self, world: World, handle: str, proc: ProcId, session: str, *, rich: bool, armed: bool) -> None:
        self.world, self.handle, self.proc, self.session, self.rich, self.armed = (
            world,
            handle,
            proc,
            session,
            rich,
            armed,
        )
        self.alive, self.frozen = True, False
        self.state = AgentState.STARTING
        self.since = world.line.t
        self.wrote: StateFile | None = None
        self.dialog: Dialog | None = None
        self.dialog_since = -1e9
        self.draft = ""
        self.draft_since = -1e9
        self.turn = 0
        self.doom = 0
        """After so many steps of its work it is killed, if any."""
        self.claimed: list[str] = []
        self.queued: list[str] = []
        self.unread_keys = False
        self._held: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._resting: Callable[[], None] | None = None
        self.later(world.chance(0.3, 2.0), self._starts)

    # what it does

    def later(self, delay: float, work: Callable[..., None], *args: Any) -> None:
        """Do it then, unless it is dead by then; one that is stopped does it when it goes on."""
        self.world.line.after(delay, self._do, work, args)

    def _do(self, work: Callable[..., None], args: tuple[Any, ...]) -> None:
        if not self.alive:
            return
        if self.doom:
            self.doom -= 1
            if not self.doom:
                self.die(ExitKind.CRASH, signal=9)
                return
        if self.frozen:
            self._held.append((work, args))
            return
        work(*args)

    def go_on(self) -> None:
        """SIGCONT."""
        if not self.frozen:
            return
        self.frozen = False
        held, self._held = self._held, []
        self.unread_keys = False
        for work, args in held:
            self._do(work, args)

    def _starts(self) -> None:
        if self.world.odds(0.15):
            self._ask(BlockedKind.TRUST, self._ready)
        else:
            self._ready()

    def _ready(self) -> None:
        if self.rich:
            self._hook(HookNews("SessionStart", Reading(AgentState.UNKNOWN), cause="startup"))
        if (
            self.world.disk.folders[self.handle].transcript(self.session).prompts == 0
            and self.world.prompted[self.handle]
        ):
            self._submit([])
        else:
            self._rest()

    def _set(self, state: AgentState) -> None:
        self.state, self.since = state, self.world.line.t
        if self.rich and state is not AgentState.STARTING and not (state is AgentState.BLOCKED and self.wrote is None):
            says = {AgentState.COMPACTING: AgentState.BUSY}.get(state, state)
            now = self.world.line.now()
            self.wrote = StateFile(self.proc.pid, self.proc.start, self.session, Reading(says), at=now.wall)
            self.world.notice(self.handle, "state")
        self.world.notice(self.handle, "flicker")

    def _rest(self) -> None:
        self._set(AgentState.IDLE)
        self._wants_mail()
        if self.claimed or self.queued:
            self.later(self.world.chance(0.05, 0.5), self._take_up)

    def _take_up(self) -> None:
        """An idle client uses what it has claimed, or what was typed while it was busy."""
        if self.state is not AgentState.IDLE:
            return
        ids, self.claimed, self.queued = [*self.claimed, *self.queued], [], []
        if ids:
            self._submit(ids)

    def _submit(self, ids: list[str]) -> None:
        """A turn begins with these messages."""
        self.turn += 1
        self.world.disk.folders[self.handle].signal = (None, "")
        self.world.notice(self.handle, "signal")
        if self.rich:
            self._hook(HookNews("UserPromptSubmit", Reading(AgentState.BUSY), prompt=" ".join(ids)), proves=tuple(ids))
        self._set(AgentState.BUSY)
        self.later(0.1, self._write, tuple(ids), 1)
        self.later(self.world.chance(0.2, 40.0), self._goes_on, self.turn, self.world.line.random.randrange(4))

    def _write(self, ids: tuple[str, ...], prompts: int) -> None:
        """Into the transcript: from here on it is the session's, whoever dies."""
        file = self.world.disk.folders[self.handle].transcript(self.session)
        file.prompts += prompts
        file.size += 100
        for message_id in ids:
            file.ids[message_id] = file.ids.get(message_id, 0) + 1
            self.world.laws.used(self.handle, message_id)
        self.world.read(self.handle, ids)
        self.world.notice(self.handle, "transcript")

    def _goes_on(self, turn: int, tools: int) -> None:
        """A step of a turn: a tool call, a dialog, a compaction, or its end."""
        if turn != self.turn or self.state is not AgentState.BUSY:
            return
        if tools == 0:
            self._ends()
            return
        again = (turn, tools - 1)
        if self.rich:
            self._hook(HookNews("PreToolUse", Reading(AgentState.BUSY), tool="Bash"))
        self._boundary()
        if self.world.odds(0.10):
            kind = self.world.line.random.choice((BlockedKind.PERMISSION, BlockedKind.PLAN, BlockedKind.QUESTION))
            self._ask(kind, lambda: self._works(*again))
        elif self.world.odds(0.03):
            self._compact(lambda: self._works(*again))
        else:
            self.later(self.world.chance(0.2, 60.0), self._goes_on, *again)

    def _works(self, turn: int, tools: int) -> None:
        self._set(AgentState.BUSY)
        self.later(self.world.chance(0.2, 20.0), self._goes_on, turn, tools)

    def _compact(self, then: Callable[[], None]) -> None:
        if self.rich:
            self._hook(HookNews("PreCompact", Reading(AgentState.COMPACTING)))
        self._set(AgentState.COMPACTING)

        def done() -> None:
            if self.rich:
                self._hook(HookNews("PostCompact", Reading(AgentState.BUSY, detail="compacted")))
            then()

        self.later(self.world.chance(2.0, 60.0), done)

    def _boundary(self) -> None:
        """Between two tools: what was claimed joins the turn, and what hooks may hand over is handed over."""
        ids, self.claimed = self.claimed, []
        folder = self.world.disk.folders[self.handle]
        if folder.hand_over:
            ids = ids + self._from_inbox()
        if ids:
            self.later(0.1, self._write, tuple(ids), 0)

    def _from_inbox(self) -> list[str]:
        letters = self.world.disk.folders[self.handle].letters
        found = [i for i, letter in letters.items() if letter.place == "inbox"]
        for message_id in found:
            letters[message_id].place, letters[message_id].taker = "claimed", self.proc
        if found:
            self._hook(HookNews("PostToolUse", Reading(AgentState.BUSY), handed=tuple(found)), proves=tuple(found))
            self.world.notice(self.handle, "mail")
        return found

    def _ends(self) -> None:
        self.turn += 1
        file = self.world.disk.folders[self.handle].transcript(self.session)
        file.finished += 1
        file.size += 50
        handed = self._from_inbox() if self.rich else []
        if handed:
            # The stop is held back: the turn goes on with them.
            self.later(0.1, self._write, tuple(handed), 0)
            self.later(self.world.chance(0.2, 20.0), self._goes_on, self.turn, 1)
            return
        if self.world.logged_out or self.world.odds(0.04):
            self._fails()
        elif self.rich:
            self._hook(HookNews("Stop", Reading(AgentState.IDLE), last_text="done"))
        self._says()
        self._rest()

    def _fails(self) -> None:
        kind = ErrorKind.AUTHENTICATION if self.world.logged_out else self.world.line.random.choice(FAILURES)
        if kind is ErrorKind.AUTHENTICATION:
            self.world.logged_out = True
        until = None
        if kind is ErrorKind.RATE_LIMIT and self.world.odds(0.7):
            until = self.world.line.now().wall + self.world.chance(30.0, 1_200.0)
        if self.rich:
            reading = Reading(AgentState.IDLE, detail=f"{kind}", until=until)
            self._hook(HookNews("StopFailure", reading, error=kind))

    def _says(self) -> None:
        """Now and then an agent says of itself how it stands."""
        must = self.world.must_signal[self.handle]
        if (must and not self.world.odds(0.1)) or self.world.odds(0.05):
            kind = "escalate" if self.world.odds(0.2) else "complete"
            self.world.disk.folders[self.handle].signal = (kind, "so it is")
            self.world.notice(self.handle, "signal")

    # mail

    def mailed(self) -> None:
        """Something lies in mail/, or the bell rang."""
        self.later(self.world.chance(0.1, 1.0), self._wants_mail)

    def _wants_mail(self) -> None:
        if not (self.rich and self.armed) or self.wrote is None:
            return
        folder = self.world.disk.folders[self.handle]
        taken = [i for i, letter in folder.letters.items() if letter.place == "mail"]
        if not taken and not folder.probe:
            return
        folder.probe = False
        for message_id in taken:
            folder.letters[message_id].place, folder.letters[message_id].taker = "claimed", self.proc
        self.claimed.extend(taken)
        self.world.notice(self.handle, "mail")
        if self.state is AgentState.IDLE:
            self.later(self.world.chance(0.02, 0.3), self._take_up)

    # keys

    def paste(self, message_id: str) -> None:
        """Our text arrives in the input box."""
        if self.frozen:
            self.unread_keys = True
            self._held.append((self.paste, (message_id,)))
            return
        if not self.alive:
            return
        self.world.laws.pasted(self, message_id)
        self.draft += message_id
        self.draft_since = self.world.line.t
        self.world.notice(self.handle, "flicker")

    def enter(self) -> None:
        """Enter is pressed."""
        if self.frozen:
            self.unread_keys = True
            self._held.append((self.enter, ()))
            return
        if not self.alive:
            return
        self.world.laws.entered(self)
        if self.dialog is not None:
            return
        text, self.draft = self.draft, ""
        ids = [text] if text and not text.startswith(PERSON) else []
        if not text:
            return
        if self.state is AgentState.IDLE:
            self._submit(ids)
        else:
            self.queued.extend(ids)

    def escape(self) -> None:
        """The running turn is interrupted; what was typed meanwhile is taken up."""
        if self.alive and not self.frozen and self.state is AgentState.BUSY:
            self.turn += 1
            self._rest()

    def person_types(self) -> None:
        """A person begins to type into an empty box."""
        if self.alive and not self.frozen and self.dialog is None and not self.draft and self.wrote is not None:
            self.draft, self.draft_since = f"{PERSON} hm", self.world.line.t
            self.world.notice(self.handle, "flicker")

    def person_ends(self) -> None:
        """The person deletes or submits it."""
        if not self.alive or not self.draft.startswith(PERSON):
            return
        if self.frozen or self.dialog is not None:
            self.later(5.0, self.person_ends)
        else:
            self.draft = ""
            if self.state is AgentState.IDLE and self.world.odds(0.5):
                self._submit([])
            else:
                self.world.notice(self.handle, "flicker")

    # dialogs

    def _ask(self, kind: BlockedKind, then: Callable[[], None]) -> None:
        """A dialog opens; `then` goes on once it is answered."""
        number = self.world.line.random.randrange(10**6)
        options = tuple(Option(label, str(n)) for n, label in enumerate(OPTIONS[kind], 1))
        self.dialog = Dialog(kind, f"{kind} {number}?", options, 0)
        self.dialog_since = self.world.line.t
        self._resting = then
        if self.rich and kind is not BlockedKind.TRUST:
            reading = Reading(AgentState.BLOCKED, detail=f"Bash: {number}", blocked=kind)
            self._hook(HookNews("PermissionRequest", reading, request=f"Bash\n{number}"))
        self._set(AgentState.BLOCKED)

    def choose(self, mark: str) -> bool:
        """The open dialog, if it is this one, gets an answer."""
        if not self.alive or self.frozen or self.dialog is None or self.dialog.mark != mark:
            return False
        then, self._resting, self.dialog = self._resting, None, None
        if then is not None:
            self.later(self.world.chance(0.02, 0.3), then)
        return True

    # what can be seen of it

    def screen(self) -> Reading:
        """One look."""
        if not self.alive:
            return Reading(AgentState.UNKNOWN)
        if self.dialog is not None:
            return Reading(AgentState.BLOCKED, blocked=self.dialog.kind, dialog=self.dialog)
        if self.state in (AgentState.STARTING, AgentState.BLOCKED):
            return Reading(AgentState.UNKNOWN)
        if self.draft:
            text = self.draft if self.draft.startswith(PERSON) else f"[nbs:{self.draft}]"
            if self.state is AgentState.IDLE:
                return Reading(AgentState.BLOCKED, blocked=BlockedKind.DRAFT, draft=text)
            return Reading(self.state, draft=text)
        return Reading(self.state)

    def _hook(self, news: HookNews, proves: tuple[str, ...] = ()) -> None:
        told = HookNews(**{**{f: getattr(news, f) for f in news.__struct_fields__}, "session_id": self.session})
        folder = self.world.disk.folders[self.handle]
        folder.spool.append(HookSeen(told, self.world.line.now().wall, proves))
        self.world.notice(self.handle, "spool")

    def die(self, kind: ExitKind, *, signal: int | None = None) -> Exit | None:
        """It ends; None if it is dead already."""
        if not self.alive:
            return None
        self.alive = False
        self.end = Exit(kind, self.world.line.now().wall, code=None if signal else 0, signal=signal)
        self.world.died(self)
        return self.end
