"""Reading stories: the last lines of several, merged by time, and what is added to one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedReader
from typing import Any

from msgspec import Struct, json

from nbs_fleet.jsontext import MALFORMED, seconds

BLOCK = 65536


class Line(Struct, frozen=True):
    """One entry of the story of `who`."""

    who: str
    entry: dict[str, Any]

    @property
    def at(self) -> float:
        """Wall seconds; 0 where the entry has none."""
        return seconds(self.entry.get("at"))


def last(
    paths: dict[str, str],
    number: int,
    *,
    wanted: Callable[[dict[str, Any]], bool] = lambda _: True,
    ends: dict[str, int] | None = None,
) -> list[Line]:
    """The last `number` entries (0: all) of these stories together that are wanted, oldest first.

    `ends`: per story the byte at which its newest segment is taken to end.
    """
    lines: list[Line] = []
    for who, path in paths.items():
        own: list[Line] = []
        for text in _backwards(path, (ends or {}).get(who)):
            entry = _entry(text)
            if entry is not None and wanted(entry):
                own.append(Line(who, entry))
            if number and len(own) >= number:
                break
        lines += reversed(own)
    lines.sort(key=lambda line: line.at)
    return lines[-number:] if number else lines


def _segments(path: str) -> list[str]:
    """The files of one story, newest first: `path`, `path.1`, `path.2`, ..."""
    found, number = [path], 1
    while os.path.exists(f"{path}.{number}"):
        found.append(f"{path}.{number}")
        number += 1
    return found


def _backwards(path: str, newest_end: int | None = None) -> Iterator[bytes]:
    """Whole lines, newest first, read in blocks from the end."""
    for segment in _segments(path):
        try:
            with open(segment, "rb") as file:
                rest, end = b"", file.seek(0, os.SEEK_END)
                if segment == path and newest_end is not None:
                    end = min(end, newest_end)
                while end > 0:
                    start = max(0, end - BLOCK)
                    file.seek(start)
                    lines = (file.read(end - start) + rest).split(b"\n")
                    rest, end = lines[0], start
                    yield from (line for line in reversed(lines[1:]) if line)
                if rest:
                    yield rest
        except FileNotFoundError:
            continue


def _entry(text: bytes) -> dict[str, Any] | None:
    try:
        return json.decode(text, type=dict[str, Any])
    except MALFORMED:
        return None  # the last line of a writer that was killed


class Tail:
    """What is added to one story from now on (or from its start), across changes of segment."""

    def __init__(self, path: str, *, from_start: bool = False) -> None:
        self._path = path
        self._file: BufferedReader | None = None
        self._rest = b""
        file = self._open()
        self.start = 0 if file is None or from_start else file.seek(0, os.SEEK_END)
        """The byte of the segment at which the first entry of `read` begins."""

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BufferedReader | None:
        with suppress(FileNotFoundError):
            self._file = open(self._path, "rb")  # noqa: SIM115  # stays open: a rotated segment is read to its end
        return self._file

    def read(self) -> list[dict[str, Any]]:
        """The entries that were added since the last call."""
        entries: list[dict[str, Any]] = []
        while True:
            file = self._file or self._open()
            if file is None:
                return entries
            entries += self._whole(file.read())
            if not self._rotated(file):
                return entries
            entries += self._whole(file.read())  # what came between the read and the rename
            self.close()
            self._rest = b""

    def _whole(self, data: bytes) -> list[dict[str, Any]]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [entry for line in lines if (entry := _entry(line)) is not None]

    def _rotated(self, file: BufferedReader) -> bool:
        try:
            now = os.stat(self._path)
        except FileNotFoundError:
            return False  # between rename and the first line of the next segment
        mine = os.fstat(file.fileno())
        return (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino)
