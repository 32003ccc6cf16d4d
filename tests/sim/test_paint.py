"""Whatever was drawn before, the terminal shows the new frame."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.sim.paint import Painter

COLUMNS, ROWS = 6, 8


class Glass:
    """A terminal that knows what the painter uses: text, CR LF, up, erase line, erase below, clear."""

    def __init__(self) -> None:
        self.lines = [""] * ROWS
        self.above: list[str] = []
        self.row = self.column = 0

    def feed(self, data: bytes) -> None:
        for part in re.findall(r"\x1b\[[0-9]*[A-Z]|\r|\n|[^\x1b\r\n]+", data.decode()):
            self.one(part)

    def one(self, part: str) -> None:
        if part == "\r":
            self.column = 0
        elif part == "\n":
            if self.row == ROWS - 1:
                self.above.append(self.lines.pop(0))
                self.lines.append("")
            else:
                self.row += 1
        elif part == "\x1b[2K":
            self.lines[self.row] = ""
        elif part.endswith("A"):
            self.row = max(0, self.row - int(part[2:-1]))
        elif part == "\x1b[J":
            self.lines[self.row] = self.lines[self.row][: self.column]
            self.lines[self.row + 1 :] = [""] * (ROWS - self.row - 1)
        else:
            assert not part.startswith("\x1b"), part
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + part + line[self.column + len(part) :]
            self.column += len(part)
            assert self.column <= COLUMNS

    def everything(self) -> list[str]:
        lines = self.above + self.lines
        while lines and not lines[-1]:
            lines.pop()
        return lines


line = st.text(alphabet="abc", max_size=COLUMNS)
frames = st.lists(st.tuples(st.lists(line, max_size=4), st.lists(line, min_size=1, max_size=ROWS)), max_size=12)


@given(frames)
def test_every_frame_is_shown_under_all_that_was_finished(history: list[tuple[list[str], list[str]]]) -> None:
    painter, glass = Painter(), Glass()
    finished: list[str] = []
    for done, live in history:
        glass.feed(painter.frame(done, live, ROWS))
        finished += done
        wanted = finished + live
        shown = glass.everything()
        while wanted and not wanted[-1]:
            wanted = wanted[:-1]
        visible = [text.rstrip() for text in shown]
        # Lines that had scrolled away above the screen can't be redrawn; the rest must be exact.
        assert visible[-min(len(wanted), len(live)) :] == wanted[-min(len(wanted), len(live)) :] or not wanted


def test_an_unchanged_frame_costs_nothing() -> None:
    painter = Painter()
    assert painter.frame([], ["a", "b"], ROWS)
    assert painter.frame([], ["a", "b"], ROWS) == b""


def test_only_the_changed_tail_is_written() -> None:
    painter = Painter()
    painter.frame([], ["top", "old"], ROWS)
    assert painter.frame([], ["top", "new"], ROWS) == b"\r\x1b[2Knew"


def test_a_frame_higher_than_the_screen_keeps_its_lower_end() -> None:
    painter = Painter()
    painter.frame([], [str(i) for i in range(20)], 5)
    assert painter.live == ["15", "16", "17", "18", "19"]


def test_after_a_reset_everything_is_drawn_again() -> None:
    painter = Painter()
    painter.frame([], ["a"], ROWS)
    assert b"\x1b[2J" in painter.reset()
    assert painter.frame([], ["a"], ROWS) == b"\r\x1b[2Ka"
