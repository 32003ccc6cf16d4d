"""The printer: alignment, cutting, colour, JSON, and nothing that steers a terminal."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.cli import output
from nbs_fleet.cli.output import Span
from nbs_fleet.model import AgentState, ProcId


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who has nothing against colour."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def drawn(stream: io.StringIO, *pieces: output.Piece) -> str:
    with redirect_stdout(stream):
        output.say(*pieces)
    return stream.getvalue()


def text_of(lines: list[list[output.Piece]]) -> list[str]:
    return ["".join(p if isinstance(p, str) else p.text for p in line) for line in lines]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("日本", 4),
        ("é", 1),
        ("e\u0301", 1),
        ("🙂", 2),
        ("👍🏽", 2),
        ("👩\u200d💻", 2),
        ("☁\ufe0f", 2),
        ("✳ bo-2", 6),
        ("", 0),
    ],
)
def test_the_width_of_text_is_what_a_terminal_gives_it(text: str, columns: int) -> None:
    assert output.width_of(text) == columns


def test_columns_align_whatever_characters_are_in_them() -> None:
    lines = text_of(output.lay_out([("日本", "1", "x"), ("a", "12", "y")], header=("NAME", "N", "Z"), right=(1,)))
    assert lines == ["NAME   N  Z", "日本   1  x", "a     12  y"]


def test_rows_may_differ_in_length_and_lines_have_no_blanks_at_the_end() -> None:
    assert text_of(output.lay_out([("a", "", ""), ("bb", "c", "d"), ()], indent=2)) == ["  a", "  bb  c  d", ""]


@given(st.lists(st.lists(st.text(max_size=12), max_size=4), max_size=4), st.integers(5, 40))
def test_no_line_of_a_table_is_wider_than_the_terminal(rows: list[list[str]], width: int) -> None:
    for line in text_of(output.lay_out(rows, width=width)):
        assert output.width_of(line) <= width


@given(st.text(), st.integers(0, 20))
def test_cut_text_fits_and_says_that_something_is_missing(text: str, width: int) -> None:
    short = output.cut(text, width)
    assert output.width_of(short) <= width
    assert short == text or not width or short.endswith("…")


@given(st.text(st.characters(exclude_categories=())))
def test_clean_text_holds_no_control_characters(text: str) -> None:
    assert not [c for c in output.clean(text) if (ord(c) < 0x20 and c != "\n") or 0x7F <= ord(c) < 0xA0]


def test_escape_sequences_become_visible_and_bidirectional_marks_too() -> None:
    assert output.clean("\x1b[2Jx\x9b31m\u202e\r\x07") == "^[[2Jx\\x9b31m\\u202e^M^G"


def test_what_harmless_text_holds_is_kept() -> None:
    kept = "日本 é 👩\u200d💻 \ue0b0 line\nline"
    assert output.clean(kept) == kept
    assert output.clean("a\tb\u00a0c") == "a    b c"


@pytest.mark.usefixtures("wanted")
def test_a_terminal_gets_colour_and_a_pipe_gets_none() -> None:
    pieces = ("state ", Span("idle", "green"))
    assert drawn(Terminal(), *pieces) == "state \x1b[32midle\x1b[0m\n"
    assert drawn(io.StringIO(), *pieces) == "state idle\n"


@pytest.mark.usefixtures("wanted")
@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour_where_the_person_wants_none(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert drawn(Terminal(), Span("idle", "green")) == "idle\n"


@pytest.mark.usefixtures("wanted")
def test_a_styled_piece_can_not_smuggle_an_escape_sequence() -> None:
    assert drawn(Terminal(), Span("\x1b]0;owned\x07", "bold")) == "\x1b[1m^[]0;owned^G\x1b[0m\n"


def test_json_is_one_line_with_its_schema_and_takes_our_values(capsys: pytest.CaptureFixture[str]) -> None:
    output.json({"state": AgentState.IDLE, "proc": ProcId(1, 2), "all": (1, None), "text": "日本\x1b\x9b"})
    out = capsys.readouterr().out
    assert out.endswith("\n")
    assert out.count("\n") == 1
    assert not [c for c in out[:-1] if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0]
    assert json.loads(out) == {
        "schema": 1,
        "state": "idle",
        "proc": {"pid": 1, "start": 2},
        "all": [1, None],
        "text": "日本\x1b\x9b",
    }


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_text_can_be_printed_in_any_locale(encoding: str) -> None:
    raw = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(raw, encoding=encoding)) as stream:
        output.say("日本 \udc80 é")
        output.json({"text": "日本 \udc80 é"})
        stream.flush()
    first, second = raw.getvalue().decode(encoding, "strict").splitlines()
    assert first.startswith("日本" if encoding == "utf-8" else "\\u65e5\\u672c")
    found: dict[str, Any] = json.loads(second)
    assert found["text"] == "日本 \udc80 é"


def test_errors_go_to_stderr_with_their_hint(capsys: pytest.CaptureFixture[str]) -> None:
    output.error("first\nsecond", "do this")
    done = capsys.readouterr()
    assert done.out == ""
    assert done.err == "error: first\nsecond\nhint: do this\n"
