"""The effective team for people: each value with the place that set it, secrets and variables unexpanded."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from nbs_fleet.spec.envfile import looks_secret
from nbs_fleet.spec.loaded import Loaded
from nbs_fleet.spec.overlay import FREE_FORM
from nbs_fleet.spec.problems import Path, printable, show_path
from nbs_fleet.spec.text import flow
from nbs_fleet.spec.units import duration

HIDDEN = "***"

_RENAMED = {"name": "team"}
_SKIPPED = frozenset({"file", "main_chat", "agents", "chats"})
_OF_AGENT_SKIPPED = frozenset({"handle", "base"})
_NOT_TIMES = frozenset({"hours"})
_PATHS = frozenset({"dir", "bus"})
_COMMENT_COLUMN = 48


class Entry(Struct, frozen=True):
    """One effective value: its dotted `key`, its printable `value` (YAML on one line), and where it was set."""

    key: str
    value: str
    origin: str
    path: tuple[str, ...]


def effective(loaded: Loaded) -> tuple[Entry, ...]:
    """All effective values: the team's own keys first, then each agent's, in the order of the file.

    Values that are empty by default are left out. What came from `${NAME}` is given as written; variables whose
    names look secret are given as `***`.
    """
    return tuple(_entries(loaded))


def render(loaded: Loaded) -> str:
    """The effective team as indented lines `key: value  # origin`."""
    lines: list[tuple[str, str]] = []
    above: tuple[str, ...] = ()
    for entry in effective(loaded):
        *folders, name = entry.path
        same = 0
        while same < min(len(folders), len(above)) and folders[same] == above[same]:
            same += 1
        lines.extend((f"{'  ' * depth}{_key(folders[depth])}:", "") for depth in range(same, len(folders)))
        lines.append((f"{'  ' * len(folders)}{_key(name)}: {entry.value}", entry.origin))
        above = tuple(folders)
    width = min(max((len(text) for text, origin in lines if origin), default=0), _COMMENT_COLUMN)
    return "".join(f"{text:<{width}}  # {origin}\n" if origin else f"{text}\n" for text, origin in lines)


def _key(name: str) -> str:
    return show_path((name,)) if show_path((name,)) == name else flow(name)


def _entries(loaded: Loaded) -> Iterator[Entry]:
    team: dict[str, Any] = msgspec.to_builtins(loaded.team)
    for name, value in team.items():
        if name not in _SKIPPED:
            yield from _leaves(loaded, (_RENAMED.get(name, name),), value)
        if name == "root":
            yield from _chats(loaded)
    for agent in team["agents"]:
        for name, value in agent.items():
            if name not in _OF_AGENT_SKIPPED:
                yield from _leaves(loaded, ("agents", agent["handle"], name), value)


def _chats(loaded: Loaded) -> Iterator[Entry]:
    for n, chat in enumerate(loaded.team.chats):
        origin = loaded.origins[show_path(("chats", n))]
        value = {"path": _below(chat.path, loaded.team.root), "members": list(chat.members)}
        where = printable(origin.where, limit=4096)
        key = show_path(("chats", chat.name))
        yield Entry(key, flow(value) if origin.shown is None else origin.shown, where, ("chats", chat.name))


def _leaves(loaded: Loaded, path: tuple[str, ...], value: Any) -> Iterator[Entry]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(loaded, (*path, name), item)
        return
    key = show_path(path)
    origin = loaded.origins.get(key)
    if origin is None and (value is None or value in ("", [], (), {})):
        return
    where = "default" if origin is None else printable(origin.where, limit=4096)
    if origin is not None and origin.shown is not None:
        text = origin.shown
    elif "env" in path[-2:-1] and looks_secret(path[-1]):
        text = flow(HIDDEN)
    else:
        text = "false" if key in ("standup", "pythia") else _text(path, value, loaded.team.root)
    yield Entry(key, text, where, path)


def _text(path: Path, value: Any, root: str) -> str:
    free = any(step in FREE_FORM for step in path[:3])
    if isinstance(value, float) and not free and path[-1] not in _NOT_TIMES:
        return duration(value)
    if path[-1] in _PATHS and not free:
        return flow([_below(item, root) for item in value] if isinstance(value, list | tuple) else _below(value, root))
    return flow(value)


def _below(path: str, root: str) -> str:
    """The path from the root, where it lies below it."""
    if path == root:
        return "."
    return posixpath.relpath(path, root) if path.startswith(root.rstrip("/") + "/") else path
