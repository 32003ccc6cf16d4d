"""The bytes of a chat file: the known example, and what holds for every header, message and line."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.nbs import chat_format as form
from nbs_fleet.nbs.chat_format import ChatMessage, Header

EXAMPLE = b"""=== nbs-chat ===
last-writer: bo
last-write: 2026-05-01T09:00:05+0000
file-length: 181
participants: ana(1), bo(1)
---
YW5hfDE3Nzc2MjYwMDA6IGhp
Ym98MTc3NzYyNjAwNTogaGVsbG8KdGhlcmU=
"""

handles = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,62}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200)


def lines(body: bytes) -> list[ChatMessage | None]:
    return [form.decode_line(line) for line in body.split(b"\n") if line]


def test_the_known_example_is_read() -> None:
    header, place = form.split(EXAMPLE)
    assert header == Header("bo", "2026-05-01T09:00:05+0000", (("ana", 1), ("bo", 1)))
    assert lines(EXAMPLE[place:]) == [
        ChatMessage("ana", 1777626000, "hi"),
        ChatMessage("bo", 1777626005, "hello\nthere"),
    ]


def test_the_known_example_is_written_byte_for_byte() -> None:
    body = form.encode_line("ana", 1777626000, "hi") + b"\n"
    body += form.encode_line("bo", 1777626005, "hello\nthere") + b"\n"
    header = Header("bo", "2026-05-01T09:00:05+0000", (("ana", 1), ("bo", 1)))
    assert form.head(header, len(body)) + body == EXAMPLE
    assert len(EXAMPLE) == 181


def test_an_empty_chat_has_a_blank_after_participants() -> None:
    text = form.head(Header("system", "2026-05-01T09:00:05+0000"), 0)
    assert b"\nparticipants: \n---\n" in text
    assert form.split(text) == (Header("system", "2026-05-01T09:00:05+0000"), len(text))


@given(st.integers(min_value=60, max_value=10**7))
def test_the_length_counts_its_own_line(base: int) -> None:
    length = form.file_length(base)
    assert base + len(f"file-length: {length}\n") == length


@pytest.mark.parametrize("edge", [10**n for n in range(2, 7)])
def test_the_length_is_right_where_it_gains_a_digit(edge: int) -> None:
    for base in range(edge - 30, edge + 5):
        assert base + len(f"file-length: {form.file_length(base)}\n") == form.file_length(base)


@given(handles, st.integers(min_value=1, max_value=10**11), texts)
def test_any_text_comes_back(handle: str, at: int, text: str) -> None:
    line = form.encode_line(handle, at, text)
    assert b"\n" not in line
    assert form.decode_line(line) == ChatMessage(handle, at, text)


@given(st.binary(max_size=80))
def test_any_bytes_of_a_text_come_back(data: bytes) -> None:
    if b"\0" not in data:
        text = form.to_text(data)
        found = form.decode_line(form.encode_line("ana", 5, text))
        assert found is not None
        assert form.to_bytes(found.text) == data


@given(st.text(max_size=70))
def test_a_handle_is_refused_or_comes_back_everywhere(handle: str) -> None:
    if form.handle_trouble(handle):
        with pytest.raises(ValueError, match=r"handle|UTF-8"):
            form.encode_line(handle, 1, "x")
        return
    try:
        found = form.decode_line(form.encode_line(handle, 1, "x: y"))
    except ValueError:
        assert any("\ud800" <= char <= "\udfff" for char in handle)
        return
    assert found == ChatMessage(handle, 1, "x: y")
    assert form.parse_participants(form.format_participants(((handle, 3), ("bo", 1)))) == ((handle, 3), ("bo", 1))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("ana: of old", ChatMessage("ana", 0, "of old")),
        ("ana|1777626000|c2ln: signed: once", ChatMessage("ana", 1777626000, "signed: once")),
        ("ana|soon: x", ChatMessage("ana", 0, "x")),
        ("ana|99999999999999999999999: x", ChatMessage("ana", 0, "x")),
        ("ana|5: a|b: c", ChatMessage("ana", 5, "a|b: c")),
        ("a b|5: x", ChatMessage("a b", 5, "x")),
        ("[MEDIC-WARNING]|5: x", ChatMessage("[MEDIC-WARNING]", 5, "x")),
        ("ana|5: ", ChatMessage("ana", 5, "")),
        ("no separator", None),
        (": nobody", None),
        ("x" * 64 + "|5: too long a handle", None),
        ("ana|5: with\0NUL", None),
    ],
)
def test_forms_of_messages(raw: str, message: ChatMessage | None) -> None:
    assert form.decode_line(base64.b64encode(raw.encode())) == message


@pytest.mark.parametrize("line", [b"abc", b"hello raw text", b"????", b"YW5h=A==", b"    ", b"=", b"YW5hfDU6IGhp\r"])
def test_lines_that_are_no_message(line: bytes) -> None:
    assert form.decode_line(line) is None


def test_carriage_returns_blank_lines_and_a_missing_last_newline_are_tolerated() -> None:
    header, place = form.split(EXAMPLE.replace(b"\n", b"\r\n"))
    assert header.participants == (("ana", 1), ("bo", 1))
    assert form.normal(EXAMPLE.replace(b"\n", b"\r\n")[place:]) == form.normal(EXAMPLE[form.split(EXAMPLE)[1] :])
    assert form.normal(b"\n\nQUJD\n\n\nREVG") == b"QUJD\nREVG\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("(archived)", ()),
        ("ana(12), bo(1)", (("ana", 12), ("bo", 1))),
        ("ana(x), bo", (("ana", 0), ("bo", 0))),
        ("ana(1),bo(2) ,  cy(3)", (("ana", 1), ("bo", 2), ("cy", 3))),
        ("ana(1), " + "x" * 64 + "(2), bo(1)", (("ana", 1),)),
        ("ana(1", (("ana", 1),)),
    ],
)
def test_participants_as_the_nbs_tools_read_them(text: str, found: tuple[tuple[str, int], ...]) -> None:
    assert form.parse_participants(text) == found


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"hello\n", "it has no nbs-chat header"),
        (b"=== nbs-chat ===\nlast-writer: x\n", "it has no end of header"),
        (b"---\nYW5h\n", "it has no nbs-chat header"),
    ],
)
def test_what_is_no_chat_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        form.split(data)


@pytest.mark.parametrize("handle", ["", "x" * 64, "a|b", "a(b", "a,b", "a=b", "a: b", " a", "a\n", "#a", "a\0"])
def test_handles_that_a_chat_can_t_keep(handle: str) -> None:
    assert form.handle_trouble(handle)


def test_the_longest_message_is_the_longest_line_of_the_nbs_tools() -> None:
    most = "x" * (form.MESSAGE_BYTES - len("ana|1777626000: "))
    line = form.encode_line("ana", 1777626000, most)
    assert len(line) + len("\n\0") <= 1048576
    with pytest.raises(ValueError, match="786,429 are allowed"):
        form.encode_line("ana", 1777626000, most + "x")
