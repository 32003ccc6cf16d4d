"""Values as they could stand in a team file, on one line."""

from __future__ import annotations

import json
from typing import Any

from nbs_fleet.spec.nodes import kind_of

_SAFE = frozenset("._-/~()*$+@=%^")


def flow(value: Any) -> str:
    """YAML of a value on one line; text is quoted where it could be read as something else."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, str):
        begins = value[:1].isalnum() or value[:1] in (".", "/", "$")
        simple = begins and kind_of(value) == "text" and all(c.isalnum() or c in _SAFE for c in value)
        return value if simple else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)
