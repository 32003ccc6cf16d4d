"""Inputs for one kind of reader: its real seeds changed in places, its words strung together, trees of its keys, bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

HUGE = 10**19
"""More than 64 bits hold."""
NASTY = (
    b"",
    b"\0",
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"\t",
    b"\x1b[2J",
    b"\x1b]0;x\x07",
    b"\xff",
    b"\xed\xa0\x80",
    "é日🙂\u202e\u2028\u200b\x85\x9b".encode(),
    b"-1",
    b"0",
    b"1e999",
    b"NaN",
    b"-Infinity",
    b"9" * 30,
    b"9" * 5000,
    b'"\\ud800"',
    b'"',
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b": ",
    b", ",
    b"|",
    b"=",
    b"../../../etc/passwd",
    b"/dev/zero",
    b"%s%n{0}{x!r}$(id)`id`#{pane_id}#(id)",
    b"{{ 7*7 }}{% raw %}",
)
"""What has broken readers before, of any format."""
DEEP = (b"[", b'{"a":', b"(", b"- ", b"> ", b"{{", b"`", b'"', b"a: &a [")
"""What nests, or looks as if it did."""
TIMES = (2, 40, 1_500, 20_000)

Edit = tuple[str, int, int, bytes]
Shape = Callable[[Any], bytes]


def words_of(seeds: Iterable[bytes]) -> list[bytes]:
    """The words of the seeds and what stands between them, each once: what a reader looks for."""
    found: dict[bytes, None] = {}
    for seed in seeds:
        found.update(dict.fromkeys(re.findall(rb"[\w.@/~-]{1,40}|[^\w\s]{1,8}", seed[:20_000])))
    return list(found)[:400]


def edited(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The bytes after these changes; a place is in thousandths of what there is by then."""
    for what, place, size, given in edits:
        at = len(data) * place // 1000
        if what == "put":
            data = data[:at] + given + data[at:]
        elif what == "cut":
            data = data[:at] + data[at + size :]
        elif what == "over":
            data = data[:at] + given + data[at + len(given) :]
        elif what == "end":
            data = data[:at]
        elif what == "twice":
            data = data[:at] + data[at : at + size] * 2 + data[at + size :]
        elif what == "many":
            data = data[:at] + given * TIMES[size % len(TIMES)] + data[at:]
        else:
            data = data[:at] + bytes(byte ^ (1 << (size & 7)) for byte in data[at : at + 1]) + data[at + 1 :]
    return data[:200_000]


def edits(tokens: list[bytes]) -> st.SearchStrategy[Edit]:
    """One change."""
    what = st.sampled_from(["put", "cut", "over", "end", "twice", "flip", "put", "over"])
    common = st.tuples(what, st.integers(0, 1000), st.integers(0, 60), st.sampled_from([*NASTY, *tokens]))
    many = st.tuples(st.just("many"), st.integers(0, 1000), st.integers(0, 3), st.sampled_from([*DEEP, *NASTY[1:5]]))
    return st.one_of(common, common, common, many)


_STRINGS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["\ud800", "\udcff x", "\x1b[31m", "\0", "2026-13-40T99:99:99Z", "0001-01-01T00:00:00", "9" * 400]),
    st.sampled_from(
        ["9999-12-31T23:59:59.999Z", "-5", "1e5", "[nbs:d-0a1]", "\\nbs-register-bus /etc", "@ana ", "/exit"]
    ),
)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([HUGE, -HUGE, 10**400, 2**63, 2**64 - 1, 0.5, 1e308, float("inf"), float("nan"), -0.0]),
    _STRINGS,
)


def trees(keys: list[str], strings: list[str]) -> st.SearchStrategy[Any]:
    """JSON values with the keys and strings that a reader knows."""
    names = st.sampled_from(keys) if keys else st.text(max_size=4)
    leaves = st.one_of(_LEAVES, st.sampled_from(strings)) if strings else _LEAVES
    return st.recursive(
        leaves, lambda t: st.one_of(st.lists(t, max_size=3), st.dictionaries(names, t, max_size=6)), max_leaves=16
    )


def known(seeds: Iterable[bytes]) -> tuple[list[str], list[str], list[Any]]:
    """(keys, strings, whole values) of the JSON in the seeds, line by line or as a whole."""
    keys: dict[str, None] = {}
    strings: dict[str, None] = {}
    values: list[Any] = []
    for seed in seeds:
        for text in (seed, *seed.splitlines()):
            try:
                value = json.loads(text)
            except ValueError:
                continue
            _harvest(value, keys, strings)
            values.append(value)
            if text is seed:
                break
    return list(keys)[:300], list(strings)[:300], values[:300]


def _harvest(value: Any, keys: dict[str, None], strings: dict[str, None]) -> None:
    if isinstance(value, dict):
        keys.update(dict.fromkeys(value))
        for item in value.values():
            _harvest(item, keys, strings)
    elif isinstance(value, list):
        for item in value:
            _harvest(item, keys, strings)
    elif isinstance(value, str) and len(value) < 60:
        strings[value] = None


def grafted(value: Any, way: list[int], given: Any) -> Any:
    """The value with one of its parts replaced: `way` says which child at each depth."""
    if way and isinstance(value, dict) and value:
        key = sorted(value)[way[0] % len(value)]
        return {**value, key: grafted(value[key], way[1:], given)}
    if way and isinstance(value, list) and value:
        at = way[0] % len(value)
        return [*value[:at], grafted(value[at], way[1:], given), *value[at + 1 :]]
    return given


def dumped(value: Any) -> bytes:
    """JSON as other programs write it: NaN, endless numbers and halves of surrogate pairs are in it."""
    return json.dumps(value).encode()


def whole(value: Any) -> bytes:
    """One JSON text."""
    return dumped(value)


def of_json(seeds: tuple[bytes, ...], *, lines: bool = False) -> st.SearchStrategy[bytes]:
    """JSON of the seeds' kind: trees of their keys, and their own values with a part replaced; as lines if wanted."""
    keys, strings, values = known(seeds)
    fresh = trees(keys, strings)
    one = st.dictionaries(st.sampled_from(keys), fresh, max_size=8) if keys else fresh
    if values:
        way = st.lists(st.integers(0, 40), max_size=5)
        one = st.one_of(one, st.builds(grafted, st.sampled_from(values), way, fresh))
    if not lines:
        return one.map(whole)
    return st.lists(one, min_size=1, max_size=6).map(lambda many: b"".join(dumped(v) + b"\n" for v in many))


def of_bytes(seeds: tuple[bytes, ...], tokens: tuple[bytes, ...] = ()) -> st.SearchStrategy[bytes]:
    """The seeds changed in up to six places; their words strung together; any bytes."""
    every = [*tokens, *words_of(seeds)]
    changed = st.builds(edited, st.sampled_from(seeds or (b"",)), st.lists(edits(every), min_size=1, max_size=6))
    strung = st.lists(st.sampled_from([*NASTY, *every]), max_size=40).map(b"".join)
    return st.one_of(changed, changed, changed, strung, st.binary(max_size=200))
