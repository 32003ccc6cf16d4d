"""The cursor file: what is read from it, and what a rewriting keeps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.nbs import cursors

handles = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,62}", fullmatch=True)


def test_the_known_example() -> None:
    data = "# Read cursors — last-read message index per handle\nana=12\nbo=9\n".encode()
    assert cursors.parse(data) == {"ana": 12, "bo": 9}
    assert cursors.render({"ana": 12, "bo": 9}) == data


@given(st.dictionaries(handles, st.integers(min_value=-1, max_value=2**31 - 2), max_size=20))
def test_what_is_written_is_read(values: dict[str, int]) -> None:
    assert cursors.parse(cursors.render(dict(values))) == values


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read_and_written_back(data: bytes) -> None:
    found = cursors.parse(data)
    again = cursors.parse(cursors.render(found))
    assert again == {handle: index or 0 for handle, index in found.items()}


def test_damage_is_left_out_and_unreadable_values_become_zero() -> None:
    found = cursors.parse(b"ana=x\nno sign\n=5\n" + b"y" * 64 + b"=1\nbo= 7\r\nbo=9\ncy=99999999999\n#dora=1\n")
    assert found == {"ana": None, "bo": 7, "cy": None}
    assert cursors.parse(cursors.render(found)) == {"ana": 0, "bo": 7, "cy": 0}


def test_an_archiving_moves_all_cursors_but_none_below_zero() -> None:
    assert cursors.shifted({"ana": 1500, "bo": 400, "cy": None}, 1000) == {"ana": 500, "bo": 0, "cy": 0}


def test_a_cursor_as_a_reader_takes_it() -> None:
    cases = ((None, 5, -1), (-2, 5, -1), (3, 5, 3), (4, 5, 4), (9, 5, 4), (0, 0, -1))
    assert [cursors.effective(index, count) for index, count, _ in cases] == [wanted for _, _, wanted in cases]
