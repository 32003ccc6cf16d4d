"""The client as a whole: terminal, keys, queue, turns, notices and the ways out."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from nbs_fleet.sim import statefile, terminal
from nbs_fleet.sim.dialogs import Answer, Dialog
from nbs_fleet.sim.editor import Editor
from nbs_fleet.sim.front import Prompt, Shell
from nbs_fleet.sim.kernel import Future, Loop, Task, Timer, start
from nbs_fleet.sim.keys import Key
from nbs_fleet.sim.session import Session
from nbs_fleet.sim.settings import Hook
from nbs_fleet.sim.transcript import new_uuid
from nbs_fleet.sim.turn import Turn
from nbs_fleet.sim.view import Item, View
from nbs_fleet.sim.waiting import Waiting

Json = dict[str, Any]
AGAIN_SECONDS = 1.0
IDLE_NOTICE_MS = 60_000
"""After so long the client says that it waits; messageIdleNotifThresholdMs in its config changes it."""
_CYCLE = ("default", "acceptEdits", "plan", "auto")
_CYCLE_BYPASS = ("default", "acceptEdits", "plan", "bypassPermissions", "auto")


class App:
    """One running client."""

    def __init__(self, loop: Loop, session: Session, idle_ms: int) -> None:
        self.loop = loop
        self.session = session
        self.idle_ms = idle_ms
        self.editor = Editor()
        self.view = View(loop, session, self.editor)
        self.queue = Waiting(session)
        self.turn: Turn | None = None
        self.task: Task[None] | None = None
        self.answer: Future[Answer] | None = None
        self.ready = False
        self.leaving = False
        self.armed: tuple[str, float] = ("", 0.0)
        self.idle_timer: Timer | None = None
        self.title_timer: Timer | None = None
        self.shells: dict[str, Json] = {}
        self.outputs: list[str] = []
        self.watcher: object = None
        self.terminal: terminal.Terminal | None = None
        self.prompts: list[str] = []
        session.hooks.woken = self.woken
        loop.before_wait = self.view.paint

    def open(self) -> None:
        """Take the terminal and the signals."""
        self.session.size = terminal.size()
        self.terminal = terminal.Terminal(self.loop, self.on_keys, self.on_resize, lambda: self.leave(129, "other"))
        for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)):
            self.loop.on_signal(number, self._leaver(code))

    def _leaver(self, code: int) -> Callable[[], None]:
        return lambda: self.leave(code, "other")

    def on_resize(self) -> None:
        """Another width draws everything anew."""
        before, self.session.size = self.session.size, terminal.size()
        if self.session.size != before:
            self.view.redraw()

    def on_keys(self, keys: list[Key]) -> None:
        """Keys in order."""
        for key in keys:
            if key.name != "focus" and not self.leaving:
                self.on_key(key)
        self.view.changed()

    # --- state

    @property
    def busy(self) -> bool:
        """A turn is running."""
        return self.task is not None and not self.task.done

    def refresh(self) -> None:
        """State file and pane title follow what is going on."""
        state = self.session.state
        dialog = self.view.dialog
        self.view.shells = len(self.shells)
        if dialog is not None and dialog.waiting_for is not None:
            state.show(statefile.WAITING, dialog.waiting_for)
        elif self.busy:
            state.show(statefile.BUSY)
        else:
            state.show(statefile.SHELL if self.shells else statefile.IDLE)
        self._title()
        self.view.changed()

    def _title(self) -> None:
        if self.title_timer is not None:
            self.title_timer.cancel()
            self.title_timer = None
        if self.busy and self.view.dialog is None:
            self.view.set_title("⠐" if int(self.view.seconds) % 2 else "⠂")
            self.title_timer = self.loop.call_later(1.0, self._title)
        else:
            self.view.set_title("✳")

    # --- dialogs

    def ask(self, dialog: Dialog) -> Future[Answer]:
        """Put a dialog up; keys go to it until it is answered or withdrawn."""
        self.answer = Future()
        self.view.dialog = dialog
        self.view.hold()
        if self.session.state.status is not None:
            self.refresh()
        self.view.changed()
        return self.answer

    def withdraw(self) -> None:
        """Take the dialog down."""
        self.answer = None
        self.view.dialog = None
        self.view.go_on()
        if self.session.state.status is not None:
            self.refresh()
        self.view.changed()
        if self.queue.prompts and self.ready and not self.busy:
            self.loop.call_later(0.0, self._next)

    # --- keys

    def on_key(self, key: Key) -> None:
        """One key: to the dialog if there is one, else to the box."""
        if self.view.dialog is not None and self.answer is not None:
            answer = self.view.dialog.key(key)
            if answer is not None:
                self.answer.set(answer)
            return
        if key.name not in {"esc", "ctrl-c", "ctrl-d"}:
            self._disarm()
        handler = {
            "enter": self.submit,
            "esc": self.on_escape,
            "ctrl-c": self.on_interrupt,
            "ctrl-d": self.on_end,
            "ctrl-s": self.editor.swap_stash,
            "ctrl-l": self.view.redraw,
            "shift-tab": self.next_mode,
        }.get(key.name)
        if handler is not None:
            handler()
        elif key.name == "up" and not self.editor.text and self.queue.prompts:
            self.editor.set(self.queue.take_back())
            self._show_queue()
        elif key.name == "text" and key.text.startswith("!") and not self.editor.text and not self.view.shell_mode:
            self.view.shell_mode = True
            self.editor.insert(key.text[1:])
        elif key.name == "paste" and key.text.startswith("!") and not self.editor.text:
            self.view.shell_mode = True
            self.editor.paste(key.text[1:])
        elif key.name == "backspace" and not self.editor.text and self.view.shell_mode:
            self.view.shell_mode = False
        else:
            self.editor.key(key)

    def _arm(self, what: str, left: str | None, right: str = "") -> bool:
        """True at the second press in time; at the first one a hint is shown on one side of the status line."""
        now = time.monotonic()
        if self.armed[0] == what and now - self.armed[1] < AGAIN_SECONDS:
            self._disarm()
            return True
        self.armed = (what, now)
        self.view.left = left
        self.view.hint = right
        self.loop.call_later(AGAIN_SECONDS, lambda: self._disarm() if self.armed == (what, now) else None)
        return False

    def _disarm(self) -> None:
        self.armed = ("", 0.0)
        self.view.left = None
        self.view.hint = ""
        self.view.changed()

    def on_escape(self) -> None:
        """Interrupt; or clear the box at the second press; on an empty one the second opens the rewind list."""
        if self.view.shell_mode and not self.editor.text:
            self.view.shell_mode = False
        elif self.busy:
            self.interrupt()
        elif self.editor.text:
            if self._arm("esc", None, "Esc again to clear"):
                self.editor.set("")
                self.view.shell_mode = False
        elif self.prompts and self._arm("rewind", None):
            from nbs_fleet.sim import commands  # noqa: PLC0415 - rare

            start(commands.rewind(self))

    def on_interrupt(self) -> None:
        """Ctrl+C: interrupt, clear, or leave at the second press."""
        if self.busy:
            self.interrupt()
            return
        if self.editor.text:
            self.editor.set("")
            self.view.shell_mode = False
        if self._arm("ctrl-c", "Press Ctrl-C again to exit"):
            self.view.left = "Press Ctrl-C again to exit"
            self.leave(0, "prompt_input_exit")

    def on_end(self) -> None:
        """Ctrl+D on an empty box, twice: leave."""
        if self.editor.text:
            self.editor.key(Key("delete"))
        elif self._arm("ctrl-d", "Press Ctrl-D again to exit"):
            self.view.left = "Press Ctrl-D again to exit"
            self.leave(0, "prompt_input_exit")

    def next_mode(self) -> None:
        """Shift+Tab."""
        cycle = _CYCLE_BYPASS if self.session.can_bypass else _CYCLE
        at = cycle.index(self.session.mode) if self.session.mode in cycle else -1
        if cycle[(at + 1) % len(cycle)] == "plan":
            self.session.before_plan = self.session.mode
        self.session.mode = cycle[(at + 1) % len(cycle)]

    # --- prompts and the queue

    def submit(self) -> None:
        """Enter: run a command, start a turn, or queue."""
        if self.editor.text.endswith("\\"):
            self.editor.set(self.editor.text[:-1] + "\n")
            return
        shell = self.view.shell_mode
        text = self.editor.take()
        self.view.shell_mode = False
        if not text.strip():
            return
        self.prompts.append(text)
        self.give(Prompt(text, kind="shell" if shell else "prompt", at=time.time()))

    def give(self, prompt: Prompt) -> None:
        """Take something to do: now if idle, else in its turn."""
        if prompt.kind == "prompt" and prompt.text.strip() in {"/exit", "/quit"}:
            from nbs_fleet.sim import leaving  # noqa: PLC0415 - once

            leaving.goodbye(self)
            self.leave(0, "prompt_input_exit")
            return
        if self.busy or not self.ready or self.view.dialog is not None:
            self.queue.add(prompt)
            self._show_queue()
            return
        if prompt.kind == "mail":
            self.session.head()
            self.session.transcript.queue("enqueue", prompt.text)
            self.session.transcript.queue("dequeue")
        self._start([prompt])

    def _show_queue(self) -> None:
        self.view.queued = self.queue.shown()
        self.view.changed()

    def hand_over(self) -> list[Prompt]:
        """What may go to the model in mid-turn."""
        plain = self.queue.hand_over()
        self._show_queue()
        return plain

    def _batch(self) -> list[Prompt]:
        batch = self.queue.batch()
        self._show_queue()
        return batch

    def _start(self, prompts: list[Prompt]) -> None:
        if prompts[0].kind != "shell":
            self.session.prompt_id = new_uuid()
        if self.idle_timer is not None:
            self.idle_timer.cancel()
            self.idle_timer = None
        self.task = Task(self._run(prompts))
        self.task.then(self._next)
        self.refresh()

    async def _run(self, prompts: list[Prompt]) -> None:
        head = prompts[0]
        if head.kind == "shell" or (head.kind == "prompt" and head.text.startswith("/")):
            from nbs_fleet.sim import commands  # noqa: PLC0415 - rare

            taken = await commands.run(self, head)
            if taken is None:
                return
            prompts = [taken]
        turn = self.turn = Turn(self.loop, self.session, self.view, self)
        await turn.run(prompts)
        # Another one may have begun and ended by now.
        if turn.ended == "unsent" and not self.queue.prompts:
            self.editor.set("\n".join(p.shown or p.text for p in prompts) + self.editor.text)

    def _next(self) -> None:
        """After a turn: the queue, else idle."""
        if self.leaving or self.busy:
            return
        if self.queue.prompts and self.ready:
            self._start(self._batch())
            return
        ended = self.turn.ended if self.turn is not None else "done"
        self.turn = None
        self.refresh()
        if ended in {"done", "failed", "stopped"}:
            self._watch_idle()

    def interrupt(self) -> None:
        """Cut the running turn short."""
        if self.task is not None:
            self.task.interrupt()

    # --- things that come by themselves

    def _watch_idle(self) -> None:
        def tell() -> None:
            fields = {"message": "Claude is waiting for your input", "notification_type": "idle_prompt"}
            start(self.session.run_hooks("Notification", fields, "idle_prompt"))

        self.idle_timer = self.loop.call_later(self.idle_ms / 1000, tell)

    def woken(self, hook: Hook, text: str) -> None:
        """A background hook wakes the model with a message."""
        message = hook.rewake_message or f'Stop hook blocking error from command "{hook.event}":'
        summary = hook.rewake_summary or "Stop hook feedback"
        body = (
            f"<task-notification>\n<summary>{summary}</summary>\n</task-notification>\n"
            f"<system-reminder>\n{message} {text.rstrip()}\n</system-reminder>"
        )
        self.give(Prompt(body, kind="mail", shown=summary, at=time.time(), hook=True))

    def started_shell(self, shell: Shell) -> None:
        """Run a command in the background; its end is told to the model."""
        from nbs_fleet.sim import shells  # noqa: PLC0415 - rare

        shells.begin(self, shell)

    def background(self) -> list[Json]:
        """Background commands as hooks are told of them."""
        return list(self.shells.values())

    # --- life

    def close(self) -> None:
        """Give the terminal back."""
        if self.terminal is not None:
            self.terminal.close()
            self.terminal = None

    async def begin(self) -> None:
        """After the startup dialogs: state file, screen, SessionStart, the first prompt."""
        session = self.session
        resumed = bool(session.context.messages)
        if not self.view.items:
            empty = not any(not name.startswith(".") for name in os.listdir(session.cwd))
            self.view.add(Item("welcome", "fresh" if empty else "old"))
        # The box is on screen before the state file says that it is there.
        self.view.paint()
        self.refresh()
        if any(hook.event == "FileChanged" for hook in session.settings.hooks):
            from nbs_fleet.sim.watch import Watcher  # noqa: PLC0415 - only where there is something to watch

            self.watcher = Watcher(self.loop, session)
        await session.start_hooks("resume" if resumed or session.args.resume else "startup")
        self.ready = True
        if session.args.prompt:
            self.prompts.append(session.args.prompt)
            self._start([Prompt(session.args.prompt, at=time.time())])
        elif self.queue.prompts:
            self._start(self._batch())

    def leave(self, code: int, reason: str) -> None:
        """End: SessionEnd hooks within their time, files flushed, state file removed, the way back told."""
        if self.leaving:
            return
        self.leaving = True
        from nbs_fleet.sim import leaving  # noqa: PLC0415 - once

        start(leaving.leave(self, code, reason))
