"""Settings files of a person: changes go in and come out, and every other byte stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nbs_fleet.drivers.deployment import AddItem, Change, EditError, Format, Fragment, SetKey
from nbs_fleet.drivers.toml_text import inline
from nbs_fleet.plan import edits
from nbs_fleet.plan.edits import put, read, take

OURS = {"hooks": [{"type": "command", "command": "'/run/x/bin/nbs-hook' Stop"}]}
KEYS = st.sampled_from(["hooks", "Stop", "a", "b", "model", "permissions"])
WORDS = st.text(st.sampled_from("abc \"'\\/#:,[]{}é日😀*-"), max_size=6)
SCALARS = st.booleans() | st.integers(-9, 9) | WORDS
VALUES = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=3), max_leaves=6
)
FILES = st.dictionaries(KEYS, VALUES, max_size=4)
CHANGES = st.sampled_from(
    [
        AddItem(("hooks", "Stop"), OURS),
        AddItem(("permissions", "allow"), "Bash(nbs-fleet:*)"),
        AddItem(("a",), OURS),
        SetKey(("model",), "ours"),
        SetKey(("a", "b"), True),
        SetKey(("hooks", "nbs"), {"x": 1}),
    ]
)


@st.composite
def json_text(draw: st.DrawFn) -> str:
    """A JSON file as people write it: any indentation, comments, a comma at the end."""
    value = draw(FILES)
    text = json.dumps(value, indent=draw(st.sampled_from([None, 1, 2, "\t"])), ensure_ascii=draw(st.booleans()))
    lines = text.split("\n")
    for index in range(len(lines)):
        lines[index] += draw(st.sampled_from(["", "", "  // a, comment: [", "", " /* x } */"]))
    end = draw(st.sampled_from(["", "\n", "\n\n// the end\n"]))
    return draw(st.sampled_from(["", "// head\n", "\n"])) + "\n".join(lines) + ("\n" if lines[-1] != "}" else "") + end


@st.composite
def toml_text(draw: st.DrawFn) -> str:
    """A TOML file with keys, tables, lists of tables and comments."""
    lines = draw(st.sampled_from([[], ["# head", ""]]))
    value: dict[str, Any] = draw(FILES)
    plain = {name: one for name, one in value.items() if not isinstance(one, dict) or draw(st.booleans())}
    for name, one in plain.items():
        lines.append(f"{name} = {inline(one)}" + draw(st.sampled_from(["", "  # why = [not]"])))
    for name, one in value.items():
        if name not in plain:
            lines += ["", f"[{name}]" + draw(st.sampled_from(["", " # table"]))]
            lines += [f"{below} = {inline(deep)}" for below, deep in one.items()]
    if "hooks" not in value and draw(st.booleans()):
        lines += ["[[hooks.Stop]]", 'hooks = [{ command = "mine" }]']
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))


def block(value: Any, indent: int, draw: st.DrawFn) -> list[str]:
    """YAML lines of a mapping, its values in block or flow style."""
    lines = []
    for name, one in value.items():
        lead = " " * indent + f"{name}:"
        if isinstance(one, dict) and one and draw(st.booleans()):
            lines += [lead + draw(st.sampled_from(["", "  # below"])), *block(one, indent + 2, draw)]
        elif isinstance(one, list) and one and draw(st.booleans()):
            lines += [lead, *(" " * indent + f"  - {json.dumps(item, ensure_ascii=False)}" for item in one)]
        else:
            lines.append(f"{lead} {json.dumps(one, ensure_ascii=False)}")
    return lines


@st.composite
def yaml_text(draw: st.DrawFn) -> str:
    lines = [*draw(st.sampled_from([[], ["# head"], ["---"]])), *block(draw(FILES), 0, draw)]
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n# the end\n"]))


TEXTS: dict[Format, st.SearchStrategy[str]] = {"json": json_text(), "toml": toml_text(), "yaml": yaml_text()}
FORMATS = st.sampled_from(["json", "toml", "yaml"])


def deployed(text: str, fmt: Format, change: Change) -> tuple[str, Fragment | None]:
    """The change put in; a file that can't be read, or has something else in that place, is no case of ours."""
    try:
        read(text, fmt)
        return put(text, fmt, change)
    except EditError as error:
        assume("no list there" not in str(error) and "no mapping" not in str(error) and "it is no" not in str(error))
        assume("rewriting" not in str(error))
        raise


@given(st.data(), FORMATS, CHANGES)
def test_what_is_put_in_is_there_and_comes_out_byte_for_byte(data: st.DataObject, fmt: Format, change: Change) -> None:
    text = data.draw(TEXTS[fmt])
    after, fragment = deployed(text, fmt, change)
    assert edits.there(read(after, fmt), change)
    if fragment is None:
        assert after == text
    else:
        assert take(after, fmt, change, fragment) == text
        assert put(after, fmt, change) == (after, None)


@given(st.data(), FORMATS, st.lists(CHANGES, min_size=2, max_size=4, unique_by=str))
def test_several_changes_come_out_in_any_order(data: st.DataObject, fmt: Format, changes: list[Change]) -> None:
    text = now = data.draw(TEXTS[fmt])
    put_in = []
    for change in changes:
        now, fragment = deployed(now, fmt, change)
        if fragment is not None:
            put_in.append((change, fragment))
    for change, fragment in reversed(put_in):
        now = take(now, fmt, change, fragment)
    assert now == text


@given(st.data(), FORMATS, CHANGES)
def test_a_persons_own_edits_in_between_stay(data: st.DataObject, fmt: Format, change: Change) -> None:
    text = data.draw(TEXTS[fmt])
    after, fragment = deployed(text, fmt, change)
    assume(fragment is not None)
    assert fragment is not None
    start = next(
        at
        for at in range(len(text) + 1)
        if text[:at] + fragment.text in after
        and after.startswith(text[:at])
        and after[at : at + len(fragment.text)] == fragment.text
    )
    at = data.draw(st.integers(0, len(text)))
    old = text[at : at + data.draw(st.integers(0, 3))]
    new = data.draw(st.sampled_from(["", " ", "\n", "# note\n", "// note\n", "7", "x", ", "]))
    assume(at + len(old) <= start or at > start + len(fragment.was))
    moved = at if at + len(old) <= start else at + len(fragment.text) - len(fragment.was)
    edited, both = text[:at] + new + text[at + len(old) :], after[:moved] + new + after[moved + len(old) :]
    try:
        read(edited, fmt)
        value = read(both, fmt)
        assume(edits.there(value, change))
        again, _ = put(edited, fmt, change)
        assume(read(again, fmt) == value)
        assert read(take(both, fmt, change, fragment), fmt) == read(edited, fmt)
    except EditError:
        assume(False)
    assert take(both, fmt, change, fragment) == edited


@pytest.mark.parametrize(
    ("fmt", "text", "change", "after"),
    [
        ("json", "", AddItem(("a", "b"), 1), '{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n}\n'),
        ("json", '{"a": [2] /* x */}', AddItem(("a",), 1), '{"a": [1, 2] /* x */}'),
        ("json", "{\n  // mine\n}\n", SetKey(("k",), True), '{"k": true\n  // mine\n}\n'),
        ("toml", "x = 1 # y\n", SetKey(("x",), 2), "x = 2 # y\n"),
        ("toml", "[t] # y\nx = 1", SetKey(("t", "z"), 2), "[t] # y\nz = 2\nx = 1"),
        ("toml", "x = [1]\n", AddItem(("x",), 2), "x = [2, 1]\n"),
        ("toml", "# only", AddItem(("h", "S"), {"k": 1}), "# only\n[[h.S]]\nk = 1\n"),
        ("yaml", "a:\n  # first\n  - 1\n", AddItem(("a",), 2), "a:\n  # first\n  - 2\n  - 1\n"),
        ("yaml", "a: {b: 1}  # x\n", SetKey(("a", "c"), 2), 'a: {"c": 2, b: 1}  # x\n'),
    ],
)
def test_where_a_change_goes(fmt: Format, text: str, change: Change, after: str) -> None:
    got, fragment = put(text, fmt, change)
    assert got == after
    assert fragment is not None
    assert take(after, fmt, change, fragment) == text


def test_what_a_person_has_set_or_changed_since_is_theirs() -> None:
    assert put("model = 'mine'\n", "toml", SetKey(("model",), "ours", theirs=True)) == ("model = 'mine'\n", None)
    change = SetKey(("model",), "ours")
    _, fragment = put("model = 'mine'\n", "toml", change)
    assert fragment is not None
    assert take('model = "another"\n', "toml", change, fragment) == 'model = "another"\n'
    assert take("", "toml", change, fragment) == ""


def test_a_file_that_was_written_anew_loses_only_ours() -> None:
    change = AddItem(("hooks", "Stop"), OURS)
    after, fragment = put('{"hooks": {"Stop": [{"mine": 1}]}, "x": 1}', "json", change)
    assert fragment is not None
    anew = json.dumps(json.loads(after), indent=4)
    assert json.loads(take(anew, "json", change, fragment)) == {"hooks": {"Stop": [{"mine": 1}]}, "x": 1}


def test_elements_added_beside_ours_stay() -> None:
    change = AddItem(("a",), "ours")
    _, fragment = put('{"a": []}', "json", change)
    assert fragment is not None
    assert take('{"a": ["ours", "b"]}', "json", change, fragment) == '{"a": ["b"]}'
    assert take('{"a": ["b", "ours"]}', "json", change, fragment) == '{"a": ["b"]}'


@pytest.mark.parametrize(("fmt", "text"), [("json", "{"), ("toml", "x ="), ("yaml", "a: [")])
def test_a_file_that_makes_no_sense_is_left_alone(fmt: Format, text: str) -> None:
    with pytest.raises(EditError, match="it is no"):
        put(text, fmt, SetKey(("a",), 1))
