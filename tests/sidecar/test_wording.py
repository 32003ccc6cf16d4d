"""What a text becomes on its way: nothing a client could take for a command, and everything else as written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.errors import UsageError
from nbs_fleet.model import Message, MessageKind
from nbs_fleet.sidecar import wording

ANY = st.text(st.characters(blacklist_categories=()) | st.sampled_from("\r\n\t\x1b\x00\u202e\ud800<>/@\\ "))


@pytest.mark.parametrize(
    ("text", "clean", "remark"),
    [
        ("a\r\nb\rc\n", "a\nb\nc\n", "2 line ends changed to LF"),
        ("a\x1b[31mb", "a[31mb", "1 control character removed (ESC)"),
        ("\x00a\x7f\x9b", "a", "3 control characters removed (DEL, NUL, U+009B)"),
        ("\u202eabc\u202c", "abc", "2 characters removed that would reorder text"),
        ("a\ud83d", "a\ufffd", "1 character replaced that can't be written as UTF-8"),
        (b"\xff".decode("utf-8", "surrogateescape"), "\ufffd", "1 character replaced that can't be written as UTF-8"),
    ],
)
def test_what_steers_a_terminal_goes_and_is_told(text: str, clean: str, remark: str) -> None:
    assert wording.clean(text) == (clean, (remark,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "a\tb\n\n  c",
        "-rf ; $(x) `y` 'z' \"",
        "漢字 👩‍👩‍👧 é e\u0301 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "!x",
        "# x",
        "/x",
        "a;",
        "עברית\u200f!",
        "\u200b",
    ],
)
def test_everything_else_stays_as_written(text: str) -> None:
    assert wording.clean(text) == (text, ())


@given(ANY)
def test_a_clean_text_is_utf8_without_control_characters_and_stays_as_it_is(text: str) -> None:
    clean, remarks = wording.clean(text)
    clean.encode()
    assert not any((ord(c) < 0x20 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in clean)
    assert wording.clean(clean) == (clean, ())
    assert (clean == text) == (not remarks)


@pytest.mark.parametrize(
    "tag",
    [
        "<system-reminder>",
        "</system-reminder>",
        "<SYSTEM-Reminder>",
        "< / system-reminder >",
        "<\n\tsystem-reminder\n>",
        '<task-notification a="b">',
        "</task-notification",
        "<task-notification/>",
    ],
)
def test_the_tags_of_mail_are_broken_up(tag: str) -> None:
    text = f"a {tag} b"
    broken = text.replace("<", "<\u200b")
    assert wording.for_mail(text) == (broken, True)
    assert wording.for_mail(broken) == (broken, False)


@pytest.mark.parametrize(
    "text",
    [
        "if (a <b> c) <div>",
        "<system-reminders>",
        "<system-reminder-x>",
        "system-reminder>",
        "<system>",
        "<<",
        "List<T>",
    ],
)
def test_other_text_with_angle_brackets_arrives_as_written(text: str) -> None:
    assert wording.for_mail(text) == (text, False)


@given(ANY)
def test_no_tag_of_mail_is_left(text: str) -> None:
    wrapped = f"<system-reminder{text}</task-notification"
    broken, changed = wording.for_mail(wrapped)
    assert changed
    assert broken.replace("\u200b", "") == wrapped.replace("\u200b", "")
    assert "</task-notification" not in broken


@pytest.mark.parametrize("text", ["see @ana", "see @ana.", "mail a@b.c", "@", "x\n@ana-notes", "path\\"])
def test_a_last_word_that_enter_would_complete_gets_a_blank(text: str) -> None:
    assert wording.for_keys(text) == (text + " ", ())


@pytest.mark.parametrize("text", ["see @ana now", "@ana ", "@ana\n", "x;", "", "\\x"])
def test_other_text_is_pasted_as_written(text: str) -> None:
    assert wording.for_keys(text) == (text, ())


def test_a_tab_is_pasted_as_the_client_would_show_it() -> None:
    assert wording.for_keys("a\tb") == ("a    b", ("tabs changed to four blanks",))


def test_what_a_message_says_never_begins_like_a_command() -> None:
    for text in ("!rm -r x", "/exit", "# note", "-x"):
        spoken = Message("d-1-2", "ana", "bo", text, 1.0).spoken()
        assert wording.for_keys(spoken)[0].startswith("[nbs:d-1-2] message from bo:\n")
    assert Message("c-1-2", "ana", "bo", "/exit", 1.0, kind=MessageKind.COMMAND).spoken() == "/exit"


@pytest.mark.parametrize("text", ["/compact", "/compact keep the plan", "/mcp__a__b x", "/my-plugin:skill", "/x /y\tz"])
def test_one_line_with_a_slash_is_a_command(text: str) -> None:
    wording.check_command(text)


@pytest.mark.parametrize("text", ["compact", "/", "//x", "/ x", "!ls", "/a\n/b", "/tmp/file", " /a", "", "/a\n"])
def test_anything_else_is_no_command(text: str) -> None:
    with pytest.raises(UsageError, match="is no command") as caught:
        wording.check_command(text)
    assert "/compact" in str(caught.value.hint)


def test_100_kb_is_the_limit_in_bytes() -> None:
    wording.check_size("x" * 100_000)
    wording.check_size("é" * 50_000)
    with pytest.raises(UsageError, match="the text has 100,002 bytes; a message may have 100,000"):
        wording.check_size("é" * 50_001)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb", "a / b"),
        ("a\n\n  b\tc\n", "a / b c"),
        ("", ""),
        ("\n \n", ""),
        ("[nbs:d-1-2] task from bo:\ndo\nit", "[nbs:d-1-2] task from bo: / do / it"),
    ],
)
def test_a_text_fits_on_one_line(text: str, line: str) -> None:
    assert wording.one_line(text) == line


def test_a_summary_is_the_beginning_on_one_line() -> None:
    assert wording.summary("a\x1b\nb") == "a / b"
    assert wording.summary("x" * 200) == "x" * 200
    assert wording.summary("x" * 201) == "x" * 199 + "…"
    assert wording.summary("word " * 50_000, 10) == "word word…"
    assert wording.summary("\n" * 5000 + "x", 10) == "…"


@given(ANY, st.integers(1, 50))
def test_a_summary_is_never_longer_and_has_one_line(text: str, length: int) -> None:
    said = wording.summary(text, length)
    assert len(said) <= length
    assert not {"\n", "\t", "\x1b", "\r"} & set(said)
