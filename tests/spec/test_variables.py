"""`${NAME}` in values: expanded where text or numbers go, never in keys, never shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbs_fleet.errors import TeamFileError
from nbs_fleet.spec.config import effective, render
from nbs_fleet.spec.loaded import Loaded

Load = Callable[..., Loaded]
TOP = "version: 1\nteam: t\n"
SECRET = "s3cret-value-of-a-variable"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "x"),
        ("a${A}b${A}", "axbx"),
        ("${MISSING:-y}", "y"),
        ("${EMPTY:-y}", "y"),
        ("${MISSING:-}z", "z"),
        ("${MISSING:-a:-b}", "a:-b"),
        ("${A:?needed}", "x"),
        ("'$$A $A $5'", "$A $A $5"),
        ("'$${A}'", "${A}"),
        ("a${EMPTY}", "a"),
    ],
)
def test_variables_are_expanded_as_in_a_shell(text: str, value: str, load: Load) -> None:
    agent = load(TOP + f"model: {text}\nagents: [{{handle: ana}}]\n", {"A": "x", "EMPTY": ""}).team.agents[0]
    assert agent.model == value


def test_a_variable_may_stand_for_a_number_a_truth_value_a_word_or_a_duration(load: Load) -> None:
    text = TOP + (
        "agents:\n  - handle: bo\n    count: ${COUNT}\n    stop: ${STOP}\n"
        '    restart: {resume: "${RESUME}", within: "${WITHIN}", max: "${COUNT}"}\n    env: {N: "${COUNT}"}\n'
        "    command: ${COMMAND}\n    on_idle: ${DO}\nstandup: ${OFF}\n"
    )
    variables = {"COUNT": "2", "STOP": "signal", "RESUME": "false", "WITHIN": "5m", "DO": "nudge", "OFF": "false"}
    team = load(text, {**variables, "COMMAND": "my client --x"}).team
    agent = team.agents[0]
    assert [a.handle for a in team.agents] == ["bo-1", "bo-2"]
    assert (agent.stop, agent.restart.resume, agent.restart.within, agent.restart.max) == ("signal", False, 300.0, 2)
    assert (agent.env, agent.command, agent.on_idle.do) == ({"N": "2"}, ("my", "client", "--x"), "nudge")
    assert team.standup is None


def test_text_from_a_variable_is_never_read_as_yaml(load: Load) -> None:
    text = TOP + 'model: ${M}\nvars: {x: "${M}"}\nagents: [{handle: ana, env: {E: "${M}"}}]\n'
    team = load(text, {"M": "no"}).team
    assert (team.agents[0].model, team.vars, team.agents[0].env) == ("no", {"x": "no"}, {"E": "no"})
    assert load(text, {"M": "${A}: [x]"}).team.agents[0].model == "${A}: [x]"


def test_keys_are_not_expanded(load: Load) -> None:
    assert load(TOP + "vars: {'${A}': x}\nagents: [{handle: ana}]\n", {}).team.vars == {"${A}": "x"}


LEAKS = [
    "team: '${V} x'",
    "version: ${V}",
    "root: ${V}",
    "chats: ['${V} x']",
    "chats: [{name: live, path: '/${V}'}, {name: talk, path: '/${V}'}]",
    "chats: [{name: live, members: ['${V}']}]",
    "standup: {every: '${V}'}",
    "standup: ${V}",
    "pythia: {agent: '${V}', bus: x}",
    "pythia: {every: '${V}'}",
    "driver: ${V}",
    'command: "\'${V}"',
    "dir: ${V}",
    "env_pass: ['${V}']",
    "env_file: ${V}",
    "skills: ['${V}']",
    "stop: ${V}",
    "on_idle: ${V}",
    "dialogs: {trust: '${V}'}",
    "sidecar: {poll: '${V}', notify_fail_threshold: '${V}', notices: '${V}'}",
    "layout: {size: ['${V}', 5]}",
    "notifications: [{on: '${V}', via: '${V}', url: '${V}', quiet: '${V}'}]",
    "budget: {hours: '${V}'}",
    "roles: {r: {prompt: '${V}'}}",
    "include: ['${V}']",
    "settings: '${V}'",
    "agents: ['${V}']",
    "agents: [{handle: '${V} x'}]",
    "agents: [{handle: '${V}'}, {handle: '${V}'}, {handle: bo, depends_on: [bobo]}]",
    "agents: [{handle: '${V}', count: 2, depends_on: ['${V}-1']}]",
    "agents: [{handle: bo, role: '${V}', depends_on: ['${V}'], chats: ['${V}']}]",
    "agents: [{handle: bo, prompt: '${V}', count: '${V}'}]",
]


@pytest.mark.parametrize("line", LEAKS)
def test_no_error_shows_the_value_of_a_variable(line: str, load: Load) -> None:
    base = {"version": "version: 1", "team": "team: t", "agents": "agents: [{handle: ana}]"}
    base[line.split(":", maxsplit=1)[0]] = line
    with pytest.raises(TeamFileError) as caught:
        load("\n".join(base.values()), {"V": SECRET})
    assert SECRET not in caught.value.message


def test_config_prints_variables_unexpanded_and_hides_secret_names(load: Load) -> None:
    text = TOP + (
        'vars: {a: "x ${V}"}\nbus: ["${V}"]\nchats: [{name: live, path: "${V}/live.chat"}]\n'
        'env: {LOG: debug, MY_TOKEN: literal-secret, OTHER: "${V}"}\n'
        'agents: [{handle: ana, model: "${V}", args: ["--x=${V}"], prompt_text: "${V}", settings: {k: ["${V}"]}}]\n'
    )
    loaded = load(text, {"V": SECRET})
    printed = render(loaded)
    assert SECRET not in printed
    assert "literal-secret" not in printed
    assert loaded.team.agents[0].env["MY_TOKEN"] == "literal-secret"
    values = {entry.key: entry.value for entry in effective(loaded)}
    assert values["agents.ana.model"] == values["agents.ana.env.OTHER"] == '"${V}"'
    assert (values["agents.ana.env.LOG"], values["agents.ana.env.MY_TOKEN"]) == ("debug", '"***"')
    assert (values["agents.ana.args"], values["vars.a"]) == ('["--x=${V}"]', '"x ${V}"')


def test_values_of_variables_with_secret_names_are_known_for_masking(load: Load) -> None:
    text = TOP + "model: ${API_KEY}${SHORT_KEY}${NAME}\nagents: [{handle: ana}]\n"
    loaded = load(
        text, {"API_KEY": "0123456789", "SHORT_KEY": "abc", "NAME": "a-long-name", "OTHER_KEY": "unused-value"}
    )
    assert loaded.secrets == ("0123456789",)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_any_value_of_a_variable_arrives_unchanged(load: Load, value: str) -> None:
    text = TOP + "vars: {x: '${V}'}\nagents: [{handle: ana, prompt_text: 'a ${V} b'}]\n"
    team = load(text, {"V": value}).team
    assert (team.vars, team.agents[0].prompt_text) == ({"x": value}, f"a {value} b")


def test_a_variable_that_is_no_text_is_an_error(load: Load) -> None:
    with pytest.raises(TeamFileError) as caught:
        load(TOP + "model: ${V}\nagents: [{handle: ana}]\n", {"V": "a\udcff"})
    assert caught.value.problems == (
        "team.yaml:3:8: model: the value of a variable in it is not UTF-8 text; mend the variable",
    )
