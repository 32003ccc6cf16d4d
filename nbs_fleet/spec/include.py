"""Reads a team file with the files it includes into one tree, and digests their text; needs no pydantic."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import cast

from msgspec import Struct

from nbs_fleet.errors import TeamFileError
from nbs_fleet.spec.nodes import Map, Node, Scalar
from nbs_fleet.spec.overlay import mapping, overlay
from nbs_fleet.spec.positions import MAX_VALUES, parse
from nbs_fleet.spec.problems import FileRef, Mark, Path, Problems, printable, quoted
from nbs_fleet.spec.read import UnreadableError, read_text
from nbs_fleet.spec.variables import Variables

MAX_NESTED = 8
MAX_FILES = 50


class Read(Struct, frozen=True):
    """One team file as read: `tree` merged and expanded (None if unreadable), `files` absolute, main file first.

    `source` is a digest of all bytes read; `used` has the variables that were expanded, with their values.
    """

    tree: Map | None
    main: FileRef
    files: tuple[str, ...]
    source: str
    used: dict[str, str]


def read_files(shown: str, environ: Mapping[str, str], problems: Problems) -> Read:
    """Read `shown` (as the user named it) and what it includes; problems are added, nothing is raised."""
    try:
        main = FileRef(shown, os.path.realpath(shown))
    except ValueError:  # a NUL or half a surrogate pair in the name
        main = FileRef(shown, shown)
    reader = _Reader(environ, problems)
    tree: Map | None = None
    try:
        tree = reader.file(main, ())
    except UnreadableError as error:
        if not error.line:
            raise TeamFileError((f"{printable(shown, limit=4096)}: {error.why}",)) from None
        problems.add(Mark(main, error.line, error.col), (), error.why)
    return Read(tree, main, tuple(reader.read), reader.digest.hexdigest(), reader.variables.used)


def source_digest(shown: str, environ: Mapping[str, str]) -> str | None:
    """The digest that `read_files` gives for the files as they are now; None when they can't be read."""
    problems = Problems()
    try:
        read = read_files(shown, environ, problems)
    except TeamFileError:
        return None
    return read.source if read.tree is not None else None


class _Reader:
    """Follows includes depth first; remembers what was read, in order."""

    def __init__(self, environ: Mapping[str, str], problems: Problems) -> None:
        self.problems = problems
        self.variables = Variables(environ, problems)
        self.digest = hashlib.sha256()
        self.read: list[str] = []
        self._uses = 0

    def file(self, ref: FileRef, above: tuple[FileRef, ...]) -> Map | None:
        """The merged tree of one file, or None (with problems) when it has none."""
        text, data = read_text(ref.path)
        self.problems.file(ref)
        if ref.path not in self.read:
            self.read.append(ref.path)
            self.digest.update(len(data).to_bytes(8, "big") + data)
        tree = parse(text, ref, self.problems)
        if tree is None:
            return None
        tree = cast("Map", self.variables.expand(tree))
        wanted = self._includes(tree.get("include"))
        own = mapping(
            tree.mark,
            {k: v for k, v in tree.items.items() if k != "include"},
            {k: m for k, m in tree.keys.items() if k != "include"},
        )
        base: Map | None = None
        for path, scalar in wanted:
            part = self._included(path, scalar, (*above, ref))
            if part is not None:
                base = part if base is None else overlay(base, part)
        merged = own if base is None else overlay(base, own)
        if merged.size > MAX_VALUES:
            self.problems.add(tree.mark, (), f"more than {MAX_VALUES} values with its includes; a team needs far fewer")
            return None
        return merged

    def _includes(self, node: Node | None) -> list[tuple[Path, Scalar]]:
        if node is None:
            return []
        if isinstance(node, Scalar):
            self.problems.add(node.mark, ("include",), f"must be a list; write [{printable(node.source)}]")
            return []
        if isinstance(node, Map):
            self.problems.add(node.mark, ("include",), "must be a list of files, not a mapping; write [base.yaml]")
            return []
        found: list[tuple[Path, Scalar]] = []
        for n, item in enumerate(node.items):
            if isinstance(item, Scalar) and item.kind == "text" and item.text:
                found.append((("include", n), item))
            else:
                self.problems.add_once(item.mark, ("include", n), "must be the path of a file; write [base.yaml]")
        return found

    def _included(self, path: Path, scalar: Scalar, above: tuple[FileRef, ...]) -> Map | None:
        here = scalar.mark.file
        ref = FileRef(
            os.path.normpath(os.path.join(os.path.dirname(here.shown), scalar.source)),
            os.path.realpath(os.path.join(os.path.dirname(here.path), scalar.text)),
        )
        self._uses += 1
        fault = ""
        paths = [file.path for file in above]
        if ref.path in paths:
            chain = [os.path.basename(file.shown) for file in (*above[paths.index(ref.path) :], ref)]
            itself = len(chain) == 2
            fault = "includes itself" if itself else f"includes go in a circle: {' -> '.join(chain)}"
            fault = f"{printable(fault, limit=300)}; remove this line"
        elif len(above) > MAX_NESTED:
            fault = f"included more than {MAX_NESTED} levels deep; include the file further up"
        elif self._uses > MAX_FILES:
            fault = f"more than {MAX_FILES} includes; merge some of the files"
        if not fault:
            try:
                return self.file(ref, above)
            except UnreadableError as error:
                if error.line:
                    self.problems.file(ref)
                    self.problems.add(Mark(ref, error.line, error.col), (), error.why)
                    return None
                fault = f"{quoted(scalar.source)}: {error.why}"
        self.problems.add(scalar.mark, path, fault)
        return None
