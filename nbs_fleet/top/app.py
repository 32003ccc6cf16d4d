"""The dashboard itself: panels filled from views, looks taken when something changed, keys that run commands."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ClassVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import DataTable, Footer, Static

from nbs_fleet.attention.queue import Item
from nbs_fleet.cli import output
from nbs_fleet.errors import FleetError
from nbs_fleet.launch.deathwatch import DeathWatch
from nbs_fleet.model import ProcId
from nbs_fleet.top import acts, view
from nbs_fleet.top.dialogs import Answering, Reading, Sure, Writing
from nbs_fleet.top.look import Look, Mirror, Wish
from nbs_fleet.top.pace import Pace
from nbs_fleet.top.sources import Source
from nbs_fleet.top.text import text_of
from nbs_fleet.top.widgets import Lines, Table, title

SPACING = 0.25
"""Seconds between two looks at least, however often something changes."""
POLL = 30.0
"""Seconds after which a look is taken anyway: some network file systems tell nothing of changes."""
PANELS = ("queue", "screen", "story", "chat")
HELP = (
    ("up, down", "choose an agent, or an item of the queue"),
    ("tab", "go to the next panel"),
    ("1 2 3 4", "show what waits, the screen, the story, the chat"),
    ("enter", "answer what waits: the chosen item, or the agent's first"),
    ("a", "attach: go to the agent's pane; leave it with Ctrl-b d"),
    ("s", "send the agent a message"),
    ("r", "restart the agent in the session it has"),
    ("p", "pause the agent, or let it go on"),
    ("k", "skip the item: it goes behind all others"),
    ("c", "show the next chat"),
    ("q", "leave; the team goes on"),
)

Perform = Callable[[acts.Act], Awaitable[acts.Done]]


class Top(App[None]):
    """One team on one screen. `clock` tells wall seconds; `perform` runs what a person wants done; `parent`: it ends with it.

    `queue_first`: it begins in the queue, with the agent that has waited the longest.
    """

    CSS_PATH = "style.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (view.WIDE, "-wide")]  # noqa: RUF012 - as the library declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "answer", "Answer"),
        Binding("a", "attach", "Attach"),
        Binding("s", "send", "Send"),
        Binding("r", "restart", "Restart"),
        Binding("p", "pause", "Pause"),
        Binding("k", "skip", "Skip"),
        Binding("c", "chat", "Chat", show=False),
        *(Binding(f"{n + 1}", f"panel({n})", name.title(), show=False) for n, name in enumerate(PANELS)),
        Binding("question_mark", "help", "Help"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False),
    ]

    def __init__(
        self,
        source: Source,
        perform: Perform,
        *,
        clock: Callable[[], float],
        attach: Callable[[str], list[str]],
        home: str = "",
        parent: ProcId | None = None,
        queue_first: bool = False,
    ) -> None:
        super().__init__()
        self._source, self._perform, self._clock, self._attaching = source, perform, clock, attach
        self._home, self._parent_proc = home, parent
        self._deaths: DeathWatch | None = None
        self._queue_first = queue_first
        self._look: Look | None = None
        self._trouble = ""
        self._mirror: Mirror | None = None
        self._wish = Wish()
        self._changed = asyncio.Event()
        self._turned = asyncio.Event()
        self._agents = Table("No agents.", id="agents", classes="panel")
        self._queue = Table("Nothing waits for you.", id="queue", classes="panel lower -shown")
        self._screen = Lines(id="screen", classes="panel lower")
        self._story = Lines(id="story", classes="panel lower")
        self._chat = Lines(id="chat", classes="panel lower")

    def compose(self) -> ComposeResult:
        """Header, panels in the order in which the wide grid takes them, keys."""
        yield Static(id="header", markup=False)
        with Container(id="body"):
            yield from (self._agents, self._screen, self._queue, self._story, self._chat)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to look."""
        (self._queue if self._queue_first else self._agents).table.focus()
        self._follow()
        self._watch_screen()
        if self._parent_proc is not None:
            self._deaths = DeathWatch()
            self._deaths.add(self._parent_proc, lambda _: self.exit())

    def on_unmount(self) -> None:
        """Let go of what was watched."""
        if self._deaths is not None:
            self._deaths.close()
        self._source.close()

    @work(exclusive=True, group="follow")
    async def _follow(self) -> None:
        """Look when something has changed; in between only let times grow."""
        while True:
            self._changed.clear()
            await self._take()
            await asyncio.sleep(SPACING)
            await self._until_changed()

    async def _take(self) -> None:
        wished = self._wish
        try:
            self._look = await asyncio.to_thread(self._source.look, wished)
            self._trouble = ""
            self._source.watch(self._look, self._changed.set)
            if self._wish == wished:  # else the person has chosen something else meanwhile
                self._wish = Wish(self._look.handle, self._look.chat)
                if wished.handle != self._look.handle:
                    self._turned.set()
        except FleetError as error:
            self._trouble = error.message.splitlines()[0]
        self._draw()
        item = self._item() if self._queue_first else None
        if item is not None:
            self._queue_first = False
            self._turn(Wish(item.handle or self._wish.handle, self._wish.chat))

    async def _until_changed(self) -> None:
        end = asyncio.get_running_loop().time() + POLL
        while (left := end - asyncio.get_running_loop().time()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, view.rest(self._look, self._clock()))):
                    await self._changed.wait()
                    return
            self._draw()

    @work(exclusive=True, group="screen")
    async def _watch_screen(self) -> None:
        """Look at the screen of the selected agent, rarely while it stays the same, never while it is not shown."""
        pace = Pace()
        while True:
            self._turned.clear()
            if self._wish.handle and self._shows_screen():
                handle = self._wish.handle
                with suppress(FleetError):
                    seen = await asyncio.to_thread(self._source.mirror, handle)
                    pace = pace.after(changed=seen != self._mirror)
                    if handle == self._wish.handle:
                        self._mirror = seen
                        self._draw()
            with suppress(TimeoutError):
                async with asyncio.timeout(pace.seconds if self._shows_screen() else None):
                    await self._turned.wait()
                pace = Pace()

    def _shows_screen(self) -> bool:
        return self._screen.display and self._screen.size.width > 0

    def _draw(self) -> None:
        """Bring every panel up to date; what did not change costs nothing."""
        if not self.is_running:
            return
        now, look = self._clock(), self._look
        width = self.size.width
        self.query_one("#header", Static).update(text_of(view.header(look, self._trouble, now, width, self._home)))
        if look is None:
            return
        handle = self._wish.handle
        self._agents.border_title = title(["Agents"])
        self._agents.show(view.agents(look, now, self._agents.room))
        # An automatic height is sometimes taken before the table has counted its rows, and then stays none.
        self._agents.styles.height = None if width >= view.WIDE else self._agents.needs
        self._draw_titles(look, now, width)
        self._queue.show(view.queue(look, now, self._queue.room))
        self._chat.show(view.chat(look, now, self._chat.room))
        if look.handle == handle:
            self._story.show(view.story(look, now, self._story.room))
        mirror = self._mirror if self._mirror and self._mirror.handle == handle else None
        self._screen.show(view.screen(mirror, now, self._screen.room))

    def _draw_titles(self, look: Look, now: float, width: int) -> None:
        """Each panel its title; where they share one place, all titles stand above it."""
        names = view.titles(look, self._wish.handle, now, wide=width >= view.WIDE)
        for number, panel in enumerate(self._lower()):
            panel.border_title = title(view.tabs(names, number) if width < view.WIDE else [names[number]])

    def _lower(self) -> tuple[Table | Lines, ...]:
        return (self._queue, self._screen, self._story, self._chat)

    def on_fitted(self) -> None:
        """A panel has another size: draw it anew, and look at the screen if that is it."""
        self._draw()
        self._turned.set()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """The cursor moved: in the list of agents, or to an item of one."""
        handle = self._agents.chosen
        if event.data_table is self._queue.table:
            item = self._item() if self._queue.table.has_focus else None
            handle = item.handle if item else ""
        if handle and handle != self._wish.handle:
            self._turn(Wish(handle, self._wish.chat))

    def on_data_table_row_selected(self) -> None:
        """Enter in a table, or a second click."""
        self.action_answer()

    def _turn(self, wish: Wish) -> None:
        """Look at something else from now on."""
        if wish.handle != self._wish.handle:
            self._screen.again()
            self._story.again()
        if wish.chat != self._wish.chat:
            self._chat.again()
        self._wish = wish
        self._agents.choose(wish.handle)
        self._changed.set()
        self._turned.set()
        self._draw()

    def _item(self) -> Item | None:
        """The item with the cursor if the queue has the focus, else the first one of the selected agent."""
        if self._look is None:
            return None
        chosen = self._queue.chosen if self._queue.table.has_focus else ""
        return view.find_item(self._look, self._clock(), chosen, self._wish.handle)

    def action_panel(self, number: int) -> None:
        """Show a panel, and go there."""
        for other, panel in enumerate(self._lower()):
            panel.set_class(other == number, "-shown")
        panel = self._lower()[number]
        (panel.table if isinstance(panel, Table) else panel).focus()
        self._draw()

    def action_chat(self) -> None:
        """Show the next chat."""
        if self._look is not None and self._look.chats:
            chats = self._look.chats
            following = (chats.index(self._look.chat) + 1) % len(chats) if self._look.chat in chats else 0
            self._turn(Wish(self._wish.handle, chats[following]))

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Reading(view.keys(HELP)))

    @work(exclusive=True, group="dialog")
    async def action_answer(self) -> None:
        """Ask which answer, and give it."""
        item = self._item()
        if item is None:
            self._say("nothing of it waits for you")
        elif not item.need.options:
            self._say(f"{item.id} has no answers to choose from; a goes there")
        else:
            given = await self.push_screen_wait(Answering(item))
            if given is not None:
                self._do(acts.answer(item.id, *given))

    @work(exclusive=True, group="dialog")
    async def action_send(self) -> None:
        """Ask for a message, and send it."""
        handle = self._wish.handle
        text = await self.push_screen_wait(Writing(handle)) if handle else None
        if text:
            self._do(acts.send(handle, text))

    @work(exclusive=True, group="dialog")
    async def action_restart(self) -> None:
        """Restart the selected agent, if that is meant."""
        handle = self._wish.handle
        if not handle:
            return
        if await self.push_screen_wait(Sure(f"Restart {handle}? What it is doing is broken off.")):
            self._do(acts.restart(handle))

    def action_pause(self) -> None:
        """Leave the selected agent in peace, or end that."""
        handle = self._wish.handle
        if self._look is not None and handle:
            self._do(acts.pause(handle, paused=view.is_paused(self._look, handle)))

    def action_skip(self) -> None:
        """Put the chosen item behind all others."""
        item = self._item()
        if item is not None:
            self._do(acts.skip(item.id))

    def action_attach(self) -> None:
        """Give the terminal to the agent's pane until the person detaches."""
        handle = self._wish.handle
        if not handle:
            return
        if self.is_web:
            self._say(f"a browser has no terminal to attach: nbs-fleet attach {handle}")
            return
        with self.suspend():
            code = subprocess.run(self._attaching(handle), check=False).returncode
        if code:
            self._say(f"attach ended with {code}", wrong=True)
        self._changed.set()

    @work(group="acts")
    async def _do(self, act: acts.Act) -> None:
        """Run a command beside the dashboard, and say how it ended."""
        self._say(f"{act.said} …")
        done = await self._perform(act)
        self._say(done.said or f"{act.said}: done", wrong=bool(done.code))
        self._changed.set()
        self._turned.set()

    def _say(self, text: str, *, wrong: bool = False) -> None:
        self.notify(output.clean(text), severity="error" if wrong else "information", markup=False, timeout=8)
