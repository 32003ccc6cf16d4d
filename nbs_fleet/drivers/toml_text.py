"""Writes values as TOML on one line, for flags of the form `-c KEY=VALUE`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

BARE = re.compile(r"[A-Za-z0-9_-]+")


def inline(value: Any) -> str:
    """`value` (of str, bool, int, float, lists and mappings of these) as one TOML value. ValueError for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML's basic strings are JSON's, but that a DEL must be escaped and halves of surrogates can't be.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(inline(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key(name)} = {inline(item)}" for name, item in value.items()) + "}"
    raise ValueError(f"TOML has no value like {value!r}")


def key(name: str) -> str:
    """A key, quoted where it must be."""
    return name if BARE.fullmatch(name) else inline(str(name))


def overrides(settings: dict[str, Any], above: str = "") -> Iterator[str]:
    """`KEY=VALUE` for each leaf, so that what stands beside it in the person's own file stays.

    Codex 0.171.0 splits the key at dots whatever is quoted in it, so a table with a key that needs quotes is one value.
    """
    for name, value in settings.items():
        path = f"{above}{name}"
        if isinstance(value, dict) and value and all(BARE.fullmatch(below) for below in value):
            yield from overrides(value, f"{path}.")
        else:
            yield f"{path}={inline(value)}"
