"""The control inbox an agent writes to, the registry of what is watched for it, and the paths it may name."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct

from nbs_fleet.nbs.chat import chat_files
from nbs_fleet.nbs.control_commands import KINDS, Command, Problem, parse_command
from nbs_fleet.nbs.files import NbsFileError, make_folder, read_bytes, refuse, replace

_AT_ONCE = 1024 * 1024
"""Bytes of an inbox that are read at once; more comes with the next look."""


class OutsideError(NbsFileError):
    """A path that leads out of the root."""


def inbox_path(root: str, handle: str) -> str:
    """Where an agent writes commands for its sidecar."""
    return os.path.join(root, ".nbs", f"control-inbox-{handle}")


def registry_path(root: str, handle: str) -> str:
    """Where stands what is watched for an agent."""
    return os.path.join(root, ".nbs", f"control-registry-{handle}")


def resolve(root: str, path: str) -> str:
    """The real absolute path of what an agent named, relative to the root. Raises OutsideError if it lies outside."""
    if "\0" in path or "\n" in path:
        raise OutsideError(f"{path!r} is no path")
    real_root = os.path.realpath(root)
    found = os.path.realpath(os.path.join(real_root, path))
    if found == real_root or not found.startswith(real_root.rstrip("/") + "/"):
        raise OutsideError(f"{path} is not inside {real_root}", hint="only what lies below the root can be registered")
    return found


class Position(Struct, frozen=True):
    """How far an inbox was read: bytes, and the inode of the file they were read from."""

    offset: int = 0
    inode: int = 0


class News(Struct, frozen=True):
    """New lines of an inbox: commands and problems in order, and where to go on next time."""

    found: tuple[Command | Problem, ...]
    position: Position


def end_of(path: str) -> Position:
    """The end of an inbox as it is: what stands there was for an earlier life of the agent."""
    try:
        found = os.stat(path)
    except OSError:
        return Position()
    return Position(found.st_size, found.st_ino)


def read_inbox(path: str, position: Position) -> News:
    """The whole lines after `position`; a last line that has no newline yet waits.

    The file is only ever appended to. If it is another one, or shorter, than before, that is a problem that is
    reported, and reading begins anew. Raises NbsFileError.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return News((), position)
    except OSError as error:
        refuse("read", path, error)
    try:
        found = os.fstat(fd)
        offset, problems = position.offset, list[Problem]()
        if found.st_size < offset or (position.inode not in (0, found.st_ino)):
            problems.append(Problem(os.path.basename(path), "was replaced or cut; it is read from its beginning"))
            offset = 0
        data = os.pread(fd, _AT_ONCE, offset)
    except OSError as error:
        refuse("read", path, error)
    finally:
        os.close(fd)
    whole, newline, _ = data.rpartition(b"\n")
    if not newline and len(data) == _AT_ONCE:
        return News((*problems, Problem("...", "a line is too long")), Position(offset + len(data), found.st_ino))
    lines = whole.decode("utf-8", "replace").split("\n") if newline else []
    commands = tuple(command for line in lines if (command := parse_command(line)) is not None)
    return News((*problems, *commands), Position(offset + len(whole) + len(newline), found.st_ino))


class Registry:
    """What is watched for one agent: lines `chat:PATH`, `bus:PATH`, `hub:PATH`, in order, each once.

    The nbs tools take the first chat and the first bus for their own posts, so the order matters. Written only by the
    agent's sidecar; each write replaces the file in one step.
    """

    def __init__(self, root: str, handle: str) -> None:
        self.path = registry_path(root, handle)

    def entries(self, kind: str | None = None) -> tuple[tuple[str, str], ...]:
        """(kind, path) of all entries, or of one kind. Lines that are no entries are left out."""
        text = (read_bytes(self.path) or b"").decode("utf-8", "surrogateescape")
        found: dict[tuple[str, str], None] = {}
        for line in text.split("\n"):
            name, colon, path = line.rstrip("\r").partition(":")
            if colon and path and name in KINDS and kind in (None, name):
                found[name, path] = None
        return tuple(found)

    def paths(self, kind: str) -> tuple[str, ...]:
        """The paths of one kind."""
        return tuple(path for _, path in self.entries(kind))

    def add(self, kind: str, path: str) -> bool:
        """Add an entry at the end; False if it is there already."""
        entries = self.entries()
        if (kind, path) in entries:
            return False
        self.write((*entries, (kind, path)))
        return True

    def remove(self, kind: str, path: str) -> bool:
        """Remove an entry; False if it is not there."""
        entries = self.entries()
        if (kind, path) not in entries:
            return False
        self.write(entry for entry in entries if entry != (kind, path))
        return True

    def write(self, entries: Iterable[tuple[str, str]]) -> None:
        """Replace everything."""
        text = "".join(f"{kind}:{path}\n" for kind, path in dict.fromkeys(entries)).encode("utf-8", "surrogateescape")
        if read_bytes(self.path) != text:
            make_folder(os.path.dirname(self.path))
            replace(self.path, text)


def seed(
    root: str, chats: Iterable[str], buses: Iterable[str], foreign: Iterable[str] = ()
) -> tuple[tuple[str, str], ...]:
    """What is watched for an agent from its start: its chats and buses of the team file, then what else is there.

    That is each chat in the nbs tools' folder, archives left out, and `.nbs/events`; but not the chats in `foreign`,
    which the team file gives to others. Paths are absolute.
    """
    own = [os.path.join(root, path) for path in chats]
    barred = {os.path.realpath(os.path.join(root, path)) for path in foreign}
    found = [path for path in chat_files(root) if os.path.realpath(path) not in barred]
    events = os.path.join(root, ".nbs", "events")
    folders = [os.path.join(root, path) for path in buses]
    if os.path.isdir(events):
        folders.append(events)
    every = [("chat", path) for path in (*own, *found)] + [("bus", path) for path in folders]
    return tuple(dict.fromkeys((kind, os.path.abspath(path)) for kind, path in every))


def apply(root: str, registry: Registry, command: Command) -> bool:
    """Carry out a registration; False if nothing changed. Raises OutsideError for a path outside of the root.

    `set-poll-interval` changes no registry: its seconds are the sidecar's own business.
    """
    if command.kind is None:
        return False
    path = resolve(root, command.argument)
    if command.registers:
        return registry.add(command.kind, path)
    if registry.remove(command.kind, path):
        return True
    # An entry of the nbs tools may be written otherwise than its real path.
    for entry in registry.paths(command.kind):
        if os.path.realpath(os.path.join(root, entry)) == path:
            return registry.remove(command.kind, entry)
    return False
