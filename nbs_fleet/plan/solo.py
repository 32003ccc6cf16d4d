"""One agent without a team file: which client a command is, and the team of one that it becomes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import basename
from typing import Any

from msgspec import Struct

from nbs_fleet.errors import UsageError

HANDLE = "claude"
"""The handle that nbs-claude takes where none is given."""
_RESUME = ("--resume", "-r")
_LATEST = ("--continue", "-c")


class Wish(Struct, frozen=True):
    """What is to run alone: the client's command and arguments, under which handle, below which root."""

    words: tuple[str, ...]
    handle: str
    root: str
    driver: str | None = None
    model: str | None = None
    prompt: str | None = None
    session: str | None = None
    """The session to go on with."""

    @property
    def team(self) -> str:
        """The name of the team of one."""
        return f"solo-{self.handle}"


def wish(
    words: tuple[str, ...], environ: Mapping[str, str], *, handle: str | None, root: str | None, driver: str | None
) -> Wish:
    """The wish that a command line and nbs-claude's variables make together; the command line comes first.

    Raises UsageError for a command that says nothing of its client, or that goes on with "the latest" session.
    """
    if not words:
        raise UsageError("solo: which client?", hint="for example: nbs-fleet solo -- claude")
    command, session = _without_session(words)
    return Wish(
        command,
        handle or environ.get("NBS_HANDLE") or HANDLE,
        root or environ.get("NBS_ROOT") or ".",
        driver,
        environ.get("NBS_MODEL") or None,
        environ.get("NBS_INITIAL_PROMPT") or None,
        session or environ.get("NBS_CONTINUE_SESSION") or None,
    )


def team_file(wished: Wish, drivers: tuple[str, ...]) -> dict[str, Any]:
    """The team file of the team of one, as a mapping; `drivers` are the names that a client may have."""
    program, *args = wished.words
    name = basename(program)
    agent: dict[str, Any] = {"handle": _kept(wished.handle), "restart": {"policy": "never"}}
    if name == "nbs-fleet" and args[:1] == ["sim"]:
        name, program, args = "sim", "sim", args[1:]
    driver = wished.driver or name
    if driver not in drivers:
        raise UsageError(f"{name} is no client that is known", hint=f"name one with --driver: {', '.join(drivers)}")
    agent["driver"] = driver
    if program != driver:
        agent["command"] = [_kept(program)]
    if args:
        agent["args"] = [_kept(word) for word in args]
    if wished.model is not None and not any(word.partition("=")[0] == "--model" for word in args):
        agent["model"] = _kept(wished.model)
    if wished.prompt is not None:
        agent["prompt_text"] = "{% raw %}" + _kept(wished.prompt) + "{% endraw %}"
    return {"version": 1, "team": wished.team, "root": _kept(wished.root), "agents": [agent]}


def _without_session(words: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """The command without `--resume ID`, and the ID: a session is chosen by the fleet, which can't pass both."""
    kept: list[str] = []
    session: str | None = None
    rest = iter(words)
    for word in rest:
        if word == "--":
            kept += [word, *rest]
            break
        name, equals, value = word.partition("=")
        if word in _LATEST:
            raise UsageError(f"solo: {word} may mean another agent's session", hint="name it: --resume ID")
        if name not in _RESUME:
            kept.append(word)
            continue
        session = value if equals else next(rest, "")
        if not session or session.startswith("-"):
            raise UsageError(f"solo: {name} needs a session id")
    return tuple(kept), session


def _kept(text: str) -> str:
    """The text as it must stand in a team file, where `$` begins a variable."""
    return text.replace("$", "$$")
