"""The panels of the dashboard: tables that keep their place, and lines that stay at their end."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.coordinate import Coordinate
from textual.message import Message
from textual.widgets import DataTable, Static

from nbs_fleet.top.grid import PADDING, Grid
from nbs_fleet.top.text import text_of, text_of_lines
from nbs_fleet.top.view import Line

BORDER, HEADER = 2, 1
"""Rows of a panel's border, and of the names of a table's columns."""


class Fitted(Message):
    """A panel has another size, or has one at all: what it shows can be made to fit."""


class Lines(VerticalScroll):
    """Lines of text. It shows the end as long as nobody has scrolled away from it."""

    def __init__(self, *, id: str, classes: str) -> None:  # noqa: A002 - the library's own name
        super().__init__(id=id, classes=classes)
        self._follows = True
        self._shown: list[Line] | None = None
        self._text = Static(markup=False)

    def compose(self) -> ComposeResult:
        """The text in it."""
        yield self._text

    def on_resize(self) -> None:
        """Its size is known now."""
        if self._follows:
            self.scroll_end(animate=False)
        self.post_message(Fitted())

    @property
    def room(self) -> int:
        """Columns for a line: without border, padding and scroll bar."""
        return max(self.size.width - 3, 1)

    def show(self, lines: list[Line]) -> None:
        """Put these lines in place of what is there."""
        if lines == self._shown or not self.size.width:
            return
        self._shown = lines
        self._text.update(text_of_lines(lines))
        if self._follows:
            self.scroll_end(animate=False)

    def again(self) -> None:
        """Something else is shown next: begin at its end."""
        self._follows = True

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Who scrolls away from the end stays where they are, until they come back to it."""
        super().watch_scroll_y(old_value, new_value)
        if old_value != new_value:
            self._follows = round(new_value) >= self.max_scroll_y


class Rows(DataTable[object]):
    """A table that says in the row of keys what Enter does."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Answer")]


class Table(Vertical):
    """A table whose cursor stays on its row while rows come and go, and a remark for when there are none."""

    def __init__(self, empty: str, *, id: str, classes: str) -> None:  # noqa: A002 - the library's own name
        super().__init__(id=id, classes=classes)
        self.table = Rows(cursor_type="row", cell_padding=PADDING // 2, cursor_foreground_priority="renderable")
        self._remark = Static(empty, classes="empty", markup=False)
        self._shown: Grid | None = None

    def compose(self) -> ComposeResult:
        """The table and the remark; a style shows one of them."""
        yield self.table
        yield self._remark

    def on_resize(self) -> None:
        """Its size is known now."""
        self.post_message(Fitted())

    @property
    def room(self) -> int:
        """Columns for a row: without border and scroll bar."""
        return max(self.size.width - 1, 1)

    @property
    def chosen(self) -> str:
        """The key of the row with the cursor; empty if there is none."""
        rows = self._shown.rows if self._shown else ()
        index = self.table.cursor_row
        return rows[index].key if 0 <= index < len(rows) else ""

    @property
    def needs(self) -> int:
        """Rows that show all of it, with its border."""
        rows = self._shown.rows if self._shown else ()
        return BORDER + (HEADER + len(rows) if rows else 1)

    def show(self, grid: Grid) -> None:
        """Put this table in place of what is there."""
        before = self._shown
        if grid == before or not self.size.width:
            return
        chosen = self.chosen
        self._shown = grid
        self.set_class(not grid.rows, "-empty")
        same = before is not None and before.columns == grid.columns
        if same and before is not None and [r.key for r in before.rows] == [r.key for r in grid.rows]:
            for y, (old, new) in enumerate(zip(before.rows, grid.rows, strict=True)):
                for x, cell in enumerate(new.cells):
                    if old.cells[x] != cell:
                        self.table.update_cell_at(Coordinate(y, x), text_of([cell]))
            return
        self._fill(grid, chosen)

    def choose(self, key: str) -> None:
        """Move the cursor to this row, if it is there."""
        for index, row in enumerate(self._shown.rows if self._shown else ()):
            if row.key == key and index != self.table.cursor_row:
                self.table.move_cursor(row=index)

    def _fill(self, grid: Grid, chosen: str) -> None:
        with self.prevent(DataTable.RowHighlighted):
            self.table.clear(columns=True)
            for name, width in grid.columns:
                self.table.add_column(text_of([name]), width=width)
            for row in grid.rows:
                self.table.add_row(*(text_of([cell]) for cell in row.cells), key=row.key)
            self.choose(chosen)


def title(line: Line) -> Content:
    """A title that is never read as markup."""
    return Content.from_rich_text(text_of(line))
