"""Renders what pydantic makes of the models, for `spec/quick.py`."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from nbs_fleet.spec.schema import AgentFile, CommonFile, RoleFile, TeamFile
from nbs_fleet.spec.values import CHECKS

_NAMES = {id(check): name for name, check in CHECKS.items()}
_NEEDLESS = ("metadata", "serialization", "json_schema_input_schema", "config")


def quick_text() -> str:
    """The text of quick.json."""
    parts: dict[str, Any] = {}
    for model in (TeamFile, AgentFile):
        schema = model.__pydantic_core_schema__
        known = {one["ref"]: one for one in schema.get("definitions", ())}
        _reduced(schema["schema"] if schema["type"] == "definitions" else schema, known, parts)
    common, role = (sorted(model.model_fields) for model in (CommonFile, RoleFile))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(part)}" for name, part in sorted(parts.items()))
    return f'{{"common": {json.dumps(common)},\n"role": {json.dumps(role)},\n"parts": {{\n{lines}\n}}}}\n'


def _reduced(node: Any, known: dict[str, Any], parts: dict[str, Any]) -> Any:
    """What counts for reading; each model becomes a part of its own, whose keys hold nothing where they are missing."""
    if isinstance(node, list | tuple):
        return [_reduced(value, known, parts) for value in node]
    if not isinstance(node, dict):
        return node
    match node.get("type"):
        case "definition-ref":
            return _reduced(known[node["schema_ref"]], known, parts)
        case "default":
            return _reduced(node["schema"], known, parts)
        case "model":
            return _part(node, known, parts)
        case "function-before" | "function-after":
            return {
                "type": node["type"],
                "function": _name_of(node["function"]["function"]),
                "schema": _reduced(node["schema"], known, parts),
            }
    return {key: _reduced(value, known, parts) for key, value in node.items() if key not in (*_NEEDLESS, "ref")}


def _part(model: dict[str, Any], known: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    name = model["cls"].__name__
    if name not in parts:
        parts[name] = {}
        fields = {
            key: {
                "type": "typed-dict-field",
                "schema": _reduced(field["schema"], known, parts),
                "required": field["schema"]["type"] != "default",
            }
            for key, field in model["schema"]["fields"].items()
        }
        config = {"strict": True, "extra_fields_behavior": "forbid"}
        parts[name] = {"type": "typed-dict", "fields": fields, "ref": name, "config": config}
    return {"type": "definition-ref", "schema_ref": name}


def _name_of(check: Any) -> str:
    # Of pydantic's own there is one: a list that a function has seen to still has to hold something.
    if isinstance(check, partial) and check.keywords == {"min_length": 1}:
        return "not_empty"
    return _NAMES[id(check)]
