"""What is on the screen: the conversation so far, what is in progress, and the box or a dialog below."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from nbs_fleet.sim import screen
from nbs_fleet.sim.cells import wrap
from nbs_fleet.sim.dialogs import Dialog
from nbs_fleet.sim.editor import Editor
from nbs_fleet.sim.kernel import Loop, Timer
from nbs_fleet.sim.paint import Painter
from nbs_fleet.sim.session import Session

KEPT = 300
GLYPHS = "·✢✳✶✻✽"
VERBS = ("Osmosing", "Brewing", "Forging", "Swirling", "Doing", "Working", "Crafting", "Pondering")
PAST = ("Cooked", "Brewed", "Worked", "Baked", "Crunched", "Churned", "Cogitated", "Sautéed")


class Item(NamedTuple):
    """One thing in the conversation: user, said, notice, result, done, welcome or shell."""

    kind: str
    text: str = ""


class View:
    """Collects changes and paints once per round of the loop."""

    def __init__(self, loop: Loop, session: Session, editor: Editor) -> None:
        self.loop = loop
        self.session = session
        self.editor = editor
        self.painter = Painter()
        self.items: list[Item] = []
        self.shown = 0
        self.live: list[Item] = []
        self.queued: list[tuple[str, bool]] = []
        self.dialog: Dialog | None = None
        self.begun: float | None = None
        self.verb = VERBS[0]
        self.tokens = 0
        self.activity: str | None = None
        self.left: str | None = None
        self.right = screen.EFFORT
        self.alert = ""
        self.shells = 0
        self.shell_mode = False
        self.named = True
        self.raw: list[str] | None = None
        self.dirty = False
        self.ticker: Timer | None = None
        self.title = ""
        self.buffer = b""

    def changed(self) -> None:
        """Something to paint."""
        self.dirty = True

    def add(self, *items: Item) -> None:
        """Append finished things."""
        self.items += items
        self.dirty = True

    def start(self) -> None:
        """A turn begins: the spinner runs."""
        self.begun = time.monotonic()
        self.verb = VERBS[int(self.begun * 7) % len(VERBS)]
        self.tokens = 0
        self.activity = None
        self.alert = ""
        self._tick()

    def stop(self) -> None:
        """The turn is over."""
        self.begun = None
        self.activity = None
        if self.ticker is not None:
            self.ticker.cancel()
            self.ticker = None
        self.dirty = True

    def _tick(self) -> None:
        if self.begun is None:
            return
        self.dirty = True
        self.ticker = self.loop.call_later(1.0, self._tick)

    @property
    def seconds(self) -> float:
        """How long the turn has run."""
        return 0.0 if self.begun is None else time.monotonic() - self.begun

    def _item_lines(self, item: Item, columns: int) -> list[str]:
        match item.kind:
            case "welcome":
                fresh = item.text == "fresh"
                lines = screen.welcome(columns, self.session.cwd, self.session.model_label, fresh=fresh)
                return [*lines, ""]
            case "user":
                return ["", *screen.user_lines(item.text, columns)]
            case "shell":
                return ["", *(("! " if i == 0 else "  ") + t for i, t in enumerate(wrap(item.text, columns - 4)))]
            case "said":
                return ["", *screen.said_lines(item.text, columns, 2)]
            case "notice":
                return ["", *screen.said_lines(item.text, columns, 10)]
            case "result":
                return screen.result_lines(item.text, columns)
            case _:
                return ["", *wrap(item.text, columns)]

    def _spin(self) -> list[str]:
        if self.begun is None or (self.dialog is not None):
            return []
        glyph = "●" if self.session.flag("prefersReducedMotion") else GLYPHS[int(self.seconds) % len(GLYPHS)]
        if self.activity is not None:
            return ["", *self.activity.split("\n")]
        return ["", screen.spinner(glyph, self.verb, self.seconds, self.tokens)]

    def _bottom(self, columns: int) -> list[str]:
        busy = self.begun is not None
        box = screen.Box(
            name=self.session.name if self.named else None,
            text=self.editor.text,
            cursor=self.editor.draft.cursor,
            ghost=screen.QUEUE_HINT if self.queued else "",
            shell=self.shell_mode,
        )
        stash = "› stashed" if self.editor.stash is not None else ""
        footer = screen.Footer(
            mode=self.session.mode,
            busy=busy,
            agents=not self.session.flag("disableAgentView"),
            shells=self.shells,
            left="! for shell mode" if self.shell_mode else self.left,
            right=stash or self.alert or self.right,
            typed=bool(self.editor.text),
        )
        return screen.bottom(box, footer, columns)

    def frame(self, columns: int) -> tuple[list[str], list[str]]:
        """New finished lines, and the live ones."""
        if self.raw is not None:
            return [], self.raw
        done = [line for item in self.items[self.shown :] for line in self._item_lines(item, columns)]
        if self.shown == 0 and done and done[0] == "":
            done = done[1:]
        live = [line for item in self.live for line in self._item_lines(item, columns)] + self._spin()
        if self.dialog is not None:
            return done, live + ([""] if self.dialog.spaced else []) + self.dialog.lines(columns)
        for i, (text, shell) in enumerate(self.queued):
            mark = "! " if shell else "❯ "
            rows = wrap(text, columns - 6)
            live += [""] if i == 0 else []
            live += [("  " + mark if j == 0 else "    ") + row for j, row in enumerate(rows)]
        return done, live + ([] if self.queued else [""]) + self._bottom(columns)

    def paint(self) -> None:
        """Write what changed."""
        if not self.dirty:
            return
        self.dirty = False
        columns, rows = self.session.size
        done, live = self.frame(columns)
        self.shown = len(self.items)
        self.write(self.painter.frame(done, live, rows))
        if len(self.items) > KEPT:
            self.items = self.items[-KEPT:]
            self.shown = len(self.items)

    def redraw(self) -> None:
        """Draw everything anew (another width, a cleared conversation)."""
        self.write(self.painter.reset())
        self.shown = 0
        self.dirty = True

    def set_title(self, mark: str) -> None:
        """The pane's title: a mark and the session's name."""
        if self.session.env.get("CLAUDE_CODE_DISABLE_TERMINAL_TITLE"):
            return
        title = f"{mark} {self.session.name or 'Claude Code'}"
        if title != self.title:
            self.title = title
            self.write(f"\x1b]0;{title}\x07".encode())

    def write(self, data: bytes) -> None:
        """Send bytes to the terminal; one that is gone is noticed by its hang-up signal."""
        while data:
            try:
                data = data[os.write(1, data) :]
            except BlockingIOError:
                os.set_blocking(1, True)
            except OSError:
                return
