"""Tables and paragraphs fit, whatever is in them, and nothing in them steers a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.cli import output
from nbs_fleet.cli.output import Span
from nbs_fleet.top.grid import LEAST, PADDING, Column, cut_line, fit, paragraph

TEXTS = st.text("ab é日ｗ\t\n\x1b\x07[]/\u0301\u202e", max_size=30) | st.sampled_from(["[bold]x[/bold]", "\x1b[31mred"])
COLUMNS = (Column("NAME"), Column("MODEL", gives=True, above=60), Column("N", right=True), Column("WHAT", gives=True))


@given(
    rows=st.lists(st.tuples(TEXTS, TEXTS, TEXTS.map(lambda t: t[:4]), TEXTS), max_size=5), width=st.integers(50, 120)
)
def test_a_table_is_never_wider_than_its_place(rows: list[tuple[str, ...]], width: int) -> None:
    grid = fit(COLUMNS, [(str(i), row) for i, row in enumerate(rows)], width)
    assert sum(wide + PADDING for _, wide in grid.columns) <= width
    assert [name.strip() for name, _ in grid.columns] == [c.name for c in COLUMNS if width >= c.above]
    for row in grid.rows:
        for cell, (_, wide) in zip(row.cells, grid.columns, strict=True):
            assert output.width_of(cell.text) == wide
            assert cell.text.isprintable()


def test_what_gives_way_is_cut_before_what_does_not() -> None:
    columns = (Column("STATE"), Column("MODEL", gives=True))
    grid = fit(columns, [("a", ("blocked: permission", "claude-sonnet"))], 19 + LEAST + 2 * PADDING)
    assert [cell.text for cell in grid.rows[0].cells] == ["blocked: permission", "claude-…"]
    tighter = fit(columns, [("a", ("blocked: permission", "claude-sonnet"))], 15 + LEAST + 2 * PADDING)
    assert tighter.rows[0].cells[0].text == "blocked: permi…"


@given(
    text=TEXTS.flatmap(lambda t: st.lists(TEXTS, max_size=6).map(lambda more: " ".join([t, *more]))),
    width=st.integers(10, 60),
)
def test_a_paragraph_keeps_to_its_width_and_its_text(text: str, width: int) -> None:
    lines = paragraph(["09:00 ", Span("ana", "bold"), " "], text, width)
    plain = ["".join(piece if isinstance(piece, str) else piece.text for piece in line) for line in lines]
    assert all(output.width_of(line) <= width or width < 12 for line in plain)
    assert "".join("".join(plain).split()) == "".join(("09:00 ana " + output.clean(text)).split())


def test_further_lines_begin_below_the_first_word() -> None:
    lines = paragraph(["ana  "], "one two three", 12)
    assert [[p if isinstance(p, str) else p.text for p in line] for line in lines] == [
        ["ana  ", "one two"],
        ["     ", "three"],
    ]


@pytest.mark.parametrize(("width", "expected"), [(9, "one two"), (7, "one two"), (6, "one t…"), (1, "…")])
def test_a_line_is_cut_with_an_ellipsis(width: int, expected: str) -> None:
    assert (
        "".join(p if isinstance(p, str) else p.text for p in cut_line(["one ", Span("two", "dim")], width)) == expected
    )
