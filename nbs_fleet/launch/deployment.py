"""Puts what clients need into files of the person or the project, and takes it out again by a list of what was put in.

The list (`deployed.json` in the run directory) is written before each file is: after a crash in between, what it names
is looked for, and what is not there needs no undoing.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

import msgspec
from msgspec import Struct

from nbs_fleet.drivers.deployment import Change, Deployment, Edit, EditError, Format, Fragment, Link, NewFile
from nbs_fleet.errors import FleetError
from nbs_fleet.jsontext import MALFORMED
from nbs_fleet.launch.files import write_atomic

VERSION = 1
LIST = "deployed.json"
SKILL = "SKILL.md"


class Put(Struct, frozen=True, tag=True):
    """One change of one file, the fragment that undoes it, and the agents that need it."""

    path: str
    format: Format
    change: Change
    fragment: Fragment
    handles: tuple[str, ...]
    made: bool = False
    """The file was not there before."""


class Made(Struct, frozen=True, tag=True):
    """A whole file of ours, with its text and the folders that were made for it, outermost first."""

    path: str
    text: str
    handles: tuple[str, ...]
    folders: tuple[str, ...] = ()


class Linked(Struct, frozen=True, tag=True):
    """A link of ours, where it leads, and the folders that were made for it, outermost first."""

    path: str
    target: str
    handles: tuple[str, ...]
    folders: tuple[str, ...] = ()


Entry = Put | Made | Linked


class Listed(Struct, frozen=True):
    """The content of the list."""

    entries: tuple[Entry, ...] = ()
    version: int = VERSION


def deploy(run: str, handle: str, wanted: tuple[Deployment, ...]) -> tuple[Entry, ...]:
    """Make the files say what one agent needs, no more and no less of ours; returns what stands for it now.

    What an earlier start put in and this one doesn't want, or wants otherwise, is taken out first.
    FleetError where a file can't be changed; what was done before stays listed.
    """
    if not wanted and not os.path.lexists(os.path.join(run, LIST)):
        return ()
    kept = _keys(wanted)
    for entry in read(run).entries:
        if handle in entry.handles and (_key(entry) not in kept or not stands(entry)):
            _leave(run, handle, entry)
    for one in wanted:
        if isinstance(one, NewFile):
            _make(run, handle, one)
        elif isinstance(one, Link):
            _link(run, handle, one)
        else:
            for change in one.changes:
                _put(run, handle, one, change)
    return tuple(entry for entry in read(run).entries if handle in entry.handles)


def undo(run: str, handle: str | None = None) -> tuple[str, ...]:
    """Take out what was put in for one agent, or for all; returns what a person must do, one line each."""
    problems = []
    for entry in reversed(read(run).entries):
        for name in entry.handles if handle is None else (handle,):
            if name in entry.handles:
                try:
                    _leave(run, name, entry)
                except FleetError as error:
                    problems.append(error.message)
                    break
                entry = _now(run, entry) or entry  # noqa: PLW2901 - it has one agent less
    if not problems and not read(run).entries:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(run, LIST))
    return tuple(problems)


def read(run: str) -> Listed:
    """What is put in now. FleetError if the list is damaged or of a later version."""
    path = os.path.join(run, LIST)
    try:
        with open(path, "rb") as file:
            found = msgspec.json.decode(file.read(), type=Listed)
    except FileNotFoundError:
        return Listed()
    except (OSError, *MALFORMED) as error:
        raise FleetError(f"{path}: {error}", hint="look by hand for what nbs-fleet put into your settings") from error
    if found.version != VERSION:
        raise FleetError(f"{path} is of version {found.version}", hint="use the nbs-fleet that wrote it")
    return found


def describe(entry: Entry) -> str:
    """One line for a person: where, what, for whom."""
    what = "the whole file"
    if isinstance(entry, Linked):
        what = "a link"
    elif isinstance(entry, Put):
        what = ".".join(entry.change.path)
    return f"{entry.path}  {what}  for {', '.join(entry.handles)}"


def stands(entry: Entry) -> bool:
    """Whether the file still says it."""
    from nbs_fleet.plan import edits  # noqa: PLC0415 - brings YAML, which a command that deploys nothing does not load

    if isinstance(entry, Linked):
        return _leads(entry.path) == entry.target
    text = _text(entry.path)
    if isinstance(entry, Made):
        return text == entry.text
    try:
        return text is not None and edits.there(edits.read(text, entry.format), entry.change)
    except EditError:
        return False


def _write(run: str, entries: tuple[Entry, ...]) -> None:
    write_atomic(os.path.join(run, LIST), msgspec.json.encode(Listed(entries)), durable=True)


def _key(entry: Entry) -> tuple[str, bytes]:
    match entry:
        case Put():
            return entry.path, msgspec.json.encode(entry.change)
        case Made():
            return entry.path, msgspec.json.encode(entry.text)
        case Linked():
            return entry.path, msgspec.json.encode(entry.target)


def _keys(wanted: tuple[Deployment, ...]) -> set[tuple[str, bytes]]:
    found: set[tuple[str, bytes]] = set()
    for one in wanted:
        parts: list[object] = []
        match one:
            case NewFile():
                parts.append(one.text)
            case Link():
                parts.append(one.target)
            case Edit():
                parts.extend(one.changes)
        found |= {(one.path, msgspec.json.encode(part)) for part in parts}
    return found


def _now(run: str, entry: Entry) -> Entry | None:
    return next((one for one in read(run).entries if _key(one) == _key(entry)), None)


def _joined(run: str, handle: str, entry: Entry | None) -> bool:
    """Whether another agent's change is this one's as well."""
    if entry is None:
        return False
    if handle not in entry.handles:
        both = msgspec.structs.replace(entry, handles=(*entry.handles, handle))
        _write(run, tuple(both if _key(one) == _key(entry) else one for one in read(run).entries))
    return True


def _put(run: str, handle: str, edit: Edit, change: Change) -> None:
    from nbs_fleet.plan import edits  # noqa: PLC0415 - brings YAML, which a command that deploys nothing does not load

    listed = read(run).entries
    known = next((e for e in listed if isinstance(e, Put) and (e.path, e.change) == (edit.path, change)), None)
    if known is not None and stands(known) and _joined(run, handle, known):
        return
    before = _text(edit.path)
    try:
        after, fragment = edits.put(before or "", edit.format, change)
    except EditError as error:
        raise FleetError(f"{edit.path}: {error}", hint="mend the file, or set it there by hand") from error
    if fragment is None:
        return
    made = before is None or any(isinstance(e, Put) and e.path == edit.path and e.made for e in listed)
    _write(run, (*listed, Put(edit.path, edit.format, change, fragment, (handle,), made)))
    _replace(edit.path, after)


def _make(run: str, handle: str, new: NewFile) -> None:
    listed = read(run).entries
    known = next((e for e in listed if isinstance(e, Made) and (e.path, e.text) == (new.path, new.text)), None)
    if _joined(run, handle, known):
        return
    if os.path.lexists(new.path):
        raise FleetError(f"{new.path} is there already, and is not ours", hint="move it, or name ours otherwise")
    folders = _missing_folders(os.path.dirname(new.path))
    _write(run, (*listed, Made(new.path, new.text, (handle,), folders)))
    _make_folder(os.path.dirname(new.path))
    write_atomic(new.path, new.text, new.mode)


def _link(run: str, handle: str, new: Link) -> None:
    listed = read(run).entries
    known = next((e for e in listed if isinstance(e, Linked) and (e.path, e.target) == (new.path, new.target)), None)
    if (known is None or stands(known)) and _joined(run, handle, known):
        return
    if os.path.lexists(new.path):
        if _same_skill(new.path, new.target):
            return
        raise FleetError(f"{new.path} is there already, and is not ours", hint="move it, or name ours otherwise")
    if known is None:
        folders = _missing_folders(os.path.dirname(new.path))
        _write(run, (*listed, Linked(new.path, new.target, (handle,), folders)))
    else:
        _joined(run, handle, known)
    _make_folder(os.path.dirname(new.path))
    try:
        os.symlink(new.target, new.path)
    except OSError as error:
        raise FleetError(f"{new.path}: {error.strerror}") from error


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise FleetError(f"{error.filename}: {error.strerror}") from error


def _leads(path: str) -> str | None:
    """Where a link leads to; None if there is none."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def _same_skill(path: str, target: str) -> bool:
    """Whether a folder that is not ours gives the client the same skill: a person's own copy, another team's link."""
    theirs, ours = (_text(os.path.join(place, SKILL)) for place in (path, target))
    return ours is not None and theirs == ours


def _leave(run: str, handle: str, entry: Entry) -> None:
    """One agent needs it no more; with the last one it goes."""
    rest = tuple(name for name in entry.handles if name != handle)
    others = tuple(one for one in read(run).entries if _key(one) != _key(entry))
    if rest:
        _write(run, (*others, msgspec.structs.replace(entry, handles=rest)))
        return
    if isinstance(entry, Put):
        _take(entry)
    else:
        _unmake(entry)
    _write(run, others)


def _take(entry: Put) -> None:
    from nbs_fleet.plan import edits  # noqa: PLC0415 - brings YAML, which a command that deploys nothing does not load

    text = _text(entry.path)
    if text is None:
        return
    try:
        after = edits.take(text, entry.format, entry.change, entry.fragment)
        empty = entry.made and not edits.read(after, entry.format) and not after.strip().strip("{}").strip()
    except EditError as error:
        raise FleetError(f"{entry.path}: {error}", hint="take it out by hand") from error
    if empty:
        with suppress(FileNotFoundError):
            os.unlink(os.path.realpath(entry.path))
    elif after != text:
        _replace(entry.path, after)


def _unmake(entry: Made | Linked) -> None:
    """A file that a person has changed since stays: it is theirs now."""
    if stands(entry):
        with suppress(FileNotFoundError):
            os.unlink(entry.path)
    for folder in reversed(entry.folders):
        with suppress(OSError):
            os.rmdir(folder)


def _missing_folders(folder: str) -> tuple[str, ...]:
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return tuple(missing)


def _text(path: str) -> str | None:
    """The text of a file, byte for byte; None if it is not there."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FleetError(f"{path}: {error.strerror}") from error


def _replace(path: str, text: str) -> None:
    """Write where a link points to, with the mode that the file has."""
    real = os.path.realpath(path)
    try:
        mode = stat.S_IMODE(os.stat(real).st_mode)
    except FileNotFoundError:
        mode = 0o600
        os.makedirs(os.path.dirname(real), exist_ok=True)
    write_atomic(real, text, mode, durable=True)
