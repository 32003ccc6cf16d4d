"""Pieces as the terminal library's own text: never read as markup."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from nbs_fleet.cli import output
from nbs_fleet.cli.output import Piece
from nbs_fleet.top.view import Line


def text_of(pieces: Iterable[Piece]) -> Text:
    """One line."""
    made = Text(no_wrap=True, end="")
    for piece in pieces:
        words, style = (piece, "") if isinstance(piece, str) else piece
        made.append(output.clean(words), style)
    return made


def text_of_lines(lines: Iterable[Line]) -> Text:
    """Several lines."""
    return Text("\n", no_wrap=True, end="").join(text_of(line) for line in lines)
