"""Where things stand in a JSON text that may hold comments and commas at the end; the text itself is never rewritten."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

_SKIP = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SCALAR = re.compile(r"[-+.\w]+")
DEPTH = 200
"""Deeper files are refused: nobody writes them."""


class Node(Struct, frozen=True):
    """A value: its span, what it is, and for a mapping or list what it holds (key, or None, and value)."""

    start: int
    end: int
    value: Any
    items: tuple[tuple[str | None, Node], ...] = ()

    def at(self, path: tuple[str, ...]) -> Node | None:
        """The value below these keys; of a key that stands twice the last one counts."""
        node: Node = self
        for name in path:
            below = [item for key, item in node.items if key == name]
            if not below:
                return None
            node = below[-1]
        return node


def scan(text: str) -> Node:
    """The value that the text holds. ValueError where it is none."""
    node = _value(text, _skip(text, 0), 0)
    if _skip(text, node.end) != len(text):
        raise ValueError(f"something follows at character {node.end}")
    return node


def _skip(text: str, at: int) -> int:
    found = _SKIP.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> Node:
    if depth > DEPTH:
        raise ValueError("too deep")
    first = text[at : at + 1]
    if first in ("{", "["):
        return _many(text, at, depth, "}" if first == "{" else "]")
    found = (_STRING if first == '"' else _SCALAR).match(text, at)
    if found is None:
        raise ValueError(f"no value at character {at}")
    return Node(at, found.end(), json.loads(found[0]))


def _many(text: str, start: int, depth: int, close: str) -> Node:
    items: list[tuple[str | None, Node]] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != close:
        key: str | None = None
        if close == "}":
            found = _STRING.match(text, at)
            if found is None:
                raise ValueError(f"no key at character {at}")
            key = json.loads(found[0])
            at = _skip(text, found.end())
            if text[at : at + 1] != ":":
                raise ValueError(f"no colon at character {at}")
            at = _skip(text, at + 1)
        node = _value(text, at, depth + 1)
        items.append((key, node))
        at = _skip(text, node.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != close:
            raise ValueError(f"neither comma nor end at character {at}")
    plain: Any = {key: node.value for key, node in items} if close == "}" else [node.value for _, node in items]
    return Node(start, at + 1, plain, tuple(items))
