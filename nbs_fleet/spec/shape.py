"""Checks the shape of a team file against its schema and notes everything that does not fit, with its place."""

from __future__ import annotations

import math
from collections.abc import Iterator

from nbs_fleet.spec import quick
from nbs_fleet.spec.nodes import Map, Node, Scalar, Seq, plain, value_of
from nbs_fleet.spec.overlay import FREE_FORM
from nbs_fleet.spec.problems import Path, Problems, quoted


def check_shape(tree: Map, problems: Problems) -> None:
    """Add a problem for each value that the schema of a team file forbids."""
    _scalars(tree, (), problems)
    _rules(tree, problems)
    if quick.accepted("TeamFile", plain(tree)) is None:
        # The models: pydantic with them takes most of the time that a command needs to begin.
        from nbs_fleet.spec.misfits import check_model  # noqa: PLC0415
        from nbs_fleet.spec.schema import TeamFile  # noqa: PLC0415

        check_model(tree, TeamFile, problems)


def check_filled(tree: Map, problems: Problems) -> None:
    """Add a problem for each key of a file of ours that has no value."""
    _scalars(tree, (), problems)


def _scalars(node: Node, path: Path, problems: Problems, *, free: bool = False) -> None:
    """Values that YAML makes of words and of nothing: errors where text may have been meant."""
    if isinstance(node, Map):
        for key, value in node.items.items():
            if not free and isinstance(value, Scalar) and value.kind == "null":
                in_env = path[-1:] == ("env",) and _is_section(path[:-1])
                better = 'write "" for an empty one' if in_env else "give one or remove it"
                problems.add(node.keys[key], (*path, key), f"has no value; {better}")
            else:
                opens = key in FREE_FORM and _is_section(path)
                _scalars(value, (*path, key), problems, free=free or opens)
    elif isinstance(node, Seq):
        for n, item in enumerate(node.items):
            if not free and isinstance(item, Scalar) and item.kind == "null":
                problems.add(item.mark, (*path, n), "has no value; give one or remove it")
            else:
                _scalars(item, (*path, n), problems, free=free)
    elif free:
        _free_scalar(node, path, problems)


def _free_scalar(node: Scalar, path: Path, problems: Problems) -> None:
    if node.kind == "yesno":
        meant = "true" if value_of(node.text, "yesno") else "false"
        problems.add(node.mark, path, f"{node.text} may be text or a truth value; write {quoted(node.text)} or {meant}")
    elif node.kind == "float" and not math.isfinite(float(value_of(node.text, "float") or 0)):
        problems.add(node.mark, path, f"{node.text} is no finite number; quote it for text")


def _is_section(path: Path) -> bool:
    """The file itself, a role or an agent: where the keys of free content stand."""
    return path == () or (len(path) == 2 and path[0] in ("roles", "agents"))


def _rules(tree: Map, problems: Problems) -> None:
    """A rule needs what its way needs, and nothing that another way would."""
    for path, section in _sections(tree):
        rules = section.get("notifications")
        for n, rule in enumerate(rules.items if isinstance(rules, Seq) else ()):
            via = rule.get("via") if isinstance(rule, Map) else None
            if not isinstance(rule, Map) or not isinstance(via, Scalar):
                continue
            at = (*path, "notifications", n)
            for key, way, example in (("command", "command", "[notify.sh]"), ("url", "webhook", "https://host/path")):
                if via.text == way and key not in rule.items:
                    problems.add(rule.mark, (*at, key), f"is missing with via: {way}; write {key}: {example}")
                elif via.text in ("desktop", "command", "webhook") and via.text != way and key in rule.items:
                    problems.add(rule.keys[key], (*at, key), f"goes with via: {way} only; remove it")


def _sections(tree: Map) -> Iterator[tuple[Path, Map]]:
    yield (), tree
    agents = tree.get("agents")
    for n, item in enumerate(agents.items if isinstance(agents, Seq) else ()):
        if isinstance(item, Map):
            yield ("agents", n), item
