"""The input box: text, cursor, folded pastes and the stash. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from nbs_fleet.sim.keys import Key

FOLD_LINES = 3
FOLD_CHARS = 800


class Draft(NamedTuple):
    """What lies in the box."""

    text: str = ""
    cursor: int = 0


class Editor:
    """Edits one draft; `stash` holds one that was put aside."""

    def __init__(self) -> None:
        self.draft = Draft()
        self.stash: str | None = None
        self.pastes: dict[str, str] = {}
        self.killed = ""

    @property
    def text(self) -> str:
        """The text as shown (pastes folded)."""
        return self.draft.text

    def set(self, text: str) -> None:
        """Put a text in place of the draft, with the cursor at its end."""
        self.draft = Draft(text, len(text))

    def insert(self, text: str) -> None:
        """Put text in at the cursor."""
        at = self.draft.cursor
        self.draft = Draft(self.text[:at] + text + self.text[at:], at + len(text))

    def paste(self, text: str) -> None:
        """Put a paste in: tabs become four spaces; a long one is folded into a mark."""
        text = text.replace("\t", "    ")
        breaks = text.count("\n") + text.count("\r")
        if breaks >= FOLD_LINES or len(text) > FOLD_CHARS:
            number = len(self.pastes) + 1
            mark = f"[Pasted text #{number} +{breaks} lines]" if breaks else f"[Pasted text #{number}]"
            self.pastes[mark] = text
            text = mark
        self.insert(text)

    def take(self) -> str:
        """Empty the box: its text with pastes unfolded and trailing white space gone. A stash comes back."""
        text = self.text
        for mark, body in self.pastes.items():
            text = text.replace(mark, body)
        self.set(self.stash or "")
        self.stash = None
        self.pastes = {} if not self.text else self.pastes
        return text.rstrip()

    def swap_stash(self) -> None:
        """Ctrl+S: put the draft aside; on an empty box bring it back."""
        if self.text:
            self.stash = self.text
            self.set("")
        elif self.stash is not None:
            self.set(self.stash)
            self.stash = None

    def key(self, key: Key) -> bool:
        """Apply an editing key; False when it is none."""
        edit = _EDITS.get(key.name)
        if key.name == "text":
            self.insert(key.text)
        elif key.name == "paste":
            self.paste(key.text)
        elif key.name == "newline":
            self.insert("\n")
        elif key.name == "ctrl-y":
            self.insert(self.killed)
        elif key.name in _KILLS:
            start, end = _KILLS[key.name](self.draft)
            self.killed = self.text[start:end]
            self.draft = Draft(self.text[:start] + self.text[end:], start)
        elif edit is not None:
            self.draft = edit(self.draft)
        else:
            return False
        return True


def _line_start(draft: Draft) -> int:
    return draft.text.rfind("\n", 0, draft.cursor) + 1


def _line_end(draft: Draft) -> int:
    end = draft.text.find("\n", draft.cursor)
    return len(draft.text) if end < 0 else end


def _to_start(draft: Draft) -> tuple[int, int]:
    start = _line_start(draft)
    # A second press at the start of a line joins it to the one above.
    return (start if start < draft.cursor else max(0, start - 1), draft.cursor)


def _word(draft: Draft) -> tuple[int, int]:
    head = draft.text[: draft.cursor]
    found = re.search(r"\S*\s*$", head)
    return (found.start() if found else 0, draft.cursor)


def _cut(draft: Draft, start: int, end: int) -> Draft:
    start, end = max(0, start), min(len(draft.text), end)
    return Draft(draft.text[:start] + draft.text[end:], start)


_KILLS: dict[str, Callable[[Draft], tuple[int, int]]] = {
    "ctrl-u": _to_start,
    "ctrl-k": lambda d: (d.cursor, _line_end(d)),
    "ctrl-w": _word,
}
_EDITS: dict[str, Callable[[Draft], Draft]] = {
    "backspace": lambda d: _cut(d, d.cursor - 1, d.cursor),
    "delete": lambda d: _cut(d, d.cursor, d.cursor + 1),
    "left": lambda d: d._replace(cursor=max(0, d.cursor - 1)),
    "right": lambda d: d._replace(cursor=min(len(d.text), d.cursor + 1)),
    "home": lambda d: d._replace(cursor=_line_start(d)),
    "ctrl-a": lambda d: d._replace(cursor=_line_start(d)),
    "end": lambda d: d._replace(cursor=_line_end(d)),
    "ctrl-e": lambda d: d._replace(cursor=_line_end(d)),
}
