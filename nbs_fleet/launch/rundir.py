"""Where a team's run directory and runtime directory are, and their safe making and removal."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec

from nbs_fleet.errors import FleetError
from nbs_fleet.jsontext import MALFORMED
from nbs_fleet.launch.files import read_text, write_atomic
from nbs_fleet.plan.paths import RunPaths

_SOCKET_BYTES = 100
"""Longest path of a socket: 104 bytes with the closing zero on BSD and macOS, 108 on Linux; some room is left."""
_PRIVATE = 0o700
_POINTER = "runtime"
"""The file in a run directory that names its runtime directory, for shells with another XDG_RUNTIME_DIR."""


class KnownTeam(NamedTuple):
    """One team as its run directory tells it."""

    team: str
    root: str
    run: str


def state_home(environ: Mapping[str, str]) -> str:
    """`${XDG_STATE_HOME:-~/.local/state}/nbs-fleet`; a relative XDG_STATE_HOME counts as unset."""
    base = environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):
        home = environ.get("HOME") or os.path.expanduser("~")
        base = os.path.join(home, ".local", "state")
    return os.path.join(base, "nbs-fleet")


def run_paths(root: str, team: str, environ: Mapping[str, str]) -> RunPaths:
    """The paths of `team` in `root` (an absolute real path).

    Where the team has run before, the runtime directory it used is kept, whatever XDG_RUNTIME_DIR says now.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(root)).strip("-.")[:40] or "root"
    run = os.path.join(state_home(environ), f"{name}-{_digest(root)}", team)
    runtime = _recorded_runtime(run) or _runtime(run, environ)
    return RunPaths(run, runtime, _socket(run, runtime, "supervisor.sock"), _socket(run, runtime, "tmux.sock"))


def prepare(paths: RunPaths, root: str) -> tuple[str, ...]:
    """Make the run directory, the runtime directory and the link `<root>/.nbs/fleet/<team>`.

    Returns remarks about what could not be done and does not matter (the link is for people). Raises FleetError
    when a directory is not ours, not 0700, or holds symbolic links: nothing is mended silently.
    """
    for folder in (*_chain(paths.run, 3), *_chain(paths.runtime, 2)):
        _make_private(folder)
    for folder in (os.path.join(paths.run, "agents"), paths.bin):
        _make_private(folder)
    for entry in _shallow(paths.run):
        if entry.is_symlink():
            raise FleetError(f"{entry.path} is a symbolic link", hint="Remove it; a run directory holds none.")
    fleet = os.path.join(root, ".nbs", "fleet")
    made_nbs = not os.path.lexists(os.path.dirname(fleet)) or None
    for path, data in signs(paths, root, made_nbs=made_nbs).items():
        write_atomic(path, data)
    return _link(fleet, paths.run)


def signs(paths: RunPaths, root: str, *, made_nbs: bool | None = None) -> dict[str, bytes]:
    """The files, by path, by which a run directory is found and finds its runtime directory.

    `made_nbs`: whether `<root>/.nbs` is there because of this team; None: as the index on disk says.
    """
    made = _index(paths.team).get("made_nbs") is True if made_nbs is None else made_nbs
    index = {"schema": 1, "team": os.path.basename(paths.run), "root": root, "made_nbs": made}
    return {
        os.path.join(paths.run, _POINTER): os.fsencode(paths.runtime + "\n"),
        paths.team: msgspec.json.format(msgspec.json.encode(index)) + b"\n",
    }


def known_teams(environ: Mapping[str, str]) -> list[KnownTeam]:
    """All teams of this person with a run directory, ordered by team and root; unreadable ones are left out."""
    found: list[KnownTeam] = []
    for folder in _folders(state_home(environ)):
        for run in _folders(folder):
            index = _index(os.path.join(run, "team.json"))
            team, root = index.get("team"), index.get("root")
            if team == os.path.basename(run) and isinstance(root, str) and root.startswith("/") and "\0" not in root:
                found.append(KnownTeam(os.path.basename(run), root, run))
    return sorted(found)


def remove_runtime(paths: RunPaths) -> None:
    """Remove the runtime directory with its values and sockets, and its parent if that is empty then."""
    _remove_tree(paths.runtime)
    _remove_empty(os.path.dirname(paths.runtime))


def purge(paths: RunPaths, root: str) -> None:
    """Remove everything of this team: run directory, runtime directory, and the link in the root."""
    made_nbs = _index(paths.team).get("made_nbs") is True
    remove_runtime(paths)
    _remove_tree(paths.run)
    for folder in (os.path.dirname(paths.run), os.path.dirname(os.path.dirname(paths.run))):
        _remove_empty(folder)
    fleet = os.path.join(root, ".nbs", "fleet")
    link = os.path.join(fleet, os.path.basename(paths.run))
    with suppress(OSError):
        if os.path.islink(link) and os.readlink(link) == paths.run:
            os.unlink(link)
        if os.listdir(fleet) == [".gitignore"]:
            os.unlink(os.path.join(fleet, ".gitignore"))
            os.rmdir(fleet)
    if made_nbs:
        _remove_empty(os.path.dirname(fleet))


def private_fault(path: str) -> str | None:
    """Why `path` is no directory of ours that only we can enter; None if it is fine."""
    try:
        found = os.lstat(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    if stat.S_ISLNK(found.st_mode):
        return f"{path} is a symbolic link"
    if not stat.S_ISDIR(found.st_mode):
        return f"{path} is not a directory"
    if found.st_uid != os.getuid():
        return f"{path} belongs to user {found.st_uid}, not to you ({os.getuid()})"
    if stat.S_IMODE(found.st_mode) & 0o7777 != _PRIVATE:
        return f"{path} has mode {stat.S_IMODE(found.st_mode):04o}, it must be 0700"
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:8]


def _runtime(run: str, environ: Mapping[str, str]) -> str:
    own = environ.get("XDG_RUNTIME_DIR", "")
    place = os.path.join(own, "nbs-fleet", _digest(run))
    if own.startswith("/") and _fits(os.path.join(place, "supervisor.sock")) and _is_ours(own):
        return place
    return os.path.join(f"/tmp/nbs-fleet-{os.getuid()}", _digest(run))  # noqa: S108 -- owner and mode are checked


def _is_ours(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _recorded_runtime(run: str) -> str | None:
    with suppress(FleetError):
        text = (read_text(os.path.join(run, _POINTER), 4096) or "").strip()
        if text.startswith("/") and os.path.basename(text) == _digest(run) and private_fault(text) is None:
            return text
    return None


def _socket(run: str, runtime: str, name: str) -> str:
    near = os.path.join(run, name)
    return near if _fits(near) else os.path.join(runtime, name)


def _fits(path: str) -> bool:
    return len(os.fsencode(path)) <= _SOCKET_BYTES


def _chain(path: str, ours: int) -> Iterator[str]:
    """The last `ours` directories of `path`, outermost first: those that this program makes and owns."""
    parts = [path]
    for _ in range(ours - 1):
        parts.append(os.path.dirname(parts[-1]))
    yield from reversed(parts)


def _make_private(path: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), mode=_PRIVATE, exist_ok=True)
        os.mkdir(path, _PRIVATE)
        os.chmod(path, _PRIVATE)
    except FileExistsError:
        pass
    except OSError as error:
        raise FleetError(f"can't make {path}: {error.strerror}") from error
    if fault := private_fault(path):
        raise FleetError(fault, hint="Move it away or mend it by hand; nbs-fleet changes nothing it does not own.")


def _shallow(run: str) -> Iterator[os.DirEntry[str]]:
    """The entries of a run directory down to each agent's folders; what lies in those is not followed anyway."""
    level = [run]
    for _ in range(3):
        below: list[str] = []
        for folder in level:
            with suppress(FileNotFoundError), os.scandir(folder) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
        level = below


def _link(fleet: str, run: str) -> tuple[str, ...]:
    link = os.path.join(fleet, os.path.basename(run))
    try:
        os.makedirs(fleet, exist_ok=True)
        ignore = os.path.join(fleet, ".gitignore")
        if not os.path.lexists(ignore):
            write_atomic(ignore, "*\n", 0o644)
        if os.path.islink(link):
            if os.readlink(link) == run:
                return ()
            os.unlink(link)
        os.symlink(run, link)
    except (OSError, FleetError) as error:
        return (f"no link {link}: {getattr(error, 'strerror', None) or error}",)
    return ()


def _index(path: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(read_text(path, 1_000_000) or "{}", type=dict[str, object])
    except (FleetError, *MALFORMED):
        return {}


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _remove_tree(path: str) -> None:
    import shutil  # noqa: PLC0415 - only here, and a command that removes nothing starts faster without it

    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise FleetError(f"can't remove {path}: {error.strerror}") from error


def _remove_empty(path: str) -> None:
    with suppress(OSError):
        os.rmdir(path)
