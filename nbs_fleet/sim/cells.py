"""Text in terminal cells: widths, cutting and wrapping as the client's own renderer does it. Pure."""

from __future__ import annotations


def width(text: str) -> int:
    """How many cells a text takes."""
    if text.isascii():
        return len(text)
    import unicodedata  # noqa: PLC0415 - most clients never show anything that needs it

    total = 0
    for c in text:
        if c.isascii():
            total += 1
        elif unicodedata.combining(c) or c in "\u200b\u200d\ufe0e\ufe0f":
            continue
        else:
            total += 2 if unicodedata.east_asian_width(c) in "WF" else 1
    return total


def cut(text: str, room: int) -> str:
    """At most `room` cells; the last one is an ellipsis where something was cut off."""
    if width(text) <= room:
        return text
    while text and width(text) > room - 1:
        text = text[:-1]
    return text + "…" if room > 0 else ""


def _split(text: str, room: int) -> tuple[str, str]:
    """As much of a text as fits, and the rest; at least one character."""
    if text.isascii():
        return text[:room], text[room:]
    used = 0
    for i, c in enumerate(text):
        used += width(c)
        if used > room and i:
            return text[:i], text[i:]
    return text, ""


def wrap(text: str, room: int) -> list[str]:
    """Wrap at words; a word longer than a line is broken where that saves a line. The space at a break is dropped."""
    room = max(1, room)
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        lines += _wrap_line(line, room)
    return lines


def _wrap_line(text: str, room: int) -> list[str]:
    rows = [""]
    for i, word in enumerate(text.split(" ")):
        used, length = width(rows[-1]), width(word)
        gap = " " if i and (used or len(rows) == 1) else ""
        if used + len(gap) + length <= room:
            rows[-1] += gap + word
        elif length <= room:
            rows.append(word)
        else:
            _break_word(rows, gap, word, room)
    return [row.rstrip() for row in rows] if len(rows) > 1 else rows


def _break_word(rows: list[str], gap: str, word: str, room: int) -> None:
    """Break a long word over rows: on the row that is begun if that needs no more rows than a fresh one."""
    length, left = width(word), room - width(rows[-1]) - len(gap)
    if left > 0 and 1 + (length - left - 1) // room <= (length - 1) // room:
        rows[-1] += gap
    elif rows[-1]:
        rows.append("")
    rest = word
    while rest:
        space = room - width(rows[-1])
        if rows[-1] and width(rest[0]) > space:
            rows.append("")
            continue
        head, rest = _split(rest, max(1, space))
        rows[-1] += head
