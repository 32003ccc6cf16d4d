"""The team file as a tree in which each value knows its place; what YAML's scalars mean to us."""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct

from nbs_fleet.spec.problems import Mark, Path

Kind = Literal["text", "int", "float", "bool", "yesno", "null"]

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_YES = frozenset({"yes", "Yes", "YES", "on", "On", "ON"})
_NO = frozenset({"no", "No", "NO", "off", "Off", "OFF"})
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,15}|0o[0-7]{1,20}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,30}|[0-9]{1,30}(\.[0-9]{0,30})?)([eE][-+]?[0-9]{1,3})?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class Scalar(Struct, frozen=True):
    """One plain value: `text` after expansion of `${}`; `raw` as written, None where nothing was expanded."""

    mark: Mark
    text: str
    kind: Kind
    raw: str | None = None

    @property
    def expanded(self) -> bool:
        """Whether its text came from a variable."""
        return self.raw is not None

    @property
    def source(self) -> str:
        """The text that may be shown: as written."""
        return self.text if self.raw is None else self.raw

    @property
    def size(self) -> int:
        """One value."""
        return 1

    @property
    def height(self) -> int:
        """Nothing below it."""
        return 0


class Seq(Struct, frozen=True):
    """A list."""

    mark: Mark
    items: tuple[Node, ...]
    size: int = 1
    height: int = 1


class Map(Struct, frozen=True):
    """A mapping; `keys` has the place of each key, in the order of the file."""

    mark: Mark
    items: dict[str, Node]
    keys: dict[str, Mark]
    size: int = 1
    height: int = 1

    def get(self, key: str) -> Node | None:
        """The value of a key, or None."""
        return self.items.get(key)


Node = Scalar | Seq | Map


class FromVariable(str):
    """Text that came from `${NAME}`: fits a number or true/false too; `source` is what may be shown."""

    __slots__ = ("source",)
    source: str


class IntText(int):
    """A whole number that still knows how it was written."""

    text: str


class FloatText(float):
    """A number that still knows how it was written."""

    text: str


def kind_of(text: str) -> Kind:
    """What an unquoted scalar is: YAML 1.2 rules, with the yes/no words of YAML 1.1 kept apart."""
    if text in _NULL:
        return "null"
    if text in _TRUE or text in _FALSE:
        return "bool"
    if text in _YES or text in _NO:
        return "yesno"
    if _INT.fullmatch(text) or _HEX.fullmatch(text):
        return "int"
    if _FLOAT.fullmatch(text) or _SPECIAL.fullmatch(text):
        return "float"
    return "text"


def value_of(text: str, kind: Kind) -> str | bool | int | float | None:
    """The value of a scalar of that kind."""
    if kind == "null":
        return None
    if kind in ("bool", "yesno"):
        return text in _TRUE or text in _YES
    if kind == "int":
        whole = IntText(int(text, 0) if _HEX.fullmatch(text) else int(text))
        whole.text = text
        return whole
    if kind == "float":
        number = FloatText(text.replace(".", "", 1) if _SPECIAL.fullmatch(text) else text)
        number.text = text
        return number
    return text


def plain(node: Node) -> Any:
    """Python data for validation: dicts, lists and scalars that remember how they were written."""
    if isinstance(node, Map):
        return {key: plain(value) for key, value in node.items.items()}
    if isinstance(node, Seq):
        return [plain(item) for item in node.items]
    if node.expanded:
        text = FromVariable(node.text)
        text.source = node.source
        return text
    return value_of(node.text, node.kind)


def exact(value: Any) -> Any:
    """The same data in Python's own types only."""
    if isinstance(value, dict):
        return {str(key): exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [exact(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value


def shown(node: Node) -> Any:
    """Python data for people: as written, nothing expanded."""
    if isinstance(node, Map):
        return {key: shown(value) for key, value in node.items.items()}
    if isinstance(node, Seq):
        return [shown(item) for item in node.items]
    return node.source if node.expanded else exact(value_of(node.text, node.kind))


def find(node: Node | None, path: Path) -> tuple[Node | None, Path, Mark | None]:
    """The deepest node on the way `path`, the part of the way that exists, and the mark of its last key."""
    done: Path = ()
    key_mark: Mark | None = None
    for step in path:
        child: Node | None = None
        if isinstance(node, Map) and isinstance(step, str):
            child = node.get(step)
            key_mark = node.keys.get(step, key_mark)
        elif isinstance(node, Seq) and isinstance(step, int) and step < len(node.items):
            child = node.items[step]
            key_mark = child.mark
        if child is None:
            break
        node, done = child, (*done, step)
    return node, done, key_mark


def text_of(node: Node | None) -> str | None:
    """The text of a scalar that is text; None for everything else."""
    return node.text if isinstance(node, Scalar) and node.kind == "text" else None


def scalars(node: Node | None) -> list[tuple[int, Scalar]]:
    """The text items of a list with their positions; other items are reported elsewhere."""
    if not isinstance(node, Seq):
        return []
    return [(n, item) for n, item in enumerate(node.items) if isinstance(item, Scalar) and item.kind == "text"]
