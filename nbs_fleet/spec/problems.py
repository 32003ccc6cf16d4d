"""Problems of a team file: where each one is, which key it concerns, and what would be right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from msgspec import Struct

from nbs_fleet.errors import TeamFileError

Path = tuple[str | int, ...]
"""The way from the top of the file to one value: keys and list positions (from 0)."""

SHOWN = 100
"""So many problems are printed; a file with more gets one line that counts the rest."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]+")


class FileRef(Struct, frozen=True):
    """A file: `shown` as the user named it, `path` absolute and real."""

    shown: str
    path: str


class Mark(Struct, frozen=True):
    """A place in a file; line and column count from 1, columns in characters. Line 0: no place in a file."""

    file: FileRef
    line: int
    col: int

    def where(self) -> str:
        """`teams/review.yaml:12`, or only the name for what is in no file."""
        return f"{self.file.shown}:{self.line}" if self.line else self.file.shown


class Problem(Struct, frozen=True):
    """One thing that is wrong, and what would be right."""

    mark: Mark
    path: Path
    text: str

    def line(self) -> str:
        """`file:line:col: agents[1].chat: text`."""
        shown = printable(self.mark.file.shown, limit=4096)
        place = f"{shown}:{self.mark.line}:{self.mark.col}: " if self.mark.line else f"{shown}: "
        return place + (f"{show_path(self.path)}: " if self.path else "") + self.text


class Problems:
    """Collects what is wrong (`add`) and what is only doubtful (`warn`) until all of it can be said at once."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._places: set[tuple[Mark, Path]] = set()
        self._warned: list[Problem] = []
        self._files: list[str] = []

    def file(self, ref: FileRef) -> None:
        """Files are reported in the order in which they were first read."""
        if ref.path not in self._files:
            self._files.append(ref.path)

    def add(self, mark: Mark, path: Path, text: str) -> None:
        """Note an error."""
        self._found.append(Problem(mark, path, text))
        self._places.add((mark, path))

    def add_once(self, mark: Mark, path: Path, text: str) -> None:
        """Note an error unless one is noted for this very value already."""
        if (mark, path) not in self._places:
            self.add(mark, path, text)

    def take(self, others: Problems, under: Path) -> None:
        """Note the errors and warnings of a part of the file that stands at the key `under`."""
        for found in others._found:
            self.add(found.mark, (*under, *found.path), found.text)
        for warned in others._warned:
            self.warn(warned.mark, (*under, *warned.path), warned.text)

    @property
    def many(self) -> bool:
        """Whether more was found than will be printed; looking for good advice is then a waste."""
        return len(self._found) > 3 * SHOWN

    def warn(self, mark: Mark, path: Path, text: str) -> None:
        """Note what is allowed but probably not meant."""
        self._warned.append(Problem(mark, path, text))

    def __bool__(self) -> bool:
        return bool(self._found)

    def warnings(self) -> tuple[str, ...]:
        """One line per warning, in the order of the file."""
        return self._lines(self._warned)

    def check(self) -> None:
        """Raise TeamFileError with all errors, if there are any."""
        if self._found:
            lines = self._lines(self._found)
            more = len(lines) - SHOWN
            raise TeamFileError(lines[:SHOWN] + ((f"... and {more} more problems",) if more > 0 else ()))

    def _lines(self, found: list[Problem]) -> tuple[str, ...]:
        order = {path: n for n, path in enumerate(self._files)}
        ranked = sorted(found, key=lambda p: (order.get(p.mark.file.path, -1), p.mark.line, p.mark.col))
        return tuple(dict.fromkeys(p.line() for p in ranked))


def show_path(path: Path) -> str:
    """`agents[1].env.LOG`; a key with unusual characters stands in brackets and quotes."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{printable(step)}" if text else printable(step)
        else:
            text += f'["{printable(step)}"]'
    return text


def printable(text: str, *, limit: int = 60) -> str:
    """The text on one line: control characters and lone surrogates escaped, cut after `limit` characters."""
    cut = text[:limit]
    clean = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return clean + ("..." if len(text) > limit else "")


def quoted(text: str) -> str:
    """The text in double quotes, fit for one line of an error."""
    return f'"{printable(text)}"'


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that `word` was probably meant to be; case does not matter."""
    names = {name.lower(): name for name in choices}
    found = difflib.get_close_matches(word.lower()[:80], list(names), n=1, cutoff=0.6)
    return names[found[0]] if found else None


def suggest(word: str, choices: Iterable[str], *, none: str, many: str = "") -> str:
    """`did you mean "x"?`, else `declared: a, b`, else `none` when there is nothing to choose from."""
    names = list(dict.fromkeys(choices))
    if not names:
        return none
    near = closest(word, names)
    if near is not None:
        return f"did you mean {quoted(near)}?"
    if len(names) > 12 and many:
        return many
    listed = ", ".join(printable(n) for n in names[:12])
    return f"there are {listed}{' ...' if len(names) > 12 else ''}" if len(names) > 1 else f"there is {listed}"
