"""Widths and wrapping as the client's renderer does them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.sim.cells import cut, width, wrap

ASKED = (
    '[[tool AskUserQuestion {"questions":[{"question":"Which lib?","header":"Library","multiSelect":false,"options":'
    '[{"label":"aiohttp","description":"async"},{"label":"flask","description":"sync"}]}]}]] [[say thanks]]'
)


def test_a_long_word_is_broken_where_the_real_client_breaks_it() -> None:
    """Captured at 80 columns."""
    assert wrap(ASKED, 77) == [
        '[[tool AskUserQuestion {"questions":[{"question":"Which',
        'lib?","header":"Library","multiSelect":false,"options":[{"label":"aiohttp","d',
        'escription":"async"},{"label":"flask","description":"sync"}]}]}]] [[say',
        "thanks]]",
    ]


def test_wide_characters_take_two_cells_and_joiners_none() -> None:
    assert width("日本") == 4
    assert width("e\u0301") == 1
    assert width("plain") == 5
    assert wrap("日本語です", 5) == ["日本", "語で", "す"]


def test_what_is_cut_ends_in_an_ellipsis() -> None:
    assert cut("abcdef", 4) == "abc…"
    assert cut("abc", 4) == "abc"
    assert cut("abc", 0) == ""


@given(st.text(alphabet="ab c日\n", max_size=80), st.integers(min_value=2, max_value=20))
def test_wrapped_lines_fit_and_lose_nothing_but_blanks(text: str, room: int) -> None:
    lines = wrap(text, room)
    assert all(width(line) <= room for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
