"""Asks the models what does not fit, and says it with its place."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from nbs_fleet.spec.explain import sentence
from nbs_fleet.spec.nodes import Map, Scalar, find, plain
from nbs_fleet.spec.problems import Path, Problems


def check_model(tree: Map, root: type[BaseModel], problems: Problems) -> None:
    """Add a problem for each value that does not fit the model of the whole file."""
    try:
        root.model_validate(plain(tree))
    except ValidationError as error:
        for found in error.errors(include_url=False, include_input=False):
            _note(tree, root, dict(found), problems)


def _note(tree: Map, root: type[BaseModel], error: dict[str, object], problems: Problems) -> None:
    loc = error["loc"]
    path: Path = tuple(loc) if isinstance(loc, tuple) else ()
    of_key = bool(path) and path[-1] == "[key]"
    path = path[:-1] if of_key else path
    node, done, key_mark = find(tree, path)
    if isinstance(node, Scalar) and node.kind == "null":
        return
    if error["type"] == "missing":
        problems.add(node.mark if node is not None else tree.mark, path, sentence(error, path, None, root))
        return
    mark = node.mark if node is not None else tree.mark
    at_key = of_key or error["type"] == "extra_forbidden"
    advice = "does not fit; mend the first problems" if problems.many else sentence(error, done, node, root)
    problems.add_once(key_mark if at_key and key_mark is not None else mark, done, advice)
