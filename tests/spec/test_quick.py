"""The ready-made validators accept what the models accept, refuse what they refuse, and read the same of it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from nbs_fleet.spec import quick
from nbs_fleet.spec.nodes import FloatText, FromVariable, IntText
from nbs_fleet.spec.quick_text import quick_text
from nbs_fleet.spec.schema import (
    AgentFile,
    BackoffFile,
    ChatFile,
    CommonFile,
    DialogsFile,
    LayoutFile,
    NagFile,
    PythiaFile,
    RecoveryFile,
    RestartFile,
    RoleFile,
    SidecarFile,
    StandupFile,
    TeamFile,
)
from nbs_fleet.spec.schema_client import AskedFile, ClientFile
from nbs_fleet.spec.schema_limits import BudgetFile, ContextFile, NotificationFile

SECTIONS: dict[type[BaseModel], tuple[Any, ...]] = {
    SidecarFile: ("sidecar",),
    NagFile: ("sidecar", "nag"),
    DialogsFile: ("dialogs",),
    RestartFile: ("restart",),
    BackoffFile: ("restart", "backoff"),
    ContextFile: ("context",),
    ClientFile: ("client",),
    AskedFile: ("client", "blocked"),
    RecoveryFile: ("on_error",),
    StandupFile: ("standup",),
    PythiaFile: ("pythia",),
    LayoutFile: ("layout",),
    BudgetFile: ("budget",),
    ChatFile: ("chats", 0),
    NotificationFile: ("notifications", 0),
    RoleFile: ("roles", "tester"),
    AgentFile: ("agents", 0),
}


def noted(value: Any, **attributes: str) -> Any:
    """A value that knows how it was written, as the reader of YAML makes it."""
    for name, text in attributes.items():
        setattr(value, name, text)
    return value


def from_variable(text: str) -> Any:
    return noted(FromVariable(text), source="${X}")


ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        70,
        1.5,
        1e9,
        "",
        " ",
        "x",
        "a b",
        "true",
        "1",
        "15m",
        "-",
        "0s",
        "nudge",
        "NBS_TEAM",
    ),
    *([], ["x"], [1], ["x", 1], [""], [None], {}, {"x": 1}, {"A": "b"}, {"A": 1}, {"": ""}, "x" * 130_000, "(", "ask"),
    *("http://x/y", "22:00-07:00", "failed", "C-c", (), b"x", [200, 50], [200, 5], {"name": "x"}, {"do": "nudge"}),
    *(noted(IntText(5), text="5"), noted(FloatText(1.5), text="1.5"), from_variable("5"), from_variable("ask")),
    *(from_variable(""), from_variable("true"), from_variable("15m"), [from_variable("x")]),
)


def whole() -> dict[str, Any]:
    """A file with each key there is, as its example has it."""
    found: dict[str, Any] = json.loads(whole_text())
    return found


@cache
def whole_text() -> str:
    found = examples(TeamFile)
    for model, path in SECTIONS.items():
        put(found, path, examples(model))
    return json.dumps(found)


def examples(model: type[BaseModel]) -> dict[str, Any]:
    return {name: (field.examples or [None])[0] for name, field in model.model_fields.items()}


def put(data: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data.setdefault(key, {}) if isinstance(data, dict) else data[key]
    data[path[-1]] = value


def by_model(model: type[BaseModel], data: object) -> Any:
    try:
        return model.model_validate(data).model_dump(exclude_unset=True)
    except ValidationError:
        return None


def test_the_file_is_what_the_models_make() -> None:
    with open(quick.FILE, encoding="utf-8") as file:
        assert file.read() == quick_text()
    assert quick.rendered().common == set(CommonFile.model_fields)
    assert quick.rendered().role == set(RoleFile.model_fields)


def test_each_key_is_read_as_the_models_read_it() -> None:
    found = quick.accepted("TeamFile", whole())
    assert found is not None
    assert found == by_model(TeamFile, whole())
    assert quick.accepted("AgentFile", whole()["agents"][0]) == by_model(AgentFile, whole()["agents"][0])
    least = {"version": 1, "team": "a", "agents": [{"handle": "ana"}]}
    assert quick.read("TeamFile", least) == least


@pytest.mark.parametrize("path", [(), *SECTIONS.values()], ids=lambda path: ".".join(map(str, path)))
def test_what_the_models_refuse_is_refused(path: tuple[Any, ...]) -> None:
    model = next((model for model, place in SECTIONS.items() if place == path), TeamFile)
    for name in (*model.model_fields, "unknown"):
        for odd in ODD:
            data = whole()
            put(data, (*path, name), odd)
            assert same(quick.accepted("TeamFile", data), by_model(TeamFile, data)), (name, odd)
        data = whole()
        section: Any = data
        for key in path:
            section = section[key]
        section.pop(name, None)
        assert same(quick.accepted("TeamFile", data), by_model(TeamFile, data)), name
    for odd in ODD if path else ():
        data = whole()
        put(data, path, odd)
        assert same(quick.accepted("TeamFile", data), by_model(TeamFile, data)), odd


def same(one: Any, other: Any) -> bool:
    """Equal, and of equal types: to Python 1 is true, and text from a variable is text."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [*one] == [*other] and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def test_where_the_library_knows_the_parts_by_other_names_the_models_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_parts", lambda: [{"type": "new-in-9", "ref": "TeamFile"}])
    quick._validator.cache_clear()
    try:
        assert quick.accepted("TeamFile", whole()) is None
        assert quick.read("TeamFile", whole()) == by_model(TeamFile, whole())
    finally:
        quick._validator.cache_clear()
