"""Makes the Team from a file that was found valid: roles and copies written out, seconds, absolute paths."""

from __future__ import annotations

import os
import re
from typing import Any

import msgspec

from nbs_fleet.spec import quick
from nbs_fleet.spec.environment import Defaults
from nbs_fleet.spec.inherit import DEFAULT_DRIVER, Effective, effective, leaves, origin, origins_of
from nbs_fleet.spec.loaded import Origin
from nbs_fleet.spec.names import Entry, Names, chat_names
from nbs_fleet.spec.nodes import Map, Scalar, Seq, plain, scalars, text_of
from nbs_fleet.spec.places import below, beside, bus_of, chat_path, prompt_place, skill_place
from nbs_fleet.spec.problems import FileRef, show_path
from nbs_fleet.spec.team import Agent, Chat, Team
from nbs_fleet.spec.units import seconds

STANDUP_EVERY = 900.0
PYTHIA_EVERY = 20

_AS_WRITTEN = (
    "command",
    "client",
    "args",
    "model",
    "permission_mode",
    "permissions",
    "environment",
    "env",
    "env_pass",
    "settings",
    "prompt_text",
    "sidecar",
    "dialogs",
    "restart",
    "context",
    "stop",
    "on_idle",
    "on_dead",
    "on_error",
    "on_prompt",
    "budget",
    "notifications",
)
_ELSEWHERE = quick.rendered().common | {"agents", "roles", "version"}


class Context(msgspec.Struct, frozen=True):
    """What building needs: the merged tree, its names, the real root, and what lies around the file."""

    tree: Map
    main: FileRef
    names: Names
    root: str
    defaults: Defaults
    override: str | None


def build(context: Context) -> tuple[Team, dict[str, Origin]]:
    """The team, and where each of its values was set."""
    tree, root = context.tree, context.root
    data = quick.read("TeamFile", plain(tree))
    origins = dict(_team_origins(tree))
    agents: list[Agent] = []
    for entry in context.names.entries:
        values = effective(tree, entry, context.names, context.defaults, context.override)
        for agent in _agents(context, entry, values, data):
            agents.append(agent)
            origins.update(origins_of(values, agent.handle))
            _inherit(origins, agent.handle)
            if context.override is not None:
                origins[show_path(("agents", agent.handle, "driver"))] = Origin("--driver")
    chats = tuple(
        Chat(chat["name"], chat_path(root, chat["name"], chat.get("path")), _takers(agents, chat["name"]))
        for chat in data.get("chats", ())
    )
    team = {
        "name": data["team"],
        "file": context.main.path,
        "root": root,
        "agents": (),
        "bus": bus_of(tree.get("bus"), root),
        "standup": _standup(context, data, origins),
        "pythia": _pythia(context, data),
        "main_chat": chats[0].name if chats else None,
    }
    team.update({key: data[key] for key in ("vars", "layout", "budget", "notifications") if key in data})
    built = msgspec.convert(team, Team)
    return msgspec.structs.replace(built, agents=tuple(agents), chats=chats), origins


def _inherit(origins: dict[str, Origin], handle: str) -> None:
    """Where the agent has none of its own, the team's is its."""
    for key in ("bus", "notifications"):
        if key in origins:
            origins.setdefault(show_path(("agents", handle, key)), origins[key])


def _takers(agents: list[Agent], chat: str) -> tuple[str, ...]:
    return tuple(agent.handle for agent in agents if chat in agent.chats)


def _agents(context: Context, entry: Entry, values: Effective, team: dict[str, Any]) -> list[Agent]:
    """All copies of one item of `agents`."""
    node, root = values.node, context.root
    data = quick.read("AgentFile", plain(node))
    common = {key: data[key] for key in _AS_WRITTEN if key in data}
    common["base"], common["role"] = entry.base, data.get("role")
    common["driver"] = context.override or data.get("driver", DEFAULT_DRIVER)
    common["dir"] = below(root, data["dir"]) if "dir" in data else root
    common["bus"] = bus_of(node.get("bus") or context.tree.get("bus"), root)
    common["skills"] = [skill_place(item) for _, item in scalars(node.get("skills"))]
    common["dialogs"] = _dialogs(node, data.get("dialogs", {}))
    common.setdefault("notifications", team.get("notifications", []))
    env_file, prompt = node.get("env_file"), node.get("prompt")
    common["env_file"] = beside(env_file) if isinstance(env_file, Scalar) else None
    common["prompt"] = prompt_place(prompt) if isinstance(prompt, Scalar) else None
    waits = [handle for name in data.get("depends_on", ()) for handle in context.names.copies(name)]
    common["depends_on"] = list(dict.fromkeys(waits))
    listed = data.get("chats")
    found = []
    for handle in entry.copies:
        chats = [c for c in _memberships(context, handle) if listed is None or c in listed]
        found.append(msgspec.convert({**common, "handle": handle, "chats": chats}, Agent))
    return found


def _memberships(context: Context, handle: str) -> list[str]:
    names: list[str] = []
    for _, _, _, chat in chat_names(context.tree):
        members = context.names.members[chat]
        if members is None or handle in members:
            names.append(chat)
    return names


def _dialogs(node: Map, dialogs: dict[str, str]) -> dict[str, str]:
    """Where the file itself asks for the bypass mode, its warning is accepted unless the file says otherwise."""
    mode = node.get("permission_mode")
    asked = isinstance(mode, Scalar) and not mode.expanded and mode.text == "bypassPermissions"
    return {"bypass": "accept", **dialogs} if asked else dialogs


def _standup(context: Context, data: dict[str, Any], origins: dict[str, Origin]) -> dict[str, Any] | None:
    asked = context.defaults.standup
    every = seconds(asked.text) if asked is not None else None
    chats = [chat["name"] for chat in data.get("chats", ())]
    section = data.get("standup")
    if section is None and ("standup" in data or not every or not chats):
        return None
    values = dict(section or {})
    if "every" not in values:
        values["every"] = every or STANDUP_EVERY
        if every and asked is not None:
            origins["standup.every"] = origin(asked)
    values.setdefault("chat", chats[0])
    return values


def _pythia(context: Context, data: dict[str, Any]) -> dict[str, Any] | None:
    section = data.get("pythia")
    if section is None:
        return None
    root = context.root
    bus = below(root, section["bus"]) if "bus" in section else bus_of(context.tree.get("bus"), root)[0]
    agent = context.names.copies(section["agent"])[0] if "agent" in section else None
    return {"every": section.get("every") or _interval(bus), "bus": bus, "agent": agent}


def _interval(bus: str) -> int:
    """`pythia-interval` of the bus's config.yaml, as the nbs tools read it: flat `key: value` lines."""
    try:
        with open(os.path.join(bus, "config.yaml"), "rb") as stream:
            found = re.search(rb"(?m)^pythia-interval:[ \t]*([0-9]{1,6})[ \t\r]*$", stream.read(65536))
    except OSError:
        return PYTHIA_EVERY
    return (int(found.group(1)) if found else 0) or PYTHIA_EVERY


def _team_origins(tree: Map) -> list[tuple[str, Origin]]:
    found: list[tuple[str, Origin]] = []
    for path, leaf in leaves(tree):
        if path[0] not in _ELSEWHERE and path[0] != "chats":
            found.append((show_path(path), origin(leaf)))
    chats = tree.get("chats")
    for n, item in enumerate(chats.items if isinstance(chats, Seq) else ()):
        name = text_of(item.get("name") if isinstance(item, Map) else item)
        if name is not None:
            found.append((show_path(("chats", n)), origin(item)))
    return found
