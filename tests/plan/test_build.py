"""From a team to a plan: what a change of each key does, and that no secret gets in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.errors import FleetError, TeamFileError
from nbs_fleet.plan.build import build, digest, digests
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import FRESH_SESSION, SAME_SESSION, Plan
from nbs_fleet.spec.team import (
    Agent,
    Backoff,
    Budget,
    Client,
    Dialogs,
    Layout,
    Recovery,
    RestartPolicy,
    SidecarSettings,
    Team,
)

PATHS = RunPaths("/run", "/rt", "/rt/s", "/rt/t")
ANA = Agent(
    handle="ana",
    base="ana",
    role="reviewer",
    driver="claude",
    dir="/project",
    prompt="/teams/a.j2",
    env={"API_KEY": "s3cret-value", "LOG": "debug"},
)
PROMPTS = {"/s/SKILL.md": "Be kind.", "/teams/a.j2": "You are {{ handle }}.\r\n", "template:worker.md.j2": "Work."}


def team(*agents: Agent, **more: Any) -> Team:
    return Team(name="review", file="/teams/review.yaml", root="/project", agents=agents, **more)


def planned(made: Team, **more: Any) -> Plan:
    given: dict[str, Any] = {"prompts": PROMPTS, "versions": {}, "env_digests": {}} | more
    return build(made, paths=PATHS, source="abc", **given)


def fields(agent: Agent, **more: Any) -> dict[str, str]:
    return planned(team(agent), **more).agents[0].fields


def test_a_plan_says_who_runs_where_and_when() -> None:
    bo = Agent("bo-1", "bo", None, "sim", "/project", depends_on=("ana",))
    made = planned(team(ANA, bo), versions={"sim": "1", "claude": "2.1.197"})
    assert (made.team, made.file, made.root, made.source) == ("review", "/teams/review.yaml", "/project", "abc")
    assert [(a.agent.handle, a.wave, a.window, a.slot, a.prompt) for a in made.agents] == [
        ("ana", 0, "ana", 0, "You are ana.\r\n"),
        ("bo-1", 1, "bo-1", 0, None),
    ]
    assert list(made.versions.items()) == [("claude", "2.1.197"), ("sim", "1")]


def test_panes_that_exist_stay_where_they_are() -> None:
    others = [Agent(h, h, None, "sim", "/project") for h in ("x", "y")]
    made = planned(team(*others, layout=Layout(panes_per_window=2)), placed={"y": ("agents-1", 0)})
    assert [(a.agent.handle, a.window, a.slot) for a in made.agents] == [("x", "agents-1", 1), ("y", "agents-1", 0)]


def test_no_value_of_env_is_in_the_plan_and_every_name_is() -> None:
    made = planned(team(ANA), env_digests={"ana": "d"})
    assert b"s3cret-value" not in msgspec.json.encode(made)
    assert made.agents[0].agent.env == {"API_KEY": "", "LOG": ""}


def test_the_plan_survives_being_written_as_json() -> None:
    made = planned(team(ANA))
    assert msgspec.json.decode(msgspec.json.encode(made), type=Plan) == made


CHANGES: dict[str, dict[str, Any]] = {
    "driver": {"driver": "sim"},
    "command": {"command": ("claude", "x")},
    "client": {"client": Client("^> ")},
    "args": {"args": ("--x",)},
    "model": {"model": "opus"},
    "permission_mode": {"permission_mode": "plan"},
    "permissions": {"permissions": {"allow": ["Bash(ls:*)"]}},
    "dir": {"dir": "/elsewhere"},
    "environment": {"environment": "clean"},
    "env": {"env": {"API_KEY": "another", "LOG": "debug"}},
    "env_pass": {"env_pass": ("X",)},
    "env_file": {"env_file": "/e"},
    "settings": {"settings": {"a": {"b": [1]}}},
    "skills": {"skills": ("/s",)},
    "prompt": {"prompt_text": "Another."},
}


def test_there_is_a_change_for_each_key_that_restarts() -> None:
    assert tuple(CHANGES) == (*SAME_SESSION, *FRESH_SESSION)


@pytest.mark.parametrize("key", CHANGES)
def test_a_change_of_a_key_changes_its_digest_only(key: str) -> None:
    before, after = fields(ANA), fields(msgspec.structs.replace(ANA, **CHANGES[key]))
    assert [k for k in before if before[k] != after[k]] == [key]


@pytest.mark.parametrize(
    "change",
    [
        {"chats": ("live",)},
        {"bus": ("/ev",)},
        {"sidecar": SidecarSettings(poll=1)},
        {"dialogs": Dialogs(trust="accept")},
        {"restart": RestartPolicy(policy="always", backoff=Backoff(first=9))},
        {"stop": "signal"},
        {"on_idle": Recovery("nudge")},
        {"budget": Budget(tokens=1)},
        {"depends_on": ()},
    ],
)
def test_other_keys_restart_nobody(change: dict[str, Any]) -> None:
    assert fields(ANA) == fields(msgspec.structs.replace(ANA, **change))


def test_another_text_of_a_skill_changes_its_digest_only() -> None:
    agent = msgspec.structs.replace(ANA, skills=("/s",))
    before, after = fields(agent), fields(agent, prompts={**PROMPTS, "/s/SKILL.md": "Be quick."})
    assert [k for k in before if before[k] != after[k]] == ["skills"]


def test_the_same_prompt_from_another_place_is_no_change() -> None:
    same = msgspec.structs.replace(ANA, prompt=None, prompt_text="You are {{ handle }}.\r\n")
    assert fields(ANA)["prompt"] == fields(same)["prompt"]


def test_a_changed_template_is_a_change_of_prompt() -> None:
    assert fields(ANA)["prompt"] != fields(ANA, prompts={"/teams/a.j2": "You are {{ handle }}.\n"})["prompt"]


def test_a_changed_env_file_is_a_change_and_a_moved_one_is_not() -> None:
    one, two = (msgspec.structs.replace(ANA, env_file=path) for path in ("/a.env", "/b.env"))
    assert fields(one, env_digests={"ana": "1"}) == fields(two, env_digests={"ana": "1"})
    assert fields(one, env_digests={"ana": "1"})["env_file"] != fields(one, env_digests={"ana": "2"})["env_file"]


def test_a_digest_of_the_environment_without_env_file_changes_nothing() -> None:
    assert fields(ANA) == fields(ANA, env_digests={"ana": "1"})


def test_a_prompt_of_nothing_but_blanks_is_no_prompt() -> None:
    blank = msgspec.structs.replace(ANA, prompt=None, prompt_text=" \n{% if false %}x{% endif %}\n")
    assert planned(team(blank)).agents[0].prompt is None


def test_all_problems_of_all_prompts_are_told_at_once() -> None:
    agents = [
        msgspec.structs.replace(ANA, handle="a", prompt_text="{{ x }}"),
        msgspec.structs.replace(ANA, handle="b", prompt="/none.j2"),
        msgspec.structs.replace(ANA, handle="c", prompt="/bad.j2"),
        msgspec.structs.replace(ANA, handle="d", prompt="/bad.j2"),
    ]
    with pytest.raises(TeamFileError) as caught:
        planned(team(*agents), prompts={"/bad.j2": "a\n{% oops %}"})
    known = "agents, bus, chats, driver, handle, role, root, team, vars"
    assert caught.value.problems == (
        f"/teams/review.yaml: a: prompt_text:1: 'x' is undefined; there are: {known}",
        "/none.j2: no such prompt template, and b needs it",
        "/bad.j2:2: Encountered unknown tag 'oops'.",
    )
    assert caught.value.exit_code == 2


def test_a_circle_of_needs_is_no_plan() -> None:
    with pytest.raises(FleetError, match="a -> b -> a"):
        planned(
            team(
                Agent("a", "a", None, "sim", "/", depends_on=("b",)),
                Agent("b", "b", None, "sim", "/", depends_on=("a",)),
            )
        )


def test_the_order_of_a_mapping_is_no_change() -> None:
    assert digest({"a": 1, "b": {"c": 2, "d": 3}}) == digest({"b": {"d": 3, "c": 2}, "a": 1})
    assert digest({1: "a", "1": "b"}) == digest({"1": "b", 1: "a"}) != digest({1: "b", "1": "a"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    max_leaves=6,
)


@given(json_values, json_values)
def test_digests_are_equal_only_for_equal_values(one: Any, two: Any) -> None:
    assert (digest(one) == digest(two)) == (
        msgspec.json.encode(one, order="sorted") == msgspec.json.encode(two, order="sorted")
    )


def test_a_digest_is_the_same_in_every_process_and_version() -> None:
    assert digest({"a": ["é", "\udce9", None, 1.5, True]}) == "816d3f8b20a6f815"


def test_each_agent_has_a_digest_of_every_key() -> None:
    assert set(digests(ANA, None, None)) == {*SAME_SESSION, *FRESH_SESSION}
