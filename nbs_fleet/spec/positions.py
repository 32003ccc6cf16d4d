"""Reads YAML text into a tree in which each value knows its line and column; bounded in size and depth."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NoReturn

import yaml

from nbs_fleet.spec.nodes import Map, Node, Scalar, Seq, kind_of
from nbs_fleet.spec.problems import FileRef, Mark, Path, Problems, printable, quoted
from nbs_fleet.spec.syntax import explain

MAX_DEPTH = 24
MAX_VALUES = 50_000

_TEXT_TAG = "tag:yaml.org,2002:str"


class _StopReadingError(Exception):
    """What follows can't be understood; the reason is already noted."""


def parse(text: str, ref: FileRef, problems: Problems) -> Map | None:
    """The tree of one file, or None when it can't be read at all; what is wrong is added to `problems`."""
    try:
        return _Parser(text, ref, problems).document()
    except _StopReadingError:
        return None


class _Parser:
    """One pass over the parser's events. Aliases share nodes; `size` and `height` say what they come to."""

    def __init__(self, text: str, ref: FileRef, problems: Problems) -> None:
        self._ref = ref
        self._problems = problems
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.SafeLoader)
        self._anchors: dict[str, Node] = {}
        self._open: set[str] = set()
        self._values = 0

    def document(self) -> Map | None:
        """The one document of the file."""
        event = self._next()
        while not isinstance(event, yaml.DocumentStartEvent):
            if isinstance(event, yaml.StreamEndEvent):
                self._stop(Mark(self._ref, 1, 1), (), "the file is empty; it begins with version: 1")
            event = self._next()
        first = self._next()
        if isinstance(first, yaml.ScalarEvent) and first.value == "" and first.style is None:
            self._stop(Mark(self._ref, 1, 1), (), "the file is empty; it begins with version: 1")
        node = self._node(first, (), 0)
        while not isinstance(event, yaml.StreamEndEvent):
            event = self._next()
            if isinstance(event, yaml.DocumentStartEvent):
                self._stop(self._mark(event), (), 'a second document; keep one, without "---" between')
        if not isinstance(node, Map):
            self._stop(node.mark, (), "must be a mapping of keys such as version, team and agents")
        return node

    def _next(self) -> yaml.Event:
        try:
            return next(self._events)
        except yaml.MarkedYAMLError as error:
            line, col, text = explain(error)
            self._stop(Mark(self._ref, line, col), (), text)

    def _stop(self, mark: Mark, path: Path, text: str) -> NoReturn:
        self._problems.add(mark, path, text)
        raise _StopReadingError

    def _mark(self, event: yaml.Event) -> Mark:
        start = event.start_mark
        return Mark(self._ref, start.line + 1, start.column + 1) if start is not None else Mark(self._ref, 1, 1)

    def _count(self, mark: Mark, path: Path, size: int) -> None:
        self._values += size
        if self._values > MAX_VALUES:
            self._stop(
                mark, path, f"more than {MAX_VALUES} values with aliases written out; a team file needs far fewer"
            )

    def _deep(self, mark: Mark, path: Path, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._stop(mark, path[:4], f"nested more than {MAX_DEPTH} levels deep; a team file needs far fewer")

    def _node(self, event: yaml.Event, path: Path, depth: int) -> Node:
        mark = self._mark(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor or "", mark, path, depth)
        anchor = event.anchor if isinstance(event, yaml.NodeEvent) else None
        if anchor is not None:
            self._open.add(anchor)
        self._count(mark, path, 1)
        self._deep(mark, path, depth)
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, mark, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._tag(event.tag, mark, path)
            node = self._sequence(mark, path, depth)
        else:
            self._tag(event.tag if isinstance(event, yaml.MappingStartEvent) else None, mark, path)
            node = self._mapping(mark, path, depth)
        if anchor is not None:
            self._open.discard(anchor)
            self._anchors[anchor] = node
        return node

    def _alias(self, name: str, mark: Mark, path: Path, depth: int) -> Node:
        if name in self._open:
            self._stop(mark, path, f"*{printable(name)} contains itself; write the value out")
        node = self._anchors.get(name)
        if node is None:
            self._stop(
                mark,
                path,
                f"*{printable(name)} has no anchor &{printable(name)} before it; quote text that begins with *",
            )
        self._count(mark, path, node.size)
        self._deep(mark, path, depth + node.height)
        return node

    def _tag(self, tag: str | None, mark: Mark, path: Path) -> None:
        if tag not in (None, _TEXT_TAG):
            self._problems.add(mark, path, "tags (words after !) are not allowed; quote text that begins with !")

    def _scalar(self, event: yaml.ScalarEvent, mark: Mark, path: Path) -> Scalar:
        self._tag(event.tag, mark, path)
        text = event.value
        if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
            self._problems.add(mark, path, "a NUL or half a surrogate pair in the text; remove the escape")
            text = ""
        plainly = event.style is None and event.tag is None
        return Scalar(mark, text, kind_of(text) if plainly else "text")

    def _sequence(self, mark: Mark, path: Path, depth: int) -> Seq:
        items: list[Node] = []
        event = self._next()
        while not isinstance(event, yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items)), depth + 1))
            event = self._next()
        return Seq(mark, tuple(items), *_extent(items))

    def _mapping(self, mark: Mark, path: Path, depth: int) -> Map:
        items: dict[str, Node] = {}
        keys: dict[str, Mark] = {}
        merged: list[Node] = []
        event = self._next()
        while not isinstance(event, yaml.MappingEndEvent):
            key_mark = self._mark(event)
            name = self._key(event, key_mark, path, depth)
            value = self._node(self._next(), path if name is None else (*path, name), depth + 1)
            if name == "<<" and isinstance(event, yaml.ScalarEvent) and event.style is None:
                merged.append(value)
            elif name is not None and name in items:
                self._problems.add(key_mark, (*path, name), f"duplicate key; it is already in line {keys[name].line}")
            elif name is not None:
                items[name], keys[name] = value, key_mark
            event = self._next()
        for value in merged:
            self._merge(value, items, keys, path)
        return Map(mark, items, keys, *_extent(items.values()))

    def _key(self, event: yaml.Event, mark: Mark, path: Path, depth: int) -> str | None:
        node = self._node(event, path, depth + 1)
        if not isinstance(node, Scalar):
            self._problems.add(mark, path, "a key must be text, not a list or mapping; write key: value")
            return None
        if node.kind in ("text", "yesno"):
            return node.text
        if node.kind == "null":
            self._problems.add(mark, path, "a key is missing before the colon; write key: value")
        else:
            self._problems.add(
                mark, path, f"the key {printable(node.text)} must be text; quote it: {quoted(node.text)}"
            )
        return None

    def _merge(self, value: Node, items: dict[str, Node], keys: dict[str, Mark], path: Path) -> None:
        """`<<: *base`: the mapping's own keys stand, the others are filled in."""
        sources = value.items if isinstance(value, Seq) else (value,)
        for source in sources:
            if not isinstance(source, Map):
                self._problems.add(source.mark, (*path, "<<"), "must be a mapping, or a list of mappings, to merge in")
                continue
            for name, node in source.items.items():
                if name not in items:
                    items[name], keys[name] = node, source.keys[name]


def _extent(children: Collection[Node]) -> tuple[int, int]:
    """How many values a collection comes to, and how deep it goes."""
    return 1 + sum(n.size for n in children), 1 + max((n.height for n in children), default=0)
