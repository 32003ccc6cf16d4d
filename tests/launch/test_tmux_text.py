from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.launch.tmux_text import (
    PANE_FORMAT,
    Pane,
    check_pane,
    check_session,
    line,
    parse_panes,
    pasteable,
    quote,
    rows,
    session_target,
    window_target,
    words,
)

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def escaped(value: str) -> str:
    """As tmux prints a value with `q:`."""
    return "".join(f"\\{char}" if char in "|&;<>()$`\\\"'*?[# =%" else char for char in value)


@given(st.lists(TEXT, min_size=1))
def test_each_line_of_commands_reads_back_as_the_same_words(given_words: list[str]) -> None:
    text = line(*given_words)
    assert "\n" not in text
    assert words(text) == given_words


def test_only_harmless_words_go_without_quotes() -> None:
    assert [quote(word) for word in ("-t", "%1", "=s:=w", "~/x", "a b", "", "#{x}", "a;", "$HOME", 'a"\\\n')] == [
        "-t",
        '"%1"',
        "=s:=w",
        '"\\~/x"',
        '"a b"',
        '""',
        '"#{x}"',
        '"a;"',
        '"\\$HOME"',
        '"a\\"\\\\\\n"',
    ]


def test_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote("a\0b")


def test_targets_are_exact() -> None:
    assert session_target("team") == "=team"
    assert window_target("team", "agent-1") == "=team:=agent-1"
    for bad in ("a.b", "a:b", "", "a b", "=a"):
        with pytest.raises(ValueError, match="not a session name"):
            check_session(bad)
    for bad in ("12", "%", "team:%12", "%1 ", "@1"):
        with pytest.raises(ValueError, match="not a pane id"):
            check_pane(bad)


@given(TEXT, TEXT, TEXT)
def test_a_pane_is_read_back_whatever_its_title_says(window: str, command: str, title: str) -> None:
    values = ["%12", "ana", "team", "@3", "4711", "1", "7", "", "200", "50", "2", "1", window, command, title]
    (pane,) = parse_panes([" ".join(escaped(value) for value in values)])
    assert pane == Pane(
        id="%12",
        handle="ana",
        team="team",
        window_id="@3",
        window=window,
        pid=4711,
        dead=True,
        status=7,
        signal=None,
        title=title,
        width=200,
        height=50,
        command=command,
        in_mode=True,
        active=True,
    )


@given(st.lists(TEXT))
def test_no_line_breaks_the_parser(lines: list[str]) -> None:
    parse_panes(lines)


def test_short_rows_and_strange_lines_are_borne() -> None:
    (pane,) = parse_panes(["", "some warning", r"\%7 ana", "x %8"])
    assert (pane.id, pane.handle, pane.title, pane.pid, pane.dead, pane.status) == ("%7", "ana", "", 0, False, None)


def test_the_format_asks_for_each_value_with_blanks_escaped() -> None:
    assert PANE_FORMAT.startswith("#{q:pane_id} #{q:@nbs_handle} ")
    assert PANE_FORMAT.endswith(" #{q:pane_title}")


def test_only_a_newline_ends_a_row_and_only_blanks_at_its_end_are_dropped() -> None:
    assert rows("a  \n\u2028b\x85c\x0bd\n  e\n\n") == ("a", "\u2028b\x85c\x0bd", "  e", "")


@given(TEXT)
def test_pasted_text_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    clean = pasteable(text)
    assert not any((ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160 for char in clean)
    assert pasteable(clean) == clean


def test_a_pasted_text_can_not_end_the_bracket_nor_press_enter() -> None:
    assert pasteable("a\x1b[201~b\r\nc\rd\te\x9b0me") == "a[201~b\nc\nd\te0me"
    assert pasteable("ünï 🙂 $`'\\;") == "ünï 🙂 $`'\\;"
