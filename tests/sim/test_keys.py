"""Bytes of the terminal become the keys that the real client makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.sim.editor import Editor
from nbs_fleet.sim.keys import PASTE_BYTES, Key, Parser


def keys(*reads: bytes) -> list[Key]:
    parser = Parser()
    return [key for data in reads for key in parser.feed(data)]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\r", "enter"),
        (b"\n", "newline"),
        (b"\t", "tab"),
        (b"\x7f", "backspace"),
        (b"\x03", "ctrl-c"),
        (b"\x04", "ctrl-d"),
        (b"\x13", "ctrl-s"),
        (b"\x1b[A", "up"),
        (b"\x1bOB", "down"),
        (b"\x1b[Z", "shift-tab"),
        (b"\x1b[3~", "delete"),
        (b"\x1b[I", "focus"),
        (b"\x1b\r", "newline"),
        (b"\x1bp", "alt-p"),
    ],
)
def test_a_sequence_is_one_key(data: bytes, name: str) -> None:
    assert keys(data) == [Key(name)]


def test_unknown_sequences_and_answers_of_the_terminal_are_no_keys() -> None:
    assert keys(b"\x1b[?1;2c\x1b[5;5Hx") == [Key("text", "x")]


def test_short_text_with_enter_in_one_read_submits() -> None:
    assert keys(b"hello\r") == [Key("text", "hello"), Key("enter")]


def test_a_long_read_is_a_paste_and_its_enter_a_line_break() -> None:
    """Measured: 60 characters and Enter in one read submit, 70 do not."""
    assert keys(b"x" * 60 + b"\r")[-1] == Key("enter")
    assert keys(b"x" * 70 + b"\r") == [Key("paste", "x" * 70 + "\r")]


def test_a_bracketed_paste_is_whole_however_it_is_cut_into_reads() -> None:
    data = b"\x1b[200~one\r\ntwo\tthree\x1b[201~\r"
    for cut in range(1, len(data)):
        found = keys(data[:cut], data[cut:])
        assert found == [Key("paste", "one\ntwo\tthree"), Key("enter")]


def test_a_lone_escape_waits_for_more_and_is_a_key_if_nothing_comes() -> None:
    parser = Parser()
    assert parser.feed(b"\x1b") == []
    assert parser.waiting
    assert parser.flush() == [Key("esc")]
    assert not parser.waiting
    assert parser.feed(b"\x1b") + parser.feed(b"[A") == [Key("up")]


def test_two_escapes_in_one_read_are_two_keys() -> None:
    parser = Parser()
    assert parser.feed(b"\x1b\x1b") + parser.flush() == [Key("esc"), Key("esc")]


@given(st.text(alphabet=st.characters(min_codepoint=32, exclude_characters="\x7f", exclude_categories=["Cs", "Cc"])))
def test_a_bracketed_paste_brings_any_text_byte_for_byte(text: str) -> None:
    assert keys(b"\x1b[200~" + text.encode() + b"\x1b[201~") == [Key("paste", text)]


@given(st.lists(st.binary(max_size=90), max_size=6))
def test_no_bytes_break_the_parser(reads: list[bytes]) -> None:
    parser = Parser()
    for data in reads:
        parser.feed(data)
    parser.flush()


@given(st.text(alphabet=st.characters(min_codepoint=33, exclude_categories=["Cs", "Cc", "Zs"]), max_size=40))
def test_typed_text_arrives_though_its_characters_are_cut_between_reads(text: str) -> None:
    data = text.encode()
    if len(data) >= PASTE_BYTES:
        return
    found = keys(*(data[i : i + 1] for i in range(len(data))))
    assert "".join(key.text for key in found) == text


# --- the box


def edited(*pressed: Key) -> Editor:
    editor = Editor()
    for key in pressed:
        assert editor.key(key)
    return editor


def test_a_paste_turns_tabs_into_blanks_and_long_ones_fold_until_they_are_sent() -> None:
    editor = edited(Key("paste", "a\tb"))
    assert editor.text == "a    b"
    long = "line\n" * 5
    editor.key(Key("paste", long))
    assert editor.text == "a    b[Pasted text #1 +5 lines]"
    assert editor.take() == ("a    b" + long).rstrip()
    assert editor.text == ""


def test_trailing_blanks_are_trimmed_and_leading_ones_stay() -> None:
    assert edited(Key("paste", "  x \r\n")).take() == "  x"


def test_a_stashed_draft_comes_back_after_the_next_prompt() -> None:
    editor = edited(Key("text", "half typed"))
    editor.swap_stash()
    assert (editor.text, editor.stash) == ("", "half typed")
    editor.key(Key("paste", "injected"))
    assert editor.take() == "injected"
    assert (editor.text, editor.stash) == ("half typed", None)


def test_stashing_an_empty_box_brings_the_stash_back() -> None:
    editor = edited(Key("text", "x"))
    editor.swap_stash()
    editor.swap_stash()
    assert editor.text == "x"


def test_killing_backwards_takes_a_line_then_its_break() -> None:
    editor = edited(Key("text", "one"), Key("newline"), Key("text", "two"))
    editor.key(Key("ctrl-u"))
    assert editor.text == "one\n"
    editor.key(Key("ctrl-u"))
    assert editor.text == "one"
    editor.key(Key("ctrl-y"))
    assert editor.text == "one\n"


def test_the_cursor_moves_and_words_can_be_killed() -> None:
    editor = edited(Key("text", "one two"), Key("home"), Key("right"), Key("text", "X"), Key("end"), Key("ctrl-w"))
    assert editor.text == "oXne "
    assert not editor.key(Key("alt-q"))
