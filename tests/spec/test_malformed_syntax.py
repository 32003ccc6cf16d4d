"""Malformed team files, each with its exact message: files that can't be read as YAML."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nbs_fleet.errors import TeamFileError

T = "version: 1\nteam: t\n"
A = "agents: [{handle: ana}]\n"

CASES: dict[str, tuple[bytes | str, *tuple[str, ...]]] = {
    "an empty file": (
        "",
        "1:1: the file is empty; it begins with version: 1",
    ),
    "only a comment": (
        "# nothing\n",
        "1:1: the file is empty; it begins with version: 1",
    ),
    "only a document mark": (
        "---\n",
        "1:1: the file is empty; it begins with version: 1",
    ),
    "a list at the top": (
        "- version: 1\n",
        "1:1: must be a mapping of keys such as version, team and agents",
    ),
    "a text at the top": (
        "hello\n",
        "1:1: must be a mapping of keys such as version, team and agents",
    ),
    "two documents": (
        T + "agents: [{handle: ana}]\n---\nversion: 1\n",
        '4:1: a second document; keep one, without "---" between',
    ),
    "a NUL byte": (
        b"version: 1\nteam: t\x00\n",
        "2:8: a NUL byte; this is not a text file",
    ),
    "bytes that are not UTF-8": (
        b"version: 1\nteam: \xff\n",
        "2:7: byte 0xff is not UTF-8; save the file as UTF-8",
    ),
    "UTF-16": (
        b"\xff\xfev\x00e\x00r\x00s\x00i\x00o\x00n\x00:\x00 \x001\x00\n\x00",
        "1:1: is UTF-16; save it as UTF-8",
    ),
    "a control character": (
        "version: 1\nteam: \x07t\n",
        "2:7: the control character U+0007; remove it",
    ),
    "a tab as indentation": (
        T + "agents:\n\t- handle: ana\n",
        "4:1: a tab; indent and separate with spaces",
    ),
    "a tab before a key": (
        T + "dialogs:\n  trust: ask\n\tplan: ask\n",
        "5:1: a tab; indent and separate with spaces",
    ),
    "a second colon in a value": (
        "version: 1\nteam: t: u\n",
        '2:8: ":" where no key can stand; indent keys of one mapping alike, and quote text that holds ": "',
    ),
    "a key without colon": (
        T + "agents\n",
        '4:1: a key without its ":"; write key: value',
    ),
    "a stray dash": (
        T + "agents:\n  - handle: ana\n - handle: bo\n",
        "5:2: wrong indentation, or text after a closing quote; keys of one mapping start in the same column",
    ),
    "a value indented below a value": (
        T + "root: .\n  dir: x\n",
        '4:6: ":" where no key can stand; indent keys of one mapping alike, and quote text that holds ": "',
    ),
    "the first key indented": (
        "  version: 1\nteam: t\n",
        "2:1: wrong indentation; the keys of the file start in column 1",
    ),
    "an open quote": (
        'version: 1\nteam: "t\n',
        "2:7: this quote is never closed; close it, or double it inside the text",
    ),
    "an open list": (
        T + "chats: [live\nagents: []\n",
        '4:7: the list that begins at 3:8 is not closed here; write "," between its parts and "]" at its end',
    ),
    "an open mapping": (
        T + "agents: [{handle: ana\n",
        '4:1: the mapping that begins at 3:10 is not closed here; write "," between its parts and "}" at its end',
    ),
    "a bracket without partner": (
        T + "chats: ]\n",
        '3:8: "]" where a value should be; remove it or quote the value',
    ),
    "an unknown escape": (
        'version: 1\nteam: "\\q"\n',
        '2:9: "\\q" is no escape; double the backslash or use single quotes',
    ),
    "a value that begins with @": (
        T + "model: @opus\n" + A,
        '3:8: a value can\'t begin with "@"; quote the value',
    ),
    "a value that begins with a backtick": (
        T + "model: `opus`\n" + A,
        '3:8: a value can\'t begin with "`"; quote the value',
    ),
    "a variable in a flow mapping": (
        T + "agents: [{handle: ana, model: ${MODEL}}]\n",
        '3:32: "{" inside a value of the mapping that begins at 3:10; quote a value that holds ${NAME}',
    ),
    "text after a closing quote": (
        T + "model: 'it's'\n" + A,
        "3:12: wrong indentation, or text after a closing quote; keys of one mapping start in the same column",
    ),
    "text beside a block mark": (
        T + "model: |opus\n" + A,
        '3:9: text on the line of "|" or ">"; begin it on the next line',
    ),
    "a YAML version from the future": (
        "%YAML 9.0\n---\nversion: 1\nteam: t\n" + A,
        "1:1: this YAML version is not supported; remove the %YAML line",
    ),
    "a tag": (
        T + "model: !secret opus\n" + A,
        "3:8: model: tags (words after !) are not allowed; quote text that begins with !",
    ),
    "an alias without anchor": (
        T + "model: *fast\n" + A,
        "3:8: model: *fast has no anchor &fast before it; quote text that begins with *",
    ),
    "an alias within its own anchor": (
        T + "vars: &v {a: *v}\n" + A,
        "3:14: vars.a: *v contains itself; write the value out",
    ),
    "an anchor that explodes": (
        T
        + "vars:\n  a: &a [x, x, x, x, x, x, x, x, x, x]\n  b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n  c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n  d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n  e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n  f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n"
        + A,
        "8:22: vars.e[3]: more than 50000 values with aliases written out; a team file needs far fewer",
    ),
    "values nested too deep": (
        T + "vars: {a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}\n" + A,
        "3:34: vars.a[0][0]: nested more than 24 levels deep; a team file needs far fewer",
    ),
    "half a surrogate pair": (
        T + 'model: "\\ud800"\n' + A,
        "3:8: model: a NUL or half a surrogate pair in the text; remove the escape",
    ),
    "a NUL by escape": (
        T + 'model: "a\\0"\n' + A,
        "3:8: model: a NUL or half a surrogate pair in the text; remove the escape",
    ),
    "a merge of something else": (
        T + "agents:\n  - handle: ana\n    <<: 5\n",
        '5:9: agents[0]["<<"]: must be a mapping, or a list of mappings, to merge in',
    ),
    "no key in a flow mapping": (
        T + "vars: {: x}\n" + A,
        '3:8: ":" where a value should be; remove it or quote the value',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_problem_is_named_with_its_place_and_what_would_be_right(name: str, load: Callable[..., object]) -> None:
    text, *lines = CASES[name]
    with pytest.raises(TeamFileError) as caught:
        load(text)
    assert caught.value.problems == tuple(f"team.yaml:{line}" for line in lines)
    assert caught.value.exit_code == 2
