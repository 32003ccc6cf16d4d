"""Which chat, which events directory, which agent speaks: what the commands on the nbs files share."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from nbs_fleet.cli.guard import speaker
from nbs_fleet.cli.lookup import Found, find_team, teams
from nbs_fleet.errors import FleetError, UnknownNameError
from nbs_fleet.model import PERSON
from nbs_fleet.nbs.chat import chat_files
from nbs_fleet.plan.types import Plan
from nbs_fleet.supervisor.store import read_plan


class Place(Struct, frozen=True):
    """Where a command works: the root (None: nowhere), the team and its plan if one is meant."""

    root: str | None
    found: Found | None = None
    plan: Plan | None = None

    @property
    def roster(self) -> tuple[str, ...]:
        """The handles of the team; none where no team is known."""
        return tuple(a.agent.handle for a in self.plan.agents) if self.plan else ()


def here(team: str | None = None, *, environ: Mapping[str, str] = os.environ) -> Place:
    """The team that is meant, if there is one; else the nearest folder upwards that has a `.nbs`.

    The nbs files are of use without a team too. Raises UnknownNameError only for a team that was named.
    """
    try:
        found = find_team(team, environ=environ)
    except UnknownNameError:
        if team is not None or environ.get("NBS_FLEET_RUN"):
            raise
        return Place(_nearest(os.getcwd()))
    return Place(found.root, found, read_plan(found.paths))


def _nearest(folder: str) -> str | None:
    folder = os.path.realpath(folder)
    while not os.path.isdir(os.path.join(folder, ".nbs")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def chat_path(place: Place, name: str) -> str:
    """The file of a chat: of one of the team's by its name, of a path as it is, else of `.nbs/chat/NAME.chat`."""
    known = {chat.name: chat.path for chat in place.plan.chats} if place.plan else {}
    if name in known:
        return known[name]
    if os.sep in name or name.endswith(".chat") or os.path.isfile(name):
        return _below(place, name)
    if place.root is None:
        raise UnknownNameError(
            f'no chat "{name}": neither a team nor a folder .nbs is here', hint="name a file, like ./live.chat"
        )
    return os.path.join(place.root, ".nbs", "chat", f"{name}.chat")


def chat_names(place: Place) -> dict[str, str]:
    """Name -> path of all chats: the team's, then what else lies in `.nbs/chat`."""
    found = {chat.name: chat.path for chat in place.plan.chats} if place.plan else {}
    taken = {os.path.realpath(path) for path in found.values()}
    for path in chat_files(place.root) if place.root else ():
        if os.path.realpath(path) not in taken:
            found.setdefault(os.path.basename(path).removesuffix(".chat"), path)
    return found


def bus_folder(place: Place, name: str) -> str:
    """An events directory: a path from here, else from the root."""
    return _below(place, name)


def _below(place: Place, path: str) -> str:
    """The path from here if something is there, else from the root if something is there, else from here."""
    at_root = os.path.join(place.root, path) if place.root else path
    chosen = path if os.path.exists(path) or not os.path.exists(at_root) else at_root
    return os.path.abspath(chosen)


def agent_here(place: Place, *, environ: Mapping[str, str] = os.environ) -> str | None:
    """The agent on whose behalf this process runs, None for a person; an agent of nbs-claude is one too."""
    for found in (place.found,) if place.found else teams(environ):
        who = speaker(found, environ=environ)
        if who != PERSON:
            return who
    return environ.get("NBS_HANDLE") or None


def acting(place: Place, wanted: str | None, *, environ: Mapping[str, str] = os.environ) -> str:
    """The handle to act under: an agent's own, a person's as wanted, else `person`.

    Raises FleetError if an agent wants to be another.
    """
    own = agent_here(place, environ=environ)
    if own is None:
        return wanted or PERSON
    if wanted not in (None, own):
        raise FleetError(f"{own} can't act as {wanted}", hint=f"an agent is known by its pane: this one is {own}")
    return own
