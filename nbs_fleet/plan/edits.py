"""Puts changes into a person's settings file and takes them out again, leaving every other byte as it is. Pure.

A change is one fragment of text put in at one place; it is found again by its own text, so what a person writes around
it meanwhile does no harm. Nothing is done where the result would not say exactly what it should.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from nbs_fleet.drivers.deployment import AddItem, Change, EditError, Format, Fragment
from nbs_fleet.drivers.toml_text import inline, key
from nbs_fleet.plan import jsonc

CONTEXT = 60
"""Characters before a fragment by which it is told from the same text elsewhere."""


def read(text: str, fmt: Format) -> Any:
    """What the file says; an empty one is an empty mapping. EditError if it can't be read."""
    try:
        if fmt == "json":
            found = jsonc.scan(text).value if text.strip("\ufeff \t\r\n") else {}
        elif fmt == "toml":
            found = tomllib.loads(text)
        else:
            _check_depth(text)
            found = yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise EditError(f"it is no {fmt.upper()}: {str(error).splitlines()[0]}") from error
    found = {} if found is None else found
    if not isinstance(found, dict):
        raise EditError("it holds no mapping at its top")
    return found


def _check_depth(text: str) -> None:
    """Raise ValueError for YAML nested deeper than anybody writes: the library takes ever longer for each level."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > jsonc.DEPTH:
            raise ValueError("too deep")


def wanted(value: Any, change: Change) -> tuple[Any, ...]:
    """What the file may say after a change: an element of a list stands first or last."""
    results = []
    for last in (False, True) if isinstance(change, AddItem) else (True,):
        result = copy.deepcopy(value)
        place = _made(result, change)
        if not isinstance(change, AddItem):
            place[change.path[-1]] = change.value
        elif last:
            place.append(change.value)
        else:
            place.insert(0, change.value)
        results.append(result)
    return tuple(results)


def _made(value: Any, change: Change) -> Any:
    """The list or mapping that a change goes into; what is missing on the way is made."""
    adds = isinstance(change, AddItem)
    above = change.path if adds else change.path[:-1]
    for depth, name in enumerate(above):
        is_list = adds and depth == len(above) - 1
        value = value.setdefault(name, [] if is_list else {})
        if not isinstance(value, list if is_list else dict):
            raise EditError(f"{'.'.join(above[: depth + 1])} is no {'list' if is_list else 'mapping'} there")
    return value


def without(value: Any, change: Change) -> tuple[Any, ...]:
    """What the file may say once a change is taken out: with and without the empty mappings on the way to it."""
    results = []
    indexes = [0]
    if isinstance(change, AddItem):
        indexes = [n for n, item in enumerate(_at(value, change.path)) if item == change.value]
    for index in indexes:
        result = copy.deepcopy(value)
        place = _at(result, change.path[:-1])
        if isinstance(change, AddItem):
            del place[change.path[-1]][index]
        else:
            del place[change.path[-1]]
        results.append(result)
        for depth in range(len(change.path), 0, -1):
            above = _at(result, change.path[: depth - 1])
            if change.path[depth - 1] in above and above[change.path[depth - 1]]:
                break
            result = copy.deepcopy(result)
            _at(result, change.path[: depth - 1]).pop(change.path[depth - 1], None)
            results.append(result)
    return tuple(results)


def _put_back(value: Any, change: Change, text: str, fmt: Format) -> bool:
    """Whether the text has another value under the key of the change, and is the same in all else."""
    try:
        found = read(text, fmt)
        place = _at(found, change.path[:-1])
    except (EditError, KeyError, TypeError):
        return False
    if not isinstance(place, dict) or change.path[-1] not in place:
        return False
    rest = copy.deepcopy(value)
    del _at(rest, change.path[:-1])[change.path[-1]], place[change.path[-1]]
    return bool(found == rest)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


def there(value: Any, change: Change) -> bool:
    """Whether a file says it already, or a person has said something else that is to stay."""
    for depth, name in enumerate(change.path):
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
        if depth == len(change.path) - 1 and isinstance(change, AddItem):
            return isinstance(value, list) and change.value in value
    return value == change.value or (not isinstance(change, AddItem) and change.theirs)


def put(text: str, fmt: Format, change: Change) -> tuple[str, Fragment | None]:
    """The text with the change in it, and the fragment that takes it out again; None: there is nothing to do."""
    value = read(text, fmt)
    if there(value, change):
        return text, None
    expected = wanted(value, change)
    for start, end, fragment in _PLACES[fmt](text, change):
        after = text[:start] + fragment + text[end:]
        if _says(after, fmt, expected):
            return after, Fragment(fragment, text[max(0, start - CONTEXT) : start], text[start:end])
    raise EditError(f"{'.'.join(change.path)} can't be put in without rewriting what stands there")


def take(text: str, fmt: Format, change: Change, fragment: Fragment) -> str:
    """The text without a change; as it is where a person has changed or removed that since. EditError: it can't be."""
    value = read(text, fmt)
    if not there(value, change) or (not isinstance(change, AddItem) and _at(value, change.path) != change.value):
        return text
    # What was replaced is text, cut out of its surroundings: it is judged by what it says back in its place.
    replaced = bool(fragment.was.strip())
    good = () if replaced else without(value, change)
    strict = fmt == "json" and not replaced and _is_strict(text)
    for candidate in _taken(text, fmt, change, fragment):
        right = _put_back(value, change, candidate, fmt) if replaced else _says(candidate, fmt, good)
        if right and (not strict or not candidate.strip() or _is_strict(candidate)):
            return candidate
    raise EditError(f"{fragment.text.strip()[:80]!r} can't be taken out")


def _is_strict(text: str) -> bool:
    """Whether this is JSON for a reader that takes neither comments nor a comma at the end."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _taken(text: str, fmt: Format, change: Change, fragment: Fragment) -> Iterator[str]:
    """The text without the fragment, at each place where it may stand, the likeliest first."""
    for start in _find(text, fragment):
        before, after = text[:start], text[start + len(fragment.text) :]
        yield before + fragment.was + after
        # A neighbour that came or went meanwhile leaves a comma too many.
        yield before + re.sub(r"\A\s*,[ \t]*", "", after)
        yield re.sub(r",\s*\Z", "", before) + after
    if fmt == "json":
        # The file was written anew, in another form.
        yield from _pairs_taken(text, change, fragment)
        node = jsonc.scan(text).at(change.path)
        items = node.items if node is not None and isinstance(change, AddItem) else ()
        for _, item in items:
            if item.value == change.value:
                before, after = text[: item.start], text[item.end :]
                yield before + re.sub(r"\A\s*,\s*", "", after)
                yield re.sub(r",\s*\Z", "", before) + after
                yield before + after


def _pairs_taken(text: str, change: Change, fragment: Fragment) -> Iterator[str]:
    """The JSON text without a whole pair on the way to the change that came with it, the outermost first."""
    top = jsonc.scan(text)
    for depth, name in enumerate(change.path):
        quoted = json.dumps(name, ensure_ascii=False)
        parent = top.at(change.path[:depth])
        if parent is None or f"{quoted}:" not in fragment.text:
            continue
        for found, item in parent.items:
            start = text.rfind(quoted, 0, item.start)
            if found != name or start < 0 or not re.fullmatch(r"\s*:\s*", text[start + len(quoted) : item.start]):
                continue
            before, after = text[:start], text[item.end :]
            yield before + re.sub(r"\A\s*,\s*", "", after)
            yield re.sub(r",\s*\Z", "", before) + after
            yield before + after


def _find(text: str, fragment: Fragment) -> list[int]:
    """Where a fragment may stand: first where most of the old text precedes it."""

    def likeness(at: int) -> int:
        near = text[max(0, at - CONTEXT) : at]
        count = 0
        while count < min(len(near), len(fragment.before)) and near[-1 - count] == fragment.before[-1 - count]:
            count += 1
        return -count

    return sorted((found.start() for found in re.finditer(re.escape(fragment.text), text)), key=likeness)


def _says(text: str, fmt: Format, expected: tuple[Any, ...]) -> bool:
    try:
        return read(text, fmt) in expected
    except EditError:
        return False


Place = tuple[int, int, str]


def _nested(names: tuple[str, ...], change: Change) -> Any:
    """The value that stands for the whole change below the keys that exist."""
    value: Any = [change.value] if isinstance(change, AddItem) else change.value
    for name in reversed(names):
        value = {name: value}
    return value


def _json(text: str, change: Change) -> list[Place]:
    if not text.strip("\ufeff \t\r\n"):
        return [(0, len(text), json.dumps(_nested(change.path, change), indent=2, ensure_ascii=False) + "\n")]
    top = jsonc.scan(text)
    found = top.at(change.path)
    if found is not None:
        if isinstance(change, AddItem):
            return [_inside(found, json.dumps(change.value, ensure_ascii=False))]
        return [(found.start, found.end, json.dumps(change.value, ensure_ascii=False))]
    depth = _known(lambda path: top.at(path) is not None, change.path)
    parent = top.at(change.path[:depth])
    assert parent is not None  # noqa: S101 - the top is always there
    value = json.dumps(_nested(change.path[depth + 1 :], change), ensure_ascii=False)
    return [_inside(parent, f"{json.dumps(change.path[depth], ensure_ascii=False)}: {value}")]


def _inside(node: jsonc.Node, item: str) -> Place:
    """Right behind the opening bracket, so that whatever follows stays as it is."""
    return (node.start + 1, node.start + 1, f"{item}, " if node.items else item)


def _known(exists: Callable[[tuple[str, ...]], bool], path: tuple[str, ...]) -> int:
    """How many of the keys exist already."""
    depth = 0
    while depth < len(path) - 1 and exists(path[: depth + 1]):
        depth += 1
    return depth


def _toml(text: str, change: Change) -> list[Place]:
    """Below the table's own header; a table or an element of a list of tables at the end; a value in its own line."""
    line_end = "" if not text or text.endswith("\n") else "\n"
    end = len(text)
    if isinstance(change, AddItem):
        path = ".".join(map(key, change.path))
        if isinstance(change.value, dict):
            body = "".join(f"{key(name)} = {inline(value)}\n" for name, value in change.value.items())
            # Elements at the end come after those of the person: tried as well as the first place.
            places = [(at, at, f"[[{path}]]\n{body}") for at in _headers(text, f"[[{path}]]", before=True)[:1]]
            places.append((end, end, f"{line_end}[[{path}]]\n{body}"))
        else:
            places = []
        places += [(at, at, f"{inline(change.value)}, ") for at in _openings(text, change.path[-1])]
        places += [(at, at, inline(change.value)) for at in _openings(text, change.path[-1])]
        return [*places, *_toml_key(text, change.path, [change.value], line_end)]
    old = [
        (found.start(2), found.end(2), inline(change.value))
        for found in re.finditer(rf"(?m)^([ \t]*{re.escape(key(change.path[-1]))}[ \t]*=[ \t]*)([^\n#]*[^\s#])", text)
    ]
    return [*old, *_toml_key(text, change.path, change.value, line_end)]


def _toml_key(text: str, path: tuple[str, ...], value: Any, line_end: str) -> list[Place]:
    *above, name = map(key, path)
    line = f"{name} = {inline(value)}\n"
    if not above:
        return [(0, 0, line)]
    table = ".".join(above)
    places = [(at, at, line) for at in _headers(text, f"[{table}]", before=False)]
    places.append((len(text), len(text), f"{line_end}[{table}]\n{line}"))
    return [*places, (0, 0, f"{table}.{line}")]


def _headers(text: str, header: str, *, before: bool) -> list[int]:
    """Where the lines begin (`before`) or end that hold this header."""
    lines = re.finditer(rf"(?m)^[ \t]*{re.escape(header)}[ \t]*(?:#[^\n]*)?(?:\n|\Z)", text)
    return [found.start() if before else found.end() for found in lines if before or found[0].endswith("\n")]


def _openings(text: str, name: str) -> list[int]:
    """Behind the bracket of each list that is given to this key."""
    return [found.end() for found in re.finditer(rf"(?m)^[ \t]*{re.escape(key(name))}[ \t]*=[ \t]*\[", text)]


def _yaml(text: str, change: Change) -> list[Place]:
    top = yaml.compose(text, Loader=yaml.SafeLoader)
    if top is None:
        whole = json.dumps(_nested(change.path[1:], change), ensure_ascii=False)
        end = "" if not text or text.endswith("\n") else "\n"
        return [(len(text), len(text), f"{end}{json.dumps(change.path[0], ensure_ascii=False)}: {whole}\n")]
    depth = _known(lambda path: _node(top, path) is not None, change.path)
    found = _node(top, change.path)
    if found is not None and not isinstance(change, AddItem):
        return [(found.start_mark.index, found.end_mark.index, json.dumps(change.value, ensure_ascii=False))]
    if found is not None:
        return _before(text, found, json.dumps(change.value, ensure_ascii=False), dash="- ")
    parent = _node(top, change.path[:depth])
    value = json.dumps(_nested(change.path[depth + 1 :], change), ensure_ascii=False)
    line = f"{json.dumps(change.path[depth], ensure_ascii=False)}: {value}"
    return _before(text, parent, line, dash="") if parent is not None else []


def _node(top: yaml.Node, path: tuple[str, ...]) -> yaml.Node | None:
    node: yaml.Node | None = top
    for name in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for name_node, value in pairs if name_node.value == name), None)
    return node


def _before(text: str, node: yaml.Node, item: str, *, dash: str) -> list[Place]:
    """Before the first thing in a mapping or list, in the style that it is written in."""
    if not isinstance(node, yaml.CollectionNode):
        return []
    if node.flow_style:
        at = node.start_mark.index + 1
        return [(at, at, f"{item}, " if node.value else item)]
    at = text.rfind("\n", 0, node.start_mark.index) + 1
    indent = text[at : node.start_mark.index]
    # A list's first dash, or a mapping's first key; one that begins beside a dash can't have a line before it.
    return [] if indent.strip() else [(at, at, f"{indent}{dash}{item}\n")]


_PLACES: dict[Format, Callable[[str, Change], list[Place]]] = {"json": _json, "toml": _toml, "yaml": _yaml}
