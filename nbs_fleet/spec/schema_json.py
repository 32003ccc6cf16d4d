"""The JSON schema of the team file for editors, and the table of its keys for the documentation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from pydantic import BaseModel

from nbs_fleet.spec.explain import file_schema
from nbs_fleet.spec.schema import AgentFile, CommonFile, RoleFile, TeamFile
from nbs_fleet.spec.team import Agent, Budget, Client, Layout, Recovery, SidecarSettings, Team
from nbs_fleet.spec.text import flow
from nbs_fleet.spec.units import PATTERN, duration

SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"

_MANY = 8
_TOLD_ELSEWHERE = {
    "roles": "",
    "agents": "",
    "on_dead": "; written like on_idle",
    "on_error": "; written like on_idle",
    "on_prompt": "; written like on_idle",
    "agents[].budget": "; written like the team's",
    "agents[].notifications": "; written like the team's",
}
_VARIABLE = {"$ref": "#/$defs/Variable"}


class Row(Struct, frozen=True):
    """One key of the team file, as the reference page shows it."""

    key: str
    where: str
    type: str
    default: str
    meaning: str
    change: str


def schema_text(root: type[BaseModel] = TeamFile, title: str = "nbs-fleet team file") -> str:
    """The JSON schema (draft 2020-12) of one kind of file, indented, with a line end; the same text for the same version."""
    raw = file_schema(root)
    schema = {"$schema": SCHEMA_ID, "title": title, **_polish(raw)}
    schema["$defs"]["Variable"] = {
        "description": "Text with ${NAME}, which is replaced when the file is read",
        "type": "string",
        "pattern": "\\$\\{[A-Za-z_][A-Za-z0-9_]*",
    }
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _polish(schema: Any) -> Any:
    """Drop what only the checker needs; let `${NAME}` stand wherever a value may."""
    if isinstance(schema, list):
        return [_polish(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            found[key] = {name: _polish(item) for name, item in value.items()}
        elif key in ("examples", "enum", "required", "const"):
            found[key] = value
        elif key == "anyOf":
            found[key] = [_polish(item) for item in value if item != {"type": "null"}]
        elif key not in ("title", "default", "x-change", "x-default"):
            found[key] = _polish(value)
    return _open(found)


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    """A single alternative written plainly; a variable beside everything that is not free text."""
    options = schema.get("anyOf")
    if options is not None and len(options) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**options[0], **rest}
    narrow = "pattern" in schema or "enum" in schema or "const" in schema
    if not (narrow or schema.get("type") in ("integer", "number", "boolean")):
        return schema
    outside: dict[str, Any] = {key: schema[key] for key in ("description", "examples") if key in schema}
    inside = {key: value for key, value in schema.items() if key not in outside}
    return {**outside, "anyOf": [inside, _VARIABLE]}


def rows() -> tuple[Row, ...]:
    """All keys, those of nested mappings as `sidecar.nag.high`, in the order of the models."""
    defaults = _defaults()
    found: list[Row] = []
    seen: set[str] = set()
    for model, prefix in ((TeamFile, ""), (RoleFile, "roles.NAME."), (AgentFile, "agents[].")):
        for name in sorted(model.model_fields, key=lambda n: bool(n in CommonFile.model_fields)):
            own = f"{prefix}{name}"
            shared = prefix and name in CommonFile.model_fields
            if shared or (model is AgentFile and name in RoleFile.model_fields) or own in seen:
                continue
            seen.add(own)
            place = {"": (), "roles.NAME.": ("roles", "x"), "agents[].": ("agents", 0)}[prefix]
            found.extend(_rows(own, _field(place, name), _where(model, name), defaults, name))
    return tuple(found)


def _where(model: type[TeamFile | RoleFile | AgentFile], name: str) -> str:
    if name in CommonFile.model_fields:
        return "team, role, agent"
    if model is RoleFile:
        return "role, agent"
    return "team" if model is TeamFile else "agent"


def _field(place: tuple[str | int, ...], name: str) -> Mapping[str, Any]:
    schema = file_schema()
    model = {0: schema, 2: schema["$defs"]["RoleFile" if "roles" in place else "AgentFile"]}[len(place)]
    found: Mapping[str, Any] = model["properties"][name]
    return {**found, "required": name in model.get("required", ())}


def _rows(key: str, field: Mapping[str, Any], where: str, defaults: Mapping[str, str], path: str) -> Iterator[Row]:
    default = field.get("x-default") or defaults.get(path, "")
    if field.get("required") is True:
        default = "required"
    inner = _inner(field)
    meaning, change = str(field.get("description", "")), str(field.get("x-change", ""))
    words = [option["enum"] for option in _options(field) if len(option.get("enum", ())) > _MANY]
    if words:
        meaning += f": {', '.join(f'`{word}`' for word in words[0])}"
    if key in _TOLD_ELSEWHERE:
        inner, meaning = {}, meaning + _TOLD_ELSEWHERE[key]
    yield Row(key, where, _type(field), default or ("as below" if inner else "none"), meaning, change)
    for name, item in inner.get("properties", {}).items():
        separator = "[]." if _is_list(field) else "."
        needed = {**item, "required": name in inner.get("required", ())}
        needed["x-change"] = change
        yield from _rows(f"{key}{separator}{name}", needed, where, defaults, f"{path}.{name}")


def _resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        found: Mapping[str, Any] = file_schema()["$defs"][schema["$ref"].rsplit("/", 1)[1]]
        return found
    return schema


def _options(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives of a schema without null, references resolved."""
    plain = _resolve(schema)
    if "anyOf" not in plain:
        return [plain]
    return [part for option in plain["anyOf"] if option != {"type": "null"} for part in _options(option)]


def _is_list(schema: Mapping[str, Any]) -> bool:
    return any(option.get("type") == "array" for option in _options(schema))


def _inner(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    for option in _options(schema):
        if "properties" in option:
            return option
        if option.get("type") == "array" and "items" in option:
            return _inner(option["items"])
    return {}


def _type(schema: Mapping[str, Any]) -> str:
    return " or ".join(dict.fromkeys(_kind(option) for option in _options(schema)))


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"]) if len(schema["enum"]) <= _MANY else "word"
    if "const" in schema:
        return f"`{flow(schema['const'])}`"
    if schema.get("pattern") == PATTERN:
        return "duration"
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(kind, list):
        return "text"
    names = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true`, `false`"}
    return names.get(str(kind), "mapping")


def _defaults() -> dict[str, str]:
    """Printable defaults by dotted key, read from the values that the code uses."""
    found: dict[str, str] = {}
    for struct, prefix in (
        (Agent, ""),
        (Team, ""),
        (SidecarSettings, "sidecar."),
        (Layout, "layout."),
        (Budget, "budget."),
        (Client, "client."),
    ):
        _collect(struct, prefix, found)
    for key in ("on_idle", "on_dead", "on_error", "on_prompt"):
        _collect(Recovery, f"{key}.", found)
    return found


def _collect(struct: type[Struct], prefix: str, found: dict[str, str]) -> None:
    for field in msgspec.structs.fields(struct):
        value = field.default
        if isinstance(value, Struct):
            _collect(type(value), f"{prefix}{field.name}.", found)
        elif value is not msgspec.NODEFAULT and value is not None:
            text = duration(value) if isinstance(value, float) else flow(value)
            found.setdefault(f"{prefix}{field.name}", text)
