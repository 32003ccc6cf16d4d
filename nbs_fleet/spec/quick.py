"""Reads what is valid without the models, which take pydantic and most of the time that a command needs to begin.

`quick.json` has what pydantic makes of them, rendered by tests/generate_docs.py. What is not accepted by it is looked at
by the models themselves: they know what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import msgspec
from pydantic_core import SchemaError, SchemaValidator, ValidationError

from nbs_fleet.spec.values import CHECKS

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "quick.json")


class Rendered(msgspec.Struct, frozen=True):
    """The content of the file: keys that a team and an agent, or a role and an agent share, and the validators' parts."""

    common: frozenset[str]
    role: frozenset[str]
    parts: dict[str, Any]


Part = Literal["TeamFile", "AgentFile"]


def read(part: Part, data: object) -> dict[str, Any]:
    """What a section that is valid holds, without what it does not say."""
    found = accepted(part, data)
    if found is None:
        from nbs_fleet.spec import schema  # noqa: PLC0415 -- this is what is spared

        model = schema.TeamFile if part == "TeamFile" else schema.AgentFile
        found = model.model_validate(data).model_dump(exclude_unset=True)
    return found


def accepted(part: Part, data: object) -> dict[str, Any] | None:
    """What the section holds, without what it does not say; None if only the model can tell."""
    validator = _validator(part)
    try:
        found: dict[str, Any] | None = None if validator is None else validator.validate_python(data)
    except ValidationError:
        return None
    return found


@cache
def rendered() -> Rendered:
    """The file."""
    with open(FILE, "rb") as file:
        return msgspec.json.decode(file.read(), type=Rendered)


@cache
def _validator(part: str) -> SchemaValidator | None:
    """A validator; None where the library that is installed knows its parts by other names."""
    parts = _parts()
    schema = {"type": "definitions", "schema": {"type": "definition-ref", "schema_ref": part}, "definitions": parts}
    try:
        return SchemaValidator(schema)
    except SchemaError:
        return None


@cache
def _parts() -> list[Any]:
    return [_with_checks(part) for part in rendered().parts.values()]


def _with_checks(node: Any) -> Any:
    """The same with the functions themselves in the place of their names."""
    if isinstance(node, Mapping):
        return {
            key: {"type": "no-info", "function": CHECKS[value]} if key == "function" else _with_checks(value)
            for key, value in node.items()
        }
    return [_with_checks(value) for value in node] if isinstance(node, list) else node
