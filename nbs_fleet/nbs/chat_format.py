"""The bytes of a chat file: header, self-including length, participants, one base64 line per message. Pure.

The format is the nbs tools' (`chat_file.c`, read in source). Text is UTF-8; other bytes survive as lone surrogates.
"""

from __future__ import annotations

import binascii
import re

from msgspec import Struct

MARK = b"=== nbs-chat ==="
END = b"---"
SYSTEM = "system"
"""The last writer of a chat nobody has written to, and of an archive."""
ARCHIVED = "(archived)"
"""Stands in an archive in the place of the participants."""
HANDLE_BYTES = 63
PARTICIPANTS = 52
"""The nbs tools reserve 78 bytes for each participant in a buffer of 4096 and abort at the next one."""
MESSAGE_BYTES = 786_429
"""Handle, time and text of the longest message that fits into the nbs tools' line buffer of 1 MiB once encoded."""

_LENGTH = len("file-length: \n")
_UNREADABLE = re.compile(r"[\x00-\x1f\x7f|(),=]|: |^[\s#]|\s$")
_PARTICIPANT = re.compile(r"([^(,]*)(?:\(([^)]*)\)?)?")


class ChatMessage(Struct, frozen=True, gc=False):
    """One message: who, when (seconds since the epoch, 0 if the line has none), what."""

    handle: str
    at: int
    text: str


class Header(Struct, frozen=True):
    """The header of a chat: last writer and time of writing as written, participants with their counts."""

    writer: str
    written: str
    participants: tuple[tuple[str, int], ...] = ()

    def posted(self, handle: str, written: str) -> Header:
        """The header after one more message of `handle`; a new handle comes last."""
        known = dict(self.participants)
        known[handle] = known.get(handle, 0) + 1
        return Header(handle, written, tuple(known.items()))


def encode_line(handle: str, at: int, text: str) -> bytes:
    """The line of a message, without its newline. Raises ValueError for what the nbs tools could not read."""
    trouble = handle_trouble(handle)
    if trouble:
        raise ValueError(f"the handle {handle!r} {trouble}")
    if "\0" in text:
        raise ValueError("a message can't hold NUL characters")
    try:
        raw = to_bytes(f"{handle}|{at}: {text}")
    except UnicodeEncodeError:
        raise ValueError("the message has characters that can't be written as UTF-8") from None
    if len(raw) > MESSAGE_BYTES:
        raise ValueError(f"the message has {len(raw):,} bytes, {MESSAGE_BYTES:,} are allowed")
    return binascii.b2a_base64(raw, newline=False)


def handle_trouble(handle: str) -> str | None:
    """What keeps the nbs tools from reading back a message, a participant or a cursor of this handle, if anything."""
    if not handle:
        return "is empty"
    if len(handle.encode("utf-8", "replace")) > HANDLE_BYTES:
        return f"is longer than {HANDLE_BYTES} bytes"
    if _UNREADABLE.search(handle):
        return "has characters that a chat file can't keep; use letters, digits, - and _"
    return None


def decode_line(line: bytes) -> ChatMessage | None:
    """The message of one line (without its newline), or None for a line that is none.

    Forms: `handle|EPOCH: text`, and of old `handle: text` and `handle|EPOCH|SIGNATURE: text`.
    """
    if len(line) & 3:
        return None
    try:
        raw = binascii.a2b_base64(line, strict_mode=True)
    except binascii.Error:
        return None
    prefix, colon, text = raw.partition(b": ")
    handle, bar, rest = prefix.partition(b"|")
    if not colon or not 0 < len(handle) <= HANDLE_BYTES or b"\0" in raw:
        return None
    at = 0
    if bar:
        stamp = rest.partition(b"|")[0]
        at = int(stamp) if stamp.isdigit() and len(stamp) < 20 else 0
    return ChatMessage(to_text(handle), at, to_text(text))


def split(data: bytes) -> tuple[Header, int]:
    """(header, where what comes after it begins) of a chat file; no bytes at all are a chat without messages.

    Raises ValueError if the header is missing or has no end.
    """
    if not data:
        return Header(SYSTEM, ""), 0
    fields: dict[bytes, bytes] = {}
    begun, place = False, 0
    while place < len(data):
        end = data.find(b"\n", place)
        line = data[place : end if end >= 0 else len(data)].rstrip(b"\r")
        place = end + 1 if end >= 0 else len(data)
        if line == MARK:
            begun = True
        elif begun and line == END:
            return _header(fields), place
        elif begun:
            name, _, value = line.partition(b": ")
            fields[name] = value
    raise ValueError("it has no end of header" if begun else "it has no nbs-chat header")


def _header(fields: dict[bytes, bytes]) -> Header:
    writer = to_text(fields.get(b"last-writer", b""))
    written = to_text(fields.get(b"last-write", b""))
    return Header(writer, written, parse_participants(to_text(fields.get(b"participants", b""))))


def head(header: Header, size: int, *, archive: bool = False) -> bytes:
    """The header of a file whose lines after it have `size` bytes."""
    who = ARCHIVED if archive else format_participants(header.participants)
    before = b"%b\nlast-writer: %b\nlast-write: %b\n" % (MARK, to_bytes(header.writer), to_bytes(header.written))
    after = b"participants: %b\n%b\n" % (to_bytes(who), END)
    return b"%bfile-length: %d\n%b" % (before, file_length(len(before) + len(after) + size), after)


def file_length(base: int) -> int:
    """The length of a file that has `base` bytes and one line more, which says that length."""
    digits = len(str(base))
    length = base + _LENGTH + digits
    grown = len(str(length))
    return length if grown == digits else base + _LENGTH + grown


def parse_participants(text: str) -> tuple[tuple[str, int], ...]:
    """The participants of a header; what stands after an entry that is none is left out, as the nbs tools do."""
    found: dict[str, int] = {}
    place = 0
    while place < len(text):
        if text[place] in " ,":
            place += 1
            continue
        entry = _PARTICIPANT.match(text, place)
        if entry is None or not entry[1] or len(to_bytes(entry[1])) > HANDLE_BYTES:
            break
        place = entry.end()
        number = (entry[2] or "").strip()
        right = number.isascii() and number.isdigit() and len(number) < 20
        found.setdefault(entry[1], int(number) if right else 0)
    return tuple(found.items())


def format_participants(participants: tuple[tuple[str, int], ...]) -> str:
    """`ana(1), bo(2)`."""
    return ", ".join(f"{handle}({count})" for handle, count in participants)


def normal(body: bytes) -> bytes:
    """The lines of a body as a writer keeps them: no carriage returns at their ends, no empty ones, all ended."""
    if body and not body.endswith(b"\n"):
        body += b"\n"
    if b"\r\n" not in body and b"\n\n" not in body and not body.startswith(b"\n"):
        return body
    lines = (line.rstrip(b"\r") for line in body.split(b"\n"))
    return b"".join(line + b"\n" for line in lines if line)


def to_bytes(text: str) -> bytes:
    """UTF-8, with lone surrogates as the bytes they stand for."""
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    """The reverse of `to_bytes`, for any bytes."""
    return data.decode("utf-8", "surrogateescape")
