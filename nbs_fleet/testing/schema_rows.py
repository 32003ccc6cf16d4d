"""The keys of the test file as rows of a table, for its reference page. Pure."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import Struct
from pydantic import BaseModel

from nbs_fleet.spec.schema import SidecarFile
from nbs_fleet.testing.schema import ScriptFile

_ELSEWHERE = (SidecarFile,)
"""Models that the page of the team file describes."""


class Row(Struct, frozen=True):
    """One key: its way in the file (`steps[].expect.agent.state`), what it means, an example, whether it must be there."""

    key: str
    meaning: str
    example: Any
    must: bool


def rows() -> tuple[Row, ...]:
    """All keys, each once, in the order of the models; `cleanup` has the steps of `steps`."""
    return tuple(_rows(ScriptFile, ""))


def _rows(model: type[BaseModel], prefix: str) -> Iterator[Row]:
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        example = field.examples[0] if field.examples else None
        yield Row(key, field.description or "", example, field.is_required())
        inner, part = _inner(field.annotation)
        if inner is not None and inner not in _ELSEWHERE and name != "cleanup":
            yield from _rows(inner, f"{key}{part}")


def _inner(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """The model inside a type, and how a key of it is reached."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _inner(get_args(annotation)[0])
    if origin in (types.UnionType, Union):
        found = (_inner(part) for part in get_args(annotation))
        return next((pair for pair in found if pair[0] is not None), (None, ""))
    if origin is list:
        return _inner(get_args(annotation)[0])[0], "[]."
    if origin is dict:
        return _inner(get_args(annotation)[1])[0], ".NAME."
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, "."
    return None, ""
