"""Damages one file, and knows afterwards whether it was put right."""

from __future__ import annotations

import os
import random

from msgspec import Struct

from tests.chaos.kinds import Way


class Damaged(Struct, frozen=True):
    """One file that was damaged: its kind, its path below the run directory, how, and how it was before."""

    kind: str
    path: str
    way: Way
    before: bytes
    inode: int

    def __str__(self) -> str:
        return f"{self.path} {self.way}"


def flipped(data: bytes, chance: random.Random) -> bytes:
    """The data with some bits flipped, the first or last byte among them: there a change tells in most formats."""
    changed = bytearray(data)
    places = {chance.choice((0, len(data) - 1)), *(chance.randrange(len(data)) for _ in range(1 + len(data) // 400))}
    for place in places:
        changed[place] ^= 1 << chance.randrange(8)
    return bytes(changed)


def damage(run: str, path: str, kind: str, way: Way, number: int) -> Damaged | None:
    """Damage the file in place, so that its inode tells whether it was replaced; None if it went meanwhile."""
    whole = os.path.join(run, path)
    try:
        found = os.lstat(whole)
        before = b""
        if way is Way.DELETE:
            before = read(whole)
            os.unlink(whole)
        else:
            fd = os.open(whole, os.O_RDWR | os.O_NOFOLLOW)
            try:
                before = os.read(fd, 10_000_000)
                _spoil(fd, before, way, random.Random(number))
            finally:
                os.close(fd)
            if os.lstat(whole).st_ino != found.st_ino:
                return None
    except OSError:
        return None
    return Damaged(kind, path, way, before, found.st_ino)


def _spoil(fd: int, before: bytes, way: Way, chance: random.Random) -> None:
    if way is Way.TRUNCATE:
        os.ftruncate(fd, chance.choice((0, len(before) // 2, max(0, len(before) - 2))))
    elif before:
        os.pwrite(fd, flipped(before, chance), 0)


def read(path: str) -> bytes:
    """The bytes of a file; nothing if it is none, or no regular one."""
    try:
        with open(path, "rb") as file:
            return file.read(10_000_000)
    except OSError:
        return b""


def put_right(run: str, one: Damaged) -> bool:
    """Whether the file is again what it was, or another one was put in its place."""
    whole = os.path.join(run, one.path)
    try:
        found = os.lstat(whole)
    except OSError:
        return False
    if one.way is Way.DELETE:
        return True
    return found.st_ino != one.inode or read(whole) == one.before
