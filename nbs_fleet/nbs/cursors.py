"""The bytes of a cursor file: for each handle the index of the last message it has read. Pure."""

from __future__ import annotations

import re

from nbs_fleet.nbs.chat_format import HANDLE_BYTES, to_bytes, to_text

FIRST_LINE = "# Read cursors — last-read message index per handle"
MOST = 256
"""The nbs tools read no more entries, so more would be lost at their next write."""

_NUMBER = re.compile(r"[ \t\v\f\r]*[+-]?[0-9]{1,100}")
_LARGEST = 2**31 - 1


def parse(data: bytes) -> dict[str, int | None]:
    """Handle -> index in the order of the file; None where the value is no number. The first entry of a handle counts.

    Lines without `=`, comments and over-long handles are left out, as the nbs tools do.
    """
    found: dict[str, int | None] = {}
    for line in data.split(b"\n"):
        if line.startswith(b"#"):
            continue
        handle, equals, value = line.partition(b"=")
        if not equals or not 0 < len(handle) <= HANDLE_BYTES:
            continue
        found.setdefault(to_text(handle), _index(to_text(value).rstrip("\r")))
    return found


def _index(text: str) -> int | None:
    if not _NUMBER.fullmatch(text):
        return None
    value = int(text)
    return value if -_LARGEST - 1 <= value <= _LARGEST else None


def render(cursors: dict[str, int | None]) -> bytes:
    """The file; a value that was no number becomes 0, as the nbs tools do."""
    lines = [FIRST_LINE, *(f"{handle}={0 if index is None else index}" for handle, index in cursors.items())]
    return to_bytes("\n".join(lines) + "\n")


def shifted(cursors: dict[str, int | None], by: int) -> dict[str, int | None]:
    """The cursors after the first `by` messages went into an archive; none falls below 0."""
    return {handle: max((index or 0) - by, 0) for handle, index in cursors.items()}


def effective(index: int | None, count: int) -> int:
    """The index as a reader takes it: missing or unreadable is -1 (all unread), beyond the end is the last one."""
    return -1 if index is None else min(max(index, -1), count - 1)
