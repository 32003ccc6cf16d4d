"""The only printer: lines, tables, JSON; colour where it helps; nothing from agents reaches the terminal raw."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TextIO

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
SCHEMA = 1
_ZWJ = 0x200D


class Span(NamedTuple):
    """A piece of text with a style (a key of STYLES); drawn plain where colour is off."""

    text: str
    style: str = ""


Piece = str | Span


def say(*pieces: Piece) -> None:
    """Print one line (or several, if a piece has line ends) on stdout."""
    _write(sys.stdout, pieces)


def note(*pieces: Piece) -> None:
    """Print one line on stderr: progress and remarks that are not the answer."""
    _write(sys.stderr, pieces)


def error(message: str, hint: str | None = None) -> None:
    """Print what failed, and how to mend it, on stderr."""
    sys.stdout.flush()
    note(Span("error: ", "red"), message)
    if hint:
        note(Span("hint: ", "cyan"), hint)


def clear() -> None:
    """Empty the terminal before something is shown again; a pipe gets a blank line."""
    _emit(sys.stdout, "\x1b[H\x1b[2J" if interactive() else "\n")


def json(value: dict[str, Any]) -> None:
    """Print one JSON object, `{"schema": 1, ...}`, on one line. Structs, tuples and enums may stand in it."""
    _json(({"schema": SCHEMA} | value,))


def ndjson(values: Iterable[Any]) -> None:
    """Print one JSON value per line, each flushed, for readers that follow."""
    _json(values)


def table(
    rows: Sequence[Sequence[Piece]],
    *,
    header: Sequence[str] = (),
    right: Sequence[int] = (),
    indent: int = 0,
) -> None:
    """Print aligned columns, cut to the terminal's width; `right` numbers the columns that align right."""
    for pieces in lay_out(rows, header=header, right=right, indent=indent, width=terminal_width()):
        say(*pieces)


def lay_out(
    rows: Sequence[Sequence[Piece]],
    *,
    header: Sequence[str] = (),
    right: Sequence[int] = (),
    indent: int = 0,
    width: int | None = None,
) -> list[list[Piece]]:
    """The lines of a table, each as pieces; `width` cuts them (None: never).

    Rows may differ in length; the last cell of a row may be as long as it likes and widens no column.
    """
    cells = [[_span(cell) for cell in row] for row in rows]
    if header:
        cells.insert(0, [Span(name, "bold") for name in header])
    columns = max((len(row) for row in cells), default=0)
    wide = [max((width_of(row[i].text) for row in cells if i < len(row) - 1), default=0) for i in range(columns)]
    lines: list[list[Piece]] = []
    for row in cells:
        line: list[Piece] = [" " * indent]
        room = None if width is None else width - indent
        for i, cell in enumerate(row):
            text = pad(cell.text, wide[i], right=i in right)
            if room is not None:
                text = cut(text, room)
                room -= width_of(text) + 2
            line += [Span(text, cell.style), "  "]
            if room is not None and room <= 0:
                break
        lines.append(_trimmed(line))
    return lines


def _trimmed(line: list[Piece]) -> list[Piece]:
    while line and not (line[-1] if isinstance(line[-1], str) else line[-1].text).strip():
        line.pop()
    if line and isinstance(line[-1], Span):
        line[-1] = Span(line[-1].text.rstrip(), line[-1].style)
    return line


def _span(cell: Piece) -> Span:
    text, style = (cell, "") if isinstance(cell, str) else cell
    return Span(clean(text).replace("\n", " "), style)


def clean(text: str) -> str:
    """The text without what steers a terminal or hides text: control characters, invisible format characters.

    They become visible (`^[` for Escape); line ends stay, tabs and odd blanks become blanks.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _visible(c) for c in text)


def _visible(char: str) -> str:
    from unicodedata import category

    code = ord(char)
    if char == "\t":
        return "    "
    if code < 0x20:
        return f"^{chr(code + 0x40)}"
    kind = category(char)
    if kind == "Zs":
        return " "
    # Private-use and unassigned characters are glyphs of fonts or newer than this Python; joined emoji need ZWJ.
    if kind in ("Co", "Cn") or code == _ZWJ:
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def width_of(text: str) -> int:
    """How many columns a terminal gives this text (wide and combining characters counted as such)."""
    if text.isascii():
        return len(text)
    return sum(_widths(text))


def _widths(text: str) -> list[int]:
    from unicodedata import category, east_asian_width

    found: list[int] = []
    joined = False
    for char in text:
        code = ord(char)
        if code == 0xFE0F and found and found[-1] == 1:
            found[-1] = 2  # "show it as an emoji": two columns
            found.append(0)
        elif code == _ZWJ or joined or 0x1F3FB <= code <= 0x1F3FF or category(char) in ("Mn", "Me", "Cf"):
            found.append(0)
        else:
            found.append(2 if east_asian_width(char) in "WF" else 1)
        joined = code == _ZWJ
    return found


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text filled with blanks to `width` columns."""
    blanks = " " * (width - width_of(text))
    return blanks + text if right else text + blanks


def cut(text: str, width: int) -> str:
    """The text cut to `width` columns, with an ellipsis where something is missing."""
    if width_of(text) <= width:
        return text
    if width <= 0:
        return ""
    room, end = width - 1, 0
    for size in _widths(text):
        room -= size
        if room < 0:
            break
        end += 1
    return text[:end] + "…"


def terminal_width() -> int | None:
    """Columns of the terminal that stdout is, else None."""
    if not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except OSError:
        return None


def colour(stream: TextIO) -> bool:
    """Colour is wanted: a terminal, and neither NO_COLOR nor TERM=dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def interactive() -> bool:
    """A person reads stdout as it is written (progress may redraw)."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _write(stream: TextIO, pieces: Iterable[Piece]) -> None:
    paint = colour(stream)
    parts = []
    for piece in pieces:
        text, style = (piece, "") if isinstance(piece, str) else piece
        text = clean(text)
        parts.append(f"\x1b[{STYLES[style]}m{text}\x1b[0m" if paint and style and text else text)
    _emit(stream, "".join(parts) + "\n")


def _json(values: Iterable[Any]) -> None:
    from json import dumps

    plain = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    for value in values:
        text = dumps(value, ensure_ascii=not plain, default=_builtins)
        # What JSON leaves as it is, a terminal may take for the start of a command.
        _emit(sys.stdout, "".join(f"\\u{ord(c):04x}" if "\x7f" <= c <= "\x9f" else c for c in text) + "\n")
        sys.stdout.flush()


def _builtins(value: object) -> Any:
    from msgspec import to_builtins

    return to_builtins(value)


def _emit(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
