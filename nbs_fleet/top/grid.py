"""Tables and paragraphs that fit a given width: pieces in, pieces out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from nbs_fleet.cli import output
from nbs_fleet.cli.output import Piece, Span

LEAST = 8
"""Columns that a shrunk column keeps."""
PADDING = 2
"""Blank columns that belong to each column of a table."""


class Column(Struct, frozen=True):
    """One column: its heading, whether it aligns right, whether it gives way before others where room is short.

    `above`: it is left out where the table has fewer columns of the terminal than that.
    """

    name: str
    right: bool = False
    gives: bool = False
    above: int = 0


class Row(Struct, frozen=True):
    """One row under a key that stays the same as long as it is about the same thing."""

    key: str
    cells: tuple[Span, ...]


class Grid(Struct, frozen=True):
    """A table that fits: headings with their widths (without padding), and rows of cells that are cut and padded."""

    columns: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]


def span(piece: Piece) -> Span:
    """A piece as one clean line with a style."""
    text, style = (piece, "") if isinstance(piece, str) else piece
    return Span(output.clean(text).replace("\n", " "), style)


def fit(columns: Sequence[Column], rows: Iterable[tuple[str, Sequence[Piece]]], width: int) -> Grid:
    """The table in `width` columns of the terminal: what gives way is cut first, then the widest of the others."""
    kept = [i for i, column in enumerate(columns) if width >= column.above]
    cleaned = [(key, [span(cells[i]) for i in kept]) for key, cells in rows]
    heads = [columns[i] for i in kept]
    wide = [
        max([output.width_of(c.name), *(output.width_of(r[i].text) for _, r in cleaned)]) for i, c in enumerate(heads)
    ]
    over = sum(wide) + PADDING * len(heads) - width
    for able in ([c.gives for c in heads], [not c.right for c in heads]):
        while over > 0:
            widest = max((i for i, may in enumerate(able) if may), key=wide.__getitem__, default=None)
            if widest is None or wide[widest] <= LEAST:
                break
            wide[widest] -= 1
            over -= 1
    if over < 0 and not heads[-1].right:
        wide[-1] -= over
    names = tuple((_cell(c.name, wide[i], right=c.right), wide[i]) for i, c in enumerate(heads))
    made = [
        Row(
            key,
            tuple(Span(_cell(cell.text, wide[i], right=heads[i].right), cell.style) for i, cell in enumerate(cells)),
        )
        for key, cells in cleaned
    ]
    return Grid(names, tuple(made))


def paragraph(head: Sequence[Piece], text: str, width: int, style: str = "") -> list[list[Piece]]:
    """The text behind its head, wrapped to `width` columns; further lines begin below the text's first word."""
    begin = [span(piece) for piece in head]
    indent = sum(output.width_of(piece.text) for piece in begin)
    if indent > width // 2:
        indent = 2
        room_first = max(width - sum(output.width_of(piece.text) for piece in begin), 1)
    else:
        room_first = width - indent
    lines = _wrapped(output.clean(text), room_first, max(width - indent, 1))
    made: list[list[Piece]] = [[*begin, Span(lines[0], style)]]
    made += [[" " * indent, Span(line, style)] for line in lines[1:]]
    return made


def cut_line(pieces: Iterable[Piece], width: int) -> list[Piece]:
    """The line cut to `width` columns, with an ellipsis where something is missing."""
    line: list[Piece] = []
    room = width
    for piece in (span(p) for p in pieces):
        size = output.width_of(piece.text)
        if size > room:
            line.append(Span(output.cut(piece.text, room), piece.style))
            break
        line.append(piece)
        room -= size
    return line


def _cell(text: str, width: int, *, right: bool) -> str:
    return output.pad(output.cut(text, width), width, right=right)


def _wrapped(text: str, first: int, width: int) -> list[str]:
    """Lines of at most `first`, then `width` columns; words are kept whole where they fit."""
    lines: list[str] = []
    for source in text.split("\n"):
        line = ""
        for word in source.split(" "):
            room = width if lines else first
            joined = f"{line} {word}" if line else word
            if output.width_of(joined) <= room:
                line = joined
                continue
            if line:
                lines.append(line)
                room = width
            while output.width_of(word) > room:
                part = _prefix(word, room)
                lines.append(part)
                word = word[len(part) :]  # noqa: PLW2901 - what is left of it
                room = width
            line = word
        lines.append(line)
    return lines


def _prefix(word: str, room: int) -> str:
    """As much of the word as `room` columns hold, one character at least."""
    end = 1
    while end < len(word) and output.width_of(word[: end + 1]) <= room:
        end += 1
    return word[:end]
