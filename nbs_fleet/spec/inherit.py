"""What holds for one agent: agent over role over team over environment, and where each value came from."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from nbs_fleet.spec import quick
from nbs_fleet.spec.environment import Defaults
from nbs_fleet.spec.loaded import Origin
from nbs_fleet.spec.names import Entry, Names
from nbs_fleet.spec.nodes import Map, Node, Scalar, Seq, find, shown, text_of
from nbs_fleet.spec.overlay import WHOLE, mapping, only, overlay
from nbs_fleet.spec.problems import Path, Problems, closest, quoted, show_path
from nbs_fleet.spec.text import flow

DEFAULT_DRIVER = "claude"
GENERIC = "generic"
"""The driver that a team file itself describes the client for."""

_TEAM_KEYS = quick.rendered().common
_ROLE_KEYS = quick.rendered().role
_OF_A_DRIVER = ("command", "client", "args", "model", "permission_mode")
_TAKES_SETTINGS = ("claude", "claudeless", "sim")
"""Drivers that give their client a settings file."""
_MODES = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")


class Layer(Struct, frozen=True):
    """One source of values; `label` is put before the place in the file."""

    label: str
    node: Map


class Effective(Struct, frozen=True):
    """All values of one item of `agents`, and the layers they come from, lowest first."""

    node: Map
    layers: tuple[Layer, ...]

    @property
    def driver(self) -> str:
        """The driver it declares or inherits."""
        return text_of(self.node.get("driver")) or DEFAULT_DRIVER


def effective(tree: Map, entry: Entry, names: Names, defaults: Defaults, override: str | None) -> Effective:
    """Lay the agent over its role over the team over the environment.

    With an `override` of the driver, what belongs to another driver's program is dropped: command, args, model and what its client looks like.
    """
    sidecar: dict[str, Node] = {"sidecar": defaults.sidecar} if defaults.sidecar.items else {}
    layers = [
        Layer("", mapping(tree.mark, sidecar, dict.fromkeys(sidecar, tree.mark))),
        Layer("", only(tree, _TEAM_KEYS)),
    ]
    role = text_of(entry.node.get("role"))
    if role is not None and role in names.roles:
        layers.append(Layer(f"role {role}, ", only(names.roles[role], _ROLE_KEYS)))
    layers.append(Layer("", entry.node))
    node = layers[0].node
    for layer in layers[1:]:
        node = overlay(node, layer.node)
    found = Effective(node, tuple(layers))
    if override is None or found.driver == override:
        return found
    keep = frozenset(node.items) - {"command", "client", "args", "model"}
    return Effective(only(node, keep), found.layers)


def origins_of(agent: Effective, handle: str) -> Iterator[tuple[str, Origin]]:
    """Dotted key and origin of each value that is set for an agent."""
    for path, leaf in leaves(agent.node):
        label = next((layer.label for layer in reversed(agent.layers) if find(layer.node, path)[0] is leaf), "")
        yield show_path(("agents", handle, *path)), origin(leaf, label)


def leaves(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Everything that is not a mapping with keys; a recovery written as a word stands for its `do`."""
    if isinstance(node, Map) and node.items:
        for key, value in node.items.items():
            yield from leaves(value, (*path, key))
    elif isinstance(node, Scalar) and path and path[-1] in WHOLE:
        yield (*path, "do"), node
    else:
        yield path, node


def origin(node: Node, label: str = "") -> Origin:
    """Where a value was set; its text as written if variables were expanded in it."""
    return Origin(label + node.mark.where(), flow(shown(node)) if _expanded(node) else None)


def _expanded(node: Node) -> bool:
    if isinstance(node, Scalar):
        return node.expanded
    return any(_expanded(item) for item in (node.items if isinstance(node, Seq) else node.items.values()))


def check_agents(tree: Map, names: Names, override: str | None, problems: Problems) -> None:
    """Warn of what is allowed but probably not meant: keys of another driver, misspelt permission modes."""
    team = text_of(tree.get("driver")) or DEFAULT_DRIVER
    for entry in names.entries:
        role = names.roles.get(text_of(entry.node.get("role")) or "")
        of_role = (text_of(role.get("driver")) if role is not None else None) or team
        mine = text_of(entry.node.get("driver")) or of_role
        if override is None:
            for key in _OF_A_DRIVER:
                source, driver = (role, of_role) if role is not None and key in role.items else (tree, team)
                if key in source.items and key not in entry.node.items and driver != mine:
                    text = f"its {key} is meant for {driver} ({source.items[key].mark.where()}), its driver is {mine}"
                    problems.warn(entry.node.mark, (*entry.path, key), f"{text}; give the agent its own {key}")
    for path, section in (
        ((), tree),
        *((("roles", k), v) for k, v in names.roles.items()),
        *((e.path, e.node) for e in names.entries),
    ):
        mode = section.get("permission_mode")
        if isinstance(mode, Scalar) and not mode.expanded and mode.kind == "text" and mode.text not in _MODES:
            near = closest(mode.text, _MODES)
            if near is not None:
                text = f"{quoted(mode.text)} is no mode that is known here; did you mean {quoted(near)}?"
                problems.warn(mode.mark, (*path, "permission_mode"), text)
        args = section.get("args")
        driver = override or text_of(section.get("driver")) or team
        if driver in _TAKES_SETTINGS and isinstance(args, Seq):
            _warn_of_settings(args, (*path, "args"), problems)


def check_described(tree: Map, names: Names, defaults: Defaults, override: str | None, problems: Problems) -> None:
    """An agent of the generic driver needs a command and a description of its client; others have no use for one."""
    for entry in names.entries:
        found = effective(tree, entry, names, defaults, override)
        if (override or found.driver) == GENERIC:
            client = found.node.items.get("client")
            for at, key, example in (
                (found.node, "command", "aider"),
                (found.node, "client", "{ready: '^> '}"),
                (client, "ready", "'^> '"),
            ):
                if isinstance(at, Map) and key not in at.items:
                    path = (*entry.path, *(("client",) if at is client else ()), key)
                    text = f"is missing with driver: {GENERIC}; write {key}: {example}"
                    problems.add(entry.node.mark, path, text)
        elif override is None and "client" in entry.node.items:
            text = f"only driver: {GENERIC} has a use for it; its driver is {found.driver}"
            problems.warn(entry.node.keys["client"], (*entry.path, "client"), text)


def _warn_of_settings(args: Seq, path: Path, problems: Problems) -> None:
    """A second settings file would take the place of the fleet's own."""
    for item in args.items:
        if (text_of(item) or "").partition("=")[0] == "--settings":
            problems.warn(
                item.mark, path, "--settings is the fleet's own and left out here; put its keys below settings"
            )
