"""Whatever stands in a team file: it is loaded, or refused with lines that name the file; nothing else."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import Any

import msgspec
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nbs_fleet.errors import TeamFileError
from nbs_fleet.spec.config import render
from nbs_fleet.spec.loaded import Loaded
from nbs_fleet.spec.schema_json import rows
from nbs_fleet.spec.team import Team

Load = Callable[..., Loaded]
KEYS = sorted({row.key.split(".")[-1].removesuffix("[]") for row in rows()} | {"<<", "zz"})
WORDS = [
    "ana",
    "bo",
    "bo-1",
    "live",
    "15m",
    "15",
    "no",
    "accept",
    "nudge",
    "sim",
    ".",
    "..",
    "$",
    "${V}",
    "",
    "~",
    "1e9",
]
TOKENS = [
    "\n",
    "  ",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    "&a ",
    "*a",
    "!x ",
    "#",
    "|",
    ">",
    "?",
    "\t",
    "\r",
    "\u2028",
    "%",
]
VALID = "version: 1\nteam: t\nchats: [live]\nroles: {r: {model: x}}\nagents:\n- {handle: ana, role: r}\n- {handle: bo, count: 2}\n"
CALM = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

leaves = st.sampled_from(WORDS) | st.booleans() | st.none() | st.integers() | st.floats() | st.text(max_size=5)
trees = st.recursive(
    leaves, lambda t: st.lists(t, max_size=4) | st.dictionaries(st.sampled_from(KEYS), t, max_size=5), max_leaves=12
)
agents = st.dictionaries(st.sampled_from(KEYS), trees, max_size=4).flatmap(
    lambda extra: st.sampled_from(["ana", "bo", "Ana", "team"]).map(lambda handle: {**extra, "handle": handle})
)
files = st.builds(
    lambda extra, members: {**extra, "version": 1, "team": "t", "agents": members},
    st.dictionaries(st.sampled_from(KEYS), trees, max_size=5),
    st.lists(agents, min_size=1, max_size=4),
)


def tried(load: Load, text: str | bytes) -> Loaded | None:
    """Load it; a refusal must be printable, one line per problem, and name the file."""
    try:
        loaded = load(text, {"V": "a value"})
    except TeamFileError as error:
        refused = error.problems
    else:
        assert msgspec.json.decode(msgspec.json.encode(loaded.team), type=Team) == loaded.team
        render(loaded).encode()
        return loaded
    assert refused
    for line in refused:
        assert line.startswith(("team.yaml", "..."))
        assert "\n" not in line
        line.encode()
    return None


@CALM
@given(st.text() | st.binary())
@example("? ")
@example("{\n")
@example("- - - - -" * 50)
@example("a: &a [*a]")
@example("\ufeff\ufeff")
@example("%TAG ! x\n--- a")
@example("x: !!binary a")
def test_any_text_is_loaded_or_refused(load: Load, text: str | bytes) -> None:
    tried(load, text)


@CALM
@given(st.lists(st.sampled_from([*TOKENS, *WORDS, *KEYS]), max_size=30).map("".join))
def test_anything_like_yaml_is_loaded_or_refused(load: Load, text: str) -> None:
    tried(load, text)


@CALM
@given(st.integers(0, len(VALID)), st.integers(0, 8), st.sampled_from([*TOKENS, *WORDS, *KEYS]))
def test_a_slip_of_the_finger_is_loaded_or_refused(load: Load, place: int, gone: int, typed: str) -> None:
    tried(load, VALID[:place] + typed + VALID[place + gone :])


@CALM
@given(files, st.booleans())
def test_any_tree_of_known_keys_is_loaded_or_refused(load: Load, tree: dict[str, Any], flow: bool) -> None:
    tried(load, yaml.safe_dump(tree, allow_unicode=True, default_flow_style=flow).encode("utf-8", "surrogatepass"))


handles = st.text(string.ascii_lowercase, min_size=1, max_size=6).filter(
    lambda h: h not in ("team", "system", "hub", "sidecar")
)
UNQUOTED = re.compile(r"[-+]?[0-9.]+[eE][-+]?[0-9]+|0o[0-7]+")
"""Numbers in YAML 1.2, as which they are read; the library that writes here knows 1.1 and does not quote them."""
values = st.text(st.characters(exclude_characters="$\0", exclude_categories=["Cs", "Cc"]), min_size=1).filter(
    lambda t: t.strip() and not UNQUOTED.fullmatch(t)
)


@st.composite
def valid_files(draw: st.DrawFn) -> dict[str, Any]:
    """A file without a fault: some agents, each waiting only for those before it."""
    names = draw(st.lists(handles, min_size=1, max_size=5, unique=True))
    members: list[dict[str, Any]] = []
    for n, name in enumerate(names):
        member: dict[str, Any] = {"handle": name, "model": draw(values), "env": {"A": draw(values)}}
        if draw(st.booleans()):
            member["count"] = draw(st.integers(1, 3))
        if n:
            member["depends_on"] = draw(st.lists(st.sampled_from(names[:n]), max_size=2))
        members.append(member)
    chats: list[Any] = ["live", {"name": "talk", "members": draw(st.lists(st.sampled_from(names), max_size=3))}]
    return {"version": 1, "team": "t", "chats": chats, "vars": {"x": draw(values)}, "agents": members}


@CALM
@given(valid_files(), st.booleans())
def test_a_valid_file_gives_the_team_it_describes(load: Load, tree: dict[str, Any], flow: bool) -> None:
    loaded = tried(load, yaml.safe_dump(tree, allow_unicode=True, default_flow_style=flow, sort_keys=False))
    assert loaded is not None
    team = loaded.team
    assert team.vars == tree["vars"]
    copies = {m["handle"]: [a for a in team.agents if a.base == m["handle"]] for m in tree["agents"]}
    for member in tree["agents"]:
        mine = copies[member["handle"]]
        assert len(mine) == member.get("count", 1)
        for agent in mine:
            assert (agent.model, agent.env) == (member["model"], member["env"])
            waits = [a.handle for name in dict.fromkeys(member.get("depends_on", ())) for a in copies[name]]
            assert list(agent.depends_on) == waits
    assert team.chats[0].members == tuple(a.handle for a in team.agents)
    assert set(team.chats[1].members) == {a.handle for name in tree["chats"][1]["members"] for a in copies[name]}
