"""Turns the checker's findings into sentences: what is wrong at this key, and what would be right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from nbs_fleet.spec.nodes import Map, Node, Scalar, Seq, shown
from nbs_fleet.spec.problems import Path, closest, printable, quoted
from nbs_fleet.spec.schema import TeamFile
from nbs_fleet.spec.text import flow

Schema = Mapping[str, Any]
Root = type[BaseModel]
"""The model of the whole file: a team file, or another kind of file that is checked like one."""

_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "finite_number": "a finite number",
}


@cache
def file_schema(root: Root = TeamFile) -> dict[str, Any]:
    """The JSON schema of the models, unpolished."""
    return root.model_json_schema()


def schema_at(path: Path, root: Root = TeamFile) -> Schema:
    """What the file may hold at this place; {} where anything goes."""
    here: Schema = file_schema(root)
    for step in path:
        nearest = _branch(here, "items" if isinstance(step, int) else "properties", root)
        if isinstance(step, int):
            here = nearest.get("items", {})
        else:
            here = nearest.get("properties", {}).get(step) or nearest.get("additionalProperties") or {}
        if not isinstance(here, Mapping):
            return {}
    return here


def keys_at(path: Path, root: Root = TeamFile) -> tuple[str, ...]:
    """The keys that a mapping at this place may have."""
    return tuple(_branch(schema_at(path, root), "properties", root).get("properties", {}))


def _branch(schema: Schema, wanted: str, root: Root) -> Schema:
    """The alternative of a schema that has properties (or items), references resolved."""
    if "$ref" in schema:
        return _branch(file_schema(root)["$defs"][schema["$ref"].rsplit("/", 1)[1]], wanted, root)
    if wanted in schema or (wanted == "properties" and isinstance(schema.get("additionalProperties"), Mapping)):
        return schema
    for option in schema.get("anyOf", ()):
        found = _branch(option, wanted, root)
        if found:
            return found
    return {}


def _choices(schema: Schema, root: Root) -> list[str]:
    if "$ref" in schema:
        schema = file_schema(root)["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    found = [str(word) for word in schema.get("enum", ())]
    if "const" in schema and schema["const"] is not False:
        found.append(str(schema["const"]))
    for option in schema.get("anyOf", ()):
        found += _choices(option, root) if "properties" not in option else []
    return found


def example(path: Path, root: Root = TeamFile) -> str:
    """`key: value` as it could stand there, or an empty text."""
    examples = schema_at(path, root).get("examples") or ()
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    return f"{name}: {flow(examples[0])}" if examples else ""


def unknown_key(path: Path, root: Root = TeamFile) -> str:
    """For a key that may not stand where it stands."""
    name, known = str(path[-1]), keys_at(path[:-1], root)
    near = closest(name, known)
    if near is not None and near.lower().replace("_", "") == name.lower().replace("_", "").replace("-", ""):
        return f"unknown key; did you mean {quoted(near)}?"
    for place, others in _PLACES:
        if name in keys_at(others, root) and others != path[:-1]:
            return f"unknown key here; it belongs {place}"
    if near is not None:
        return f"unknown key; did you mean {quoted(near)}?"
    if len(known) <= 14:
        return f"unknown key; possible are {', '.join(known)}"
    return "unknown key; `nbs-fleet schema` lists all"


_PLACES: tuple[tuple[str, Path], ...] = (
    ("at the top of the file", ()),
    ("to a role or an agent", ("roles", "x")),
    ("to an agent", ("agents", 0)),
    ("under sidecar", ("sidecar",)),
    ("under restart", ("restart",)),
    ("under dialogs", ("dialogs",)),
    ("under layout", ("layout",)),
)


def sentence(error: Mapping[str, Any], path: Path, node: Node | None, root: Root = TeamFile) -> str:
    """The sentence for one finding; `path` is where it belongs, `node` what stands there."""
    kind, context = str(error["type"]), error.get("ctx", {})
    if kind == "fleet":
        return str(context["why"])
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        return f"must be {words} {context[name]:g}"
    if kind in _KINDS:
        return _wrong(_KINDS[kind], path, node, root)
    writer = _WRITERS.get(kind)
    return writer(path, node, root) if writer is not None else printable(str(error["msg"]).lower(), limit=200)


def _missing(path: Path, _node: Node | None, root: Root) -> str:
    hint = example(path, root)
    return f"is missing; write {hint}" if hint else "is missing"


def _extra(path: Path, _node: Node | None, root: Root) -> str:
    return unknown_key(path, root)


def describe(node: Node | None) -> str:
    """What stands there, in words; text is shown as written."""
    if isinstance(node, Map):
        return "a mapping"
    if isinstance(node, Seq):
        return "a list"
    if isinstance(node, Scalar) and node.kind == "text":
        return f"the text {quoted(node.source)}"
    return printable(node.source) if isinstance(node, Scalar) else "nothing"


def _wrong(wanted: str, path: Path, node: Node | None, root: Root) -> str:
    hint = example(path, root)
    return f"must be {wanted}, not {describe(node)}" + (f"; write {hint}" if hint else "")


def _text(path: Path, node: Node | None, root: Root) -> str:
    if isinstance(node, Scalar):
        if node.kind in ("bool", "yesno"):
            means = f"means {str(shown(node)).lower()}" if node.kind == "yesno" else "is a truth value"
            return f"{node.text} {means} in YAML; for text write {quoted(node.text)}"
        return f"{printable(node.text)} is a number; for text write {quoted(node.text)}"
    return _wrong("text", path, node, root)


def _list(path: Path, node: Node | None, root: Root) -> str:
    if isinstance(node, Scalar):
        return f"must be a list; write [{printable(node.source)}]"
    return _wrong("a list", path, node, root)


def _mapping(path: Path, node: Node | None, root: Root) -> str:
    schema = schema_at(path, root)
    options = schema.get("anyOf", ())
    words = _choices(schema, root)
    if any(option.get("const", None) is False for option in options):
        return _wrong("false or a mapping", path, node, root)
    if words:
        return _wrong(f"one of {', '.join(words)}, or a mapping", path, node, root)
    if any(option.get("type") == "string" for option in options):
        return _wrong("text or a mapping", path, node, root)
    return _wrong("a mapping", path, node, root)


def _word(path: Path, node: Node | None, root: Root) -> str:
    words = _choices(schema_at(path, root), root)
    if not isinstance(node, Scalar):
        return _wrong(f"one of {', '.join(words)}", path, node, root)
    if node.kind == "yesno":
        return f"{node.text} means {str(shown(node)).lower()} in YAML; possible are {', '.join(words)}"
    what = quoted(node.source) if node.kind == "text" else printable(node.source)
    if len(words) == 1:
        return f"{what} is not known; write {words[0]}"
    near = closest(node.text, words) if node.kind == "text" and not node.expanded else None
    return f"{what} is not known here; " + (
        f"did you mean {quoted(near)}?" if near else f"possible are {', '.join(words)}"
    )


def _length(path: Path, node: Node | None, root: Root) -> str:
    count = len(node.items) if isinstance(node, Seq) else 0
    schema = _branch(schema_at(path, root), "items", root)
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and count < least:
        need = f"{least}" if least == most else f"at least {least}"
    else:
        need = f"{most}" if least == most else f"at most {most}"
    hint = example(path, root)
    return f"must have {need} item{'' if need.split()[-1] == '1' else 's'}, not {count}" + (
        f"; write {hint}" if hint else ""
    )


_WRITERS: dict[str, Callable[[Path, Node | None, Root], str]] = {
    "missing": _missing,
    "extra_forbidden": _extra,
    "string_type": _text,
    "list_type": _list,
    "model_type": _mapping,
    "dict_type": _mapping,
    "literal_error": _word,
    "too_short": _length,
    "too_long": _length,
}
