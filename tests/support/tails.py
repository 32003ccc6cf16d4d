"""Reads a story on where it stopped, also over the beginning of a new segment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Tail:
    """Iterating gives the records that came since the last time. `path` is the newest segment, `path.1` the one before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        self._at = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self._path.exists():
            return
        with self._path.open("rb") as newest:
            inode = os.fstat(newest.fileno()).st_ino
            if self._inode not in (0, inode):
                with self._path.with_name(f"{self._path.name}.1").open("rb") as older:
                    assert os.fstat(older.fileno()).st_ino == self._inode, "a segment was missed"
                    older.seek(self._at)
                    yield from map(json.loads, older)
                self._at = 0
            self._inode = inode
            newest.seek(self._at)
            for line in newest:
                if not line.endswith(b"\n"):
                    return
                self._at += len(line)
                yield json.loads(line)
