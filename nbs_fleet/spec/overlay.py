"""Lays one mapping over another: included files below the including one, team below role below agent."""

from __future__ import annotations

from nbs_fleet.spec.nodes import Map, Node, Scalar, Seq, text_of
from nbs_fleet.spec.problems import Mark

FREE_FORM = frozenset({"vars", "settings", "permissions"})
"""Keys whose content is not ours: any YAML, passed through."""

WHOLE = frozenset({"on_idle", "on_dead", "on_error", "on_prompt"})
"""Keys that are replaced as one; parts of two recoveries make no sense together."""

_PROMPTS = ("prompt", "prompt_text")


def overlay(base: Map, top: Map, *, under: str = "") -> Map:
    """`top` over `base`: mappings key by key, everything else (lists too) replaced.

    `agents` of two files are matched by handle, so that a file can change a member of an included team.
    A `prompt` above hides a `prompt_text` below, and the other way round. `under` is the key both stand at.
    """
    items, keys = dict(base.items), dict(base.keys)
    if under not in FREE_FORM and any(name in top.items for name in _PROMPTS):
        for name in _PROMPTS:
            items.pop(name, None)
            keys.pop(name, None)
    for name, node in top.items.items():
        below = items.get(name)
        keys[name] = top.keys[name]
        items[name] = node if below is None else _both(below, node, name, under)
    return mapping(top.mark, items, keys)


def mapping(mark: Mark, items: dict[str, Node], keys: dict[str, Mark]) -> Map:
    """A mapping that knows its own extent."""
    size = 1 + sum(n.size for n in items.values())
    return Map(mark, items, keys, size, 1 + max((n.height for n in items.values()), default=0))


def only(node: Map, names: frozenset[str]) -> Map:
    """The mapping without the keys that are not in `names`."""
    items = {name: value for name, value in node.items.items() if name in names}
    return mapping(node.mark, items, {name: node.keys[name] for name in items})


def _both(below: Node, top: Node, name: str, under: str) -> Node:
    if name == "agents" and not under and isinstance(below, Seq) and isinstance(top, Seq):
        return _agents(below, top)
    if isinstance(below, Map) and isinstance(top, Map) and name not in WHOLE:
        return overlay(below, top, under=under if under in FREE_FORM else name)
    return top


def _agents(below: Seq, top: Seq) -> Seq:
    """Members of the lower file first; one that both files name is merged, a second of that name stays apart."""
    items = list(below.items)
    places: dict[str, int] = {}
    for n, item in enumerate(items):
        handle = _handle(item)
        if handle is not None:
            places.setdefault(handle, n)
    for item in top.items:
        place = places.pop(_handle(item) or "", None)
        lower = items[place] if place is not None else None
        if place is not None and isinstance(lower, Map) and isinstance(item, Map):
            items[place] = overlay(lower, item, under="agents")
        else:
            items.append(item)
    size = 1 + sum(n.size for n in items)
    return Seq(top.mark, tuple(items), size, 1 + max((n.height for n in items), default=0))


def _handle(node: Node) -> str | None:
    found = node.get("handle") if isinstance(node, Map) else None
    return text_of(found) if isinstance(found, Scalar) else None
