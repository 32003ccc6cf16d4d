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
    """Wrap at words; a word longer than a line is broken where that saves a line. Spaces are kept."""
    room = max(1, room)
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        lines += _wrap_line(line, room)
    return lines


def _wrap_line(text: str, room: int) -> list[str]:
    rows = [""]
    for i, word in enumerate(text.split(" ")):
        if i:
            if width(rows[-1]) >= room:
                rows.append("")
            rows[-1] += " "
        length, used = width(word), width(rows[-1])
        if length > room:
            here = 1 + (length - (room - used) - 1) // room
            if (length - 1) // room < here:
                rows.append("")
            while word:
                space = room - width(rows[-1])
                if space <= 0:
                    rows.append("")
                    continue
                head, word = _split(word, space)
                rows[-1] += head
            continue
        if used + length > room and used:
            rows.append("")
        rows[-1] += word
    return [row.rstrip() if len(rows) > 1 else row for row in rows]
