"""Expands `${NAME}` in the text values of a tree; keeps what was written, so that values are never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nbs_fleet.spec.nodes import Map, Node, Scalar, Seq
from nbs_fleet.spec.problems import Path, Problems, printable

_USE = re.compile(r"\$(?:\$|\{([^{}]*)(\}?))")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::([-?])(.*))?", re.DOTALL)


class Variables:
    """The variables a file may use, and which of them it did use."""

    def __init__(self, environ: Mapping[str, str], problems: Problems) -> None:
        self._environ = environ
        self._problems = problems
        self.used: dict[str, str] = {}

    def expand(self, node: Node, path: Path = ()) -> Node:
        """The same tree with each text value expanded; what can't be is added to the problems."""
        if isinstance(node, Scalar):
            return self._scalar(node, path)
        if isinstance(node, Seq):
            items = tuple(self.expand(item, (*path, n)) for n, item in enumerate(node.items))
            same = all(a is b for a, b in zip(items, node.items, strict=True))
            return node if same else Seq(node.mark, items, node.size, node.height)
        values = {key: self.expand(value, (*path, key)) for key, value in node.items.items()}
        same = all(values[key] is value for key, value in node.items.items())
        return node if same else Map(node.mark, values, node.keys, node.size, node.height)

    def _scalar(self, node: Scalar, path: Path) -> Scalar:
        if node.kind != "text" or "$" not in node.text:
            return node
        faults: list[str] = []
        text = _USE.sub(lambda use: self._use(use, faults), node.text)
        for fault in faults:
            self._problems.add(node.mark, path, fault)
        if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
            self._problems.add(node.mark, path, "the value of a variable in it is not UTF-8 text; mend the variable")
            text = ""
        return node if text == node.text else Scalar(node.mark, text, "text", node.text)

    def _use(self, use: re.Match[str], faults: list[str]) -> str:
        if use.group() == "$$":
            return "$"
        found = _NAME.fullmatch(use.group(1))
        if not found or not use.group(2):
            what = printable(use.group())
            faults.append(
                f"{what} is not a variable; write ${{NAME}}, ${{NAME:-default}}, ${{NAME:?message}}, or $$ for a dollar"
            )
            return ""
        name, mode, rest = found.groups()
        value = self._environ.get(name)
        if value is not None and (value or mode is None):
            self.used[name] = value
            return value
        if mode == "-":
            return str(rest)
        if mode == "?":
            faults.append(f"{name} is not set: {printable(rest, limit=200) or 'it is required'}")
        else:
            faults.append(f"{name} is not set; set it, or write ${{{name}:-default}}")
        return ""
