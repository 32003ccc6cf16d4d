"""What is on the screen: the conversation so far, what is in progress, and the box or a dialog below."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from nbs_fleet.sim import screen
from nbs_fleet.sim.cells import wrap
from nbs_fleet.sim.dialogs import Dialog
from nbs_fleet.sim.editor import Editor
from nbs_fleet.sim.kernel import Loop, Timer
from nbs_fleet.sim.paint import Painter
from nbs_fleet.sim.session import Session
from nbs_fleet.sim.terminal import write

KEPT = 300
GLYPHS = "·✢✳✶✻✽"
VERBS = ("Osmosing", "Brewing", "Forging", "Swirling", "Doing", "Working", "Crafting", "Pondering")
PAST = ("Cooked", "Brewed", "Worked", "Baked", "Crunched", "Churned", "Cogitated", "Sautéed")


class Item(NamedTuple):
    """One thing in the conversation; `kind` is welcome or a key of the table below."""

    kind: str
    text: str = ""


def _shell_lines(text: str, columns: int) -> list[str]:
    return [("! " if i == 0 else "  ") + line for i, line in enumerate(wrap(text, columns - 4))]


_DRAW: dict[str, Callable[[str, int], list[str]]] = {
    "user": lambda text, columns: ["", *screen.user_lines(text, columns)],
    "shell": lambda text, columns: ["", *_shell_lines(text, columns)],
    "said": lambda text, columns: ["", *screen.said_lines(text, columns, 2)],
    "notice": lambda text, columns: ["", *screen.said_lines(text, columns, 10)],
    "result": screen.result_lines,
    "folded": lambda text, columns: ["", *(f"  {line}" for line in wrap(text, columns - 2))],
    "done": lambda text, columns: ["", *wrap(text, columns)],
}


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
        self.held: float | None = None
        self.verb = VERBS[0]
        self.tokens = 0
        self.activity: str | None = None
        self.left: str | None = None
        self.hint = ""
        self.right = screen.EFFORT
        self.alert = ""
        self.shells = 0
        self.shell_mode = False
        self.named = True
        self.dirty = False
        self.ticker: Timer | None = None
        self.title = ""

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
        self._tick()

    def hold(self) -> None:
        """A dialog is open: the time of the turn stands still."""
        self.held = time.monotonic()

    def go_on(self) -> None:
        """The dialog is gone."""
        if self.begun is not None and self.held is not None:
            self.begun += time.monotonic() - self.held
        self.held = None

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
        if item.kind == "welcome":
            fresh = item.text == "fresh"
            lines = screen.welcome(columns, self.session.project, self.session.model_label, fresh=fresh)
            return [*lines, ""]
        draw = _DRAW[item.kind]
        return draw(item.text, columns)

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
            hint=screen.COMPACT_HINT if self.editor.text == "/compact " else "",
        )
        stash = "› stashed" if self.editor.stash is not None else ""
        editing = "ctrl+g to edit in Vim" if "\n" in self.editor.text else ""
        footer = screen.Footer(
            mode=self.session.mode,
            busy=busy,
            agents=not self.session.flag("disableAgentView"),
            shells=self.shells,
            left="! for shell mode" if self.shell_mode else self.left,
            right=stash or self.hint or self.alert or editing or self.right,
            typed=bool(self.editor.text),
        )
        return screen.bottom(box, footer, columns)

    def frame(self, columns: int) -> tuple[list[str], list[str]]:
        """New finished lines, and the live ones."""
        done = [line for item in self.items[self.shown :] for line in self._item_lines(item, columns)]
        if self.shown == 0 and done and done[0] == "":
            done = done[1:]
        live = [line for item in self.live for line in self._item_lines(item, columns)] + self._spin()
        if self.dialog is not None:
            return done, live + ([""] if self.dialog.spaced else []) + [*self.dialog.lines(columns), ""]
        for i, (text, shell) in enumerate(self.queued):
            mark = "! " if shell else "❯ "
            rows = wrap(text, columns - 6)
            live += [""] if i == 0 else []
            live += [("  " + mark if j == 0 else "    ") + row for j, row in enumerate(rows)]
        # The real client's screen ends with an empty line, too.
        return done, live + ([] if self.queued else [""]) + [*self._bottom(columns), ""]

    def paint(self) -> None:
        """Write what changed."""
        if not self.dirty:
            return
        self.dirty = False
        columns, rows = self.session.size
        done, live = self.frame(columns)
        self.shown = len(self.items)
        write(self.painter.frame(done, live, rows))
        if len(self.items) > KEPT:
            self.items = self.items[-KEPT:]
            self.shown = len(self.items)

    def redraw(self) -> None:
        """Draw everything anew (another width, a cleared conversation)."""
        write(self.painter.reset())
        self.shown = 0
        self.dirty = True

    def set_title(self, mark: str) -> None:
        """The pane's title: a mark and the session's name."""
        if self.session.env.get("CLAUDE_CODE_DISABLE_TERMINAL_TITLE"):
            return
        title = f"{mark} {self.session.name or 'Claude Code'}"
        if title != self.title:
            self.title = title
            write(f"\x1b]0;{title}\x07".encode())
