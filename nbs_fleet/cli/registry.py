"""`nbs-fleet control`: tells a sidecar what to watch for its agent, and shows what it watches."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.lookup import find_handle
from nbs_fleet.cli.params import Json, TeamName, offer_handles
from nbs_fleet.cli.places import Place, acting, here
from nbs_fleet.errors import UsageError
from nbs_fleet.launch.files import append_line
from nbs_fleet.model import PERSON
from nbs_fleet.nbs.control import Registry, inbox_path, resolve
from nbs_fleet.nbs.control_commands import SET_POLL, VERBS, Command, parse_command
from nbs_fleet.nbs.files import make_folder


def offer_verbs() -> list[str]:
    """The verbs that a shell offers."""
    return list(VERBS)


Verb = Annotated[
    str | None,
    typer.Argument(
        metavar="VERB", help="register-chat and the like; without, the registry is listed", autocompletion=offer_verbs
    ),
]
What = Annotated[str | None, typer.Argument(metavar="PATH", help="the file or folder; seconds for set-poll-interval")]
As = Annotated[
    str | None,
    typer.Option("--as", metavar="HANDLE", help="for this agent; an agent needs no --as", autocompletion=offer_handles),
]


def control(verb: Verb = None, path: What = None, *, as_: As = None, json: Json = False, team: TeamName = None) -> int:
    """Say what your sidecar is to watch for you from now on, or list what it watches.

    Verbs: register-chat, unregister-chat, register-bus, unregister-bus, register-hub, unregister-hub,
    set-poll-interval. Only what lies below the root can be registered.

    For example:
        nbs-fleet control
        nbs-fleet control register-chat .nbs/chat/debug.chat
        nbs-fleet control set-poll-interval 600 --as ana
    """
    place = here(team)
    handle = acting(place, find_handle(place.found, as_) if as_ and place.found else as_)
    if handle == PERSON:
        raise UsageError("whose sidecar?", hint="choose an agent with --as HANDLE")
    if place.root is None:
        raise UsageError("neither a team nor a folder .nbs is here")
    if verb is None:
        _list(place.root, handle, json=json)
        return 0
    command = parse_command(f"{verb} {_argument(place, verb, path)}".strip())
    if not isinstance(command, Command):
        raise UsageError(command.why if command else "that is no command", hint="right are: " + ", ".join(VERBS))
    inbox = inbox_path(place.root, handle)
    make_folder(os.path.dirname(inbox))
    append_line(inbox, f"{command.verb} {command.argument}".encode())
    if json:
        output.json({"handle": handle, "verb": command.verb, "argument": command.argument, "inbox": inbox})
    else:
        output.say(f"{handle}: {command.verb} {command.argument}")
    return 0


def _argument(place: Place, verb: str, path: str | None) -> str:
    """The word after the verb: a path from here, or else from the root, written from the root."""
    if path is None:
        return ""
    if verb.endswith(SET_POLL):
        return path
    root = place.root or ""
    found = resolve(root, os.path.abspath(path) if os.path.exists(path) else path)
    if any(c.isspace() for c in found):
        raise UsageError(f"{path}: a path with blanks can't be registered")
    return os.path.relpath(found, os.path.realpath(root))


def _list(root: str, handle: str, *, json: bool) -> None:
    registry = Registry(root, handle)
    entries = registry.entries()
    if json:
        output.json({"handle": handle, "file": registry.path, "entries": [{"kind": k, "path": p} for k, p in entries]})
        return
    for kind, path in entries:
        output.say(f"{kind}:{path}")
    if not entries:
        output.note(f"nothing is registered for {handle}")
