"""An independent reading and writing of the nbs tools' files, straight from their description; shares no code with ours."""

from __future__ import annotations

import base64
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

FIRST_CURSOR_LINE = "# Read cursors — last-read message index per handle"


@dataclass
class ReadChat:
    """What a chat file says."""

    fields: dict[str, str]
    messages: list[tuple[str, int, str]]
    skipped: int
    lines: list[str]

    @property
    def participants(self) -> dict[str, int]:
        found = {}
        for entry in self.fields["participants"].split(", "):
            if entry:
                handle, _, number = entry.partition("(")
                found[handle] = int(number.rstrip(")"))
        return found


def read_chat(path: Path, *, touched: bool = False) -> ReadChat:
    """Read a chat file; asserts what a well-formed header promises (`touched`: but for its length)."""
    data = path.read_bytes()
    rows = data.decode("utf-8", "surrogateescape").split("\n")
    assert rows[0] == "=== nbs-chat ==="
    names = [row.split(": ")[0] for row in rows[1:5]]
    assert names == ["last-writer", "last-write", "file-length", "participants"]
    fields = {row.split(": ", 1)[0]: row.split(": ", 1)[1] for row in rows[1:5]}
    assert rows[5] == "---"
    assert touched or int(fields["file-length"]) == len(data)
    lines = [row for row in rows[6:] if row]
    found = [read_line(line) for line in lines]
    return ReadChat(fields, [m for m in found if m], sum(1 for m in found if not m), lines)


def read_line(line: str) -> tuple[str, int, str] | None:
    """(handle, epoch, text) of a base64 line."""
    if len(line) % 4:
        return None
    try:
        text = base64.b64decode(line, validate=True).decode("utf-8", "surrogateescape")
    except ValueError:
        return None
    if ": " not in text:
        return None
    prefix, content = text.split(": ", 1)
    parts = prefix.split("|")
    if not 0 < len(parts[0].encode("utf-8", "surrogateescape")) < 64:
        return None
    at = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0
    return parts[0], at, content


def read_cursors(path: Path) -> dict[str, int]:
    """The cursor file beside a chat; empty if there is none."""
    file = Path(f"{path}.cursors")
    if not file.exists():
        return {}
    first, *rows = file.read_text(encoding="utf-8").splitlines()
    assert first == FIRST_CURSOR_LINE
    return {row.split("=")[0]: int(row.split("=")[1]) for row in rows}


def tool_send(path: Path, handle: str, text: str, at: int) -> None:
    """Append a message as nbs-chat does, its cursor rule included (it always moves the sender's cursor)."""
    now = read_chat(path, touched=True)
    people = now.participants
    people[handle] = people.get(handle, 0) + 1
    line = base64.b64encode(f"{handle}|{at}: {text}".encode()).decode()
    write_chat(path, handle, people, [*now.lines, line])
    write_cursors(path, read_cursors(path) | {handle: len(now.lines)})


def write_chat(path: Path, writer: str, people: dict[str, int], lines: list[str]) -> None:
    """Write a whole chat file."""
    written = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    who = ", ".join(f"{h}({n})" for h, n in people.items())
    head = f"=== nbs-chat ===\nlast-writer: {writer}\nlast-write: {written}\n"
    tail = f"participants: {who}\n---\n" + "".join(f"{line}\n" for line in lines)
    size = len((head + tail).encode("utf-8", "surrogateescape"))
    for total in range(size + 15, size + 40):
        whole = f"{head}file-length: {total}\n{tail}"
        if len(whole.encode("utf-8", "surrogateescape")) == total:
            break
    temporary = Path(f"{path}.tmp")
    temporary.write_bytes(whole.encode("utf-8", "surrogateescape"))
    os.replace(temporary, path)


def write_cursors(path: Path, cursors: dict[str, int]) -> None:
    """Write the cursor file beside a chat."""
    rows = "".join(f"{handle}={index}\n" for handle, index in cursors.items())
    Path(f"{path}.cursors").write_text(f"{FIRST_CURSOR_LINE}\n{rows}", encoding="utf-8")


@dataclass
class Model:
    """A chat as the description has it: messages with corrupt lines in between, cursors, archives."""

    above: int
    count: int
    lines: list[tuple[str, str] | None] = field(default_factory=list)
    """(handle, text), or None for a corrupt line."""
    cursors: dict[str, int] = field(default_factory=dict)
    archives: list[list[tuple[str, str] | None]] = field(default_factory=list)
    posted: dict[str, int] = field(default_factory=dict)

    @property
    def messages(self) -> list[tuple[str, str]]:
        return [line for line in self.lines if line]

    def cursor(self, handle: str) -> int:
        """The index of the last message read, -1 for none."""
        return min(self.cursors.get(handle, -1), len(self.messages) - 1)

    def send(self, handle: str, text: str) -> None:
        """Post; the cursor moves only over what the sender itself has written."""
        behind = [who for who, _ in self.messages[self.cursor(handle) + 1 :]]
        self.lines.append((handle, text))
        self.posted[handle] = self.posted.get(handle, 0) + 1
        if len(self.messages) > self.above:
            self._archive()
        if all(who == handle for who in behind):
            self.cursors[handle] = len(self.messages) - 1

    def tool_send(self, handle: str, text: str) -> None:
        """Post as nbs-chat does: its cursor always moves, and counts lines that are no messages too."""
        self.cursors[handle] = len(self.lines)
        self.lines.append((handle, text))
        self.posted[handle] = self.posted.get(handle, 0) + 1

    def _archive(self) -> None:
        old: list[tuple[str, str] | None] = []
        while len([line for line in old if line]) < self.count:
            old.append(self.lines.pop(0))
        self.archives.append(old)
        self.cursors = {handle: max(index - self.count, 0) for handle, index in self.cursors.items()}

    def read_unread(self, handle: str) -> list[tuple[str, str]]:
        """Read what is new, which counts as read then."""
        start = self.cursor(handle) + 1
        found = self.messages[start:]
        index = self.cursors.get(handle)
        if found or (index is not None and index >= len(self.messages) > 0):
            self.cursors[handle] = len(self.messages) - 1
        return found
