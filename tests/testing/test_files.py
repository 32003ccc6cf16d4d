"""Test files: what is taken, and where and how each fault is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbs_fleet.drivers.base import Capabilities
from nbs_fleet.errors import TeamFileError
from nbs_fleet.model import AgentState, BlockedKind
from nbs_fleet.spec.schema_limits import Blocked
from nbs_fleet.testing.load import Script, load_script
from nbs_fleet.testing.schema import Ability, State

HEAD = """\
version: 1
team: {version: 1, team: crew, driver: sim, chats: [live], agents: [{handle: ana}, {handle: bo, count: 2}]}
"""
GOOD = (
    HEAD
    + """\
name: ana is asked
timeout: 2m
overrides:
  driver: claudeless
  sidecar: {bus_check: 1s}
  agents: {bo: {scenario: bo.toml}}
given:
  - {path: notes/plan.md, text: "- write"}
steps:
  - chat: {to: live, from: tester, text: "@ana hi"}
  - expect: {messages: {chat: live, from: ana, matches: "do(ne|ing)"}}
    within: 30s
    as: answer
  - send: {to: bo-1, text: "%{answer}"}
  - kill: supervisor
  - freeze: ana
  - continue: ana
  - expect: {agent: {handle: bo-1, state: idle, restarts: 0}}
  - expect: {nothing: {for: 2s, agents: [bo-2]}}
cleanup:
  - continue: bo-1
"""
)


def load(text: str, folder: Path) -> Script:
    path = folder / "x.test.yaml"
    path.write_text(text, encoding="utf-8")
    return load_script(str(path), {}, known_drivers=("sim", "claudeless"))


def told(text: str, folder: Path) -> tuple[str, ...]:
    """All that is wrong with the file, or nothing."""
    try:
        load(text, folder)
    except TeamFileError as error:
        return error.problems
    return ()


def faults(text: str, folder: Path) -> list[str]:
    with pytest.raises(TeamFileError) as caught:
        load(text, folder)
    return [line.removeprefix(f"{folder}/") for line in caught.value.problems]


def test_a_whole_file_is_taken_as_it_is_written(tmp_path: Path) -> None:
    script = load(GOOD, tmp_path)
    assert script.name == "ana is asked"
    assert script.handles == ("ana", "bo-1", "bo-2")
    assert script.said.timeout == 120
    posted, expected = script.said.steps[0].chat, script.said.steps[1]
    assert posted is not None
    assert posted.sender == "tester"
    assert (expected.capture, expected.within) == ("answer", 30)
    assert script.said.steps[5].go_on == "ana"


def test_a_team_file_is_looked_for_beside_the_test_file(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "crew.yaml").write_text("version: 1\nteam: crew\ndriver: sim\nagents: [{handle: cy}]\n")
    script = load("version: 1\nteam: crew.yaml\nsteps: [{kill: cy}]\n", tmp_path)
    assert script.handles == ("cy",)
    assert script.name == "x"


PLACE = re.compile(r"\S*/x\.test\.yaml:[1-9]\d*:[1-9]\d*: \S")
WORDS = ("version", "team", "steps", "overrides", "agents", "given", "cleanup", "expect", "nothing", "kill", "as", "x")
STEPS = HEAD + "steps:\n  - "
WRONG = {
    HEAD: "x.test.yaml:1:1: steps: is missing; write steps: [",
    STEPS + "kil: ana\n": 'x.test.yaml:4:5: steps[0].kil: unknown key; did you mean "kill"?',
    STEPS + "name: nothing\n": "x.test.yaml:4:5: steps[0]: this step has none of chat, event, send,",
    STEPS + "kill: ana\n    stop: ana\n": "x.test.yaml:5:5: steps[0].stop: this step has kill already; keep one",
    STEPS + "kill: anna\n": 'x.test.yaml:4:11: steps[0].kill: "anna" is not in the team; did you mean "ana"?',
    STEPS + "pause: tmux\n": 'x.test.yaml:4:12: steps[0].pause: "tmux" is not in the team; there are ana, bo-1',
    STEPS + "pause: bo\n": 'x.test.yaml:4:12: steps[0].pause: "bo" is not in the team; did you mean',
    STEPS + "wait: {agent: ana, state: iddle}\n": "x.test.yaml:4:31: steps[0].wait.state: "
    '"iddle" is not known here; did you mean "idle"?',
    STEPS + "wait: {agent: ana, state: idle}\n    within: 5\n": "x.test.yaml:5:13: steps[0].within: ",
    STEPS + "expect: {}\n": "x.test.yaml:4:13: steps[0].expect: this expectation has none of agent, messages,",
    STEPS + 'expect: {screen: {agent: ana, matches: "("}}\n': "x.test.yaml:4:44: steps[0].expect.screen.matches: "
    '"(" is no regular expression',
    STEPS + 'expect: {file: {path: "../x"}}\n': 'x.test.yaml:4:27: steps[0].expect.file.path: "../x" is outside',
    STEPS + 'send: {to: ana, text: "%{it}"}\n': "x.test.yaml:4:27: steps[0].send.text: nothing is kept as "
    '"it" before this step; no step before keeps anything',
    STEPS + "kill: ana\n    as: it\n": "x.test.yaml:5:5: steps[0].as: only what an expectation sees can be kept",
    STEPS + "kill: ana\noverrides: {agents: {bob: {driver: sim}}}\n": "x.test.yaml:5:22: overrides.agents.bob: "
    '"bob" is not in the team',
    STEPS + "kill: ana\noverrides: {agents: {bo-1: {driver: sim}}}\n": "x.test.yaml:5:22: overrides.agents.bo-1: "
    '"bo-1" is one of several copies; write the handle that stands for all of them',
    STEPS
    + "answer: {agent: cy, choice: approve}\n": 'x.test.yaml:4:21: steps[0].answer.agent: "cy" is not in the team',
    STEPS + "kill: ana\nneeds: [flying]\n": 'x.test.yaml:5:9: needs[0]: "flying" is not known here',
    STEPS + "kill: ana\noverrides: {roles: {lead: {driver: sim}}}\n": "x.test.yaml:5:21: overrides.roles.lead: "
    '"lead" is not in the team; the team has no roles',
    STEPS + "kill: ana\noverrides: {driver: simm}\n": "x.test.yaml:5:21: overrides.driver: "
    'unknown driver "simm"; did you mean "sim"?',
    STEPS + "kill: ana\noverrides: {agents: {ana: {driver: simm}}}\n": "x.test.yaml:5:36: "
    'overrides.agents.ana.driver: unknown driver "simm"',
    STEPS + "kill: ana\ngiven: [{path: a}]\n": "x.test.yaml:5:9: given[0]: this given file has none of text, copy",
    "version: 1\nteam: {version: 1, team: x, agents: [{handle: a, colour: red}]}\nsteps: [{kill: a}]\n": (
        "x.test.yaml:2:50: team.agents[0].colour: unknown key"
    ),
    "version: 1\nteam: gone.yaml\nsteps: [{kill: a}]\n": "x.test.yaml:2:7: team: no such file: ",
    "version: 1\nteam: [a]\nsteps: [{kill: a}]\n": "x.test.yaml:2:7: team: must be the path of a team file, or a",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_fault_is_told_with_its_place_and_what_would_be_right(text: str, tmp_path: Path) -> None:
    said = faults(text, tmp_path)
    assert len(said) == 1
    assert said[0].startswith(WRONG[text])


def test_all_faults_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    said = faults(STEPS + "kil: ana\n  - freeze: bob\n  - expect: {}\n", tmp_path)
    assert [line.split(": ")[1] for line in said] == ["steps[0].kil", "steps[1].freeze", "steps[2].expect"]


def test_the_faults_of_a_named_team_file_are_told_at_their_own_place(tmp_path: Path) -> None:
    (tmp_path / "crew.yaml").write_text("version: 1\nteam: crew\nagents: [{handle: cy, colour: red}]\n")
    assert faults("version: 1\nteam: crew.yaml\nsteps: [{kill: cy}]\n", tmp_path)[0].startswith("crew.yaml:3:23: ")


def test_a_test_file_can_not_include_others(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("name: x\n")
    assert "include: a test file can't include others" in faults("include: [more.yaml]\n" + GOOD, tmp_path)[0]


def test_a_driver_that_is_overridden_need_not_be_installed(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "crew.yaml").write_text("version: 1\nteam: crew\ndriver: other\nagents: [{handle: cy}]\n")
    text = "version: 1\nteam: crew.yaml\nsteps: [{kill: cy}]\n"
    assert load(text + "overrides: {driver: sim}\n", tmp_path).handles == ("cy",)
    assert "other" in faults(text, tmp_path)[0]


VALUES = st.recursive(
    st.sampled_from([None, True, 3, "", "ana", "tmux", "%{x}", "%{", "idle"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=5))
def test_whatever_stands_at_a_key_is_taken_or_told_with_its_place(changes: dict[str, object], tmp_path: Path) -> None:
    text = yaml.safe_dump({**yaml.safe_load(GOOD), **changes})
    assert all(PLACE.match(line) for line in told(text, tmp_path))


def test_states_are_those_that_agents_have() -> None:
    assert set(get_args(State)) == {state.value for state in AgentState}
    assert set(get_args(Blocked)) == {kind.value for kind in BlockedKind}
    assert set(get_args(Ability)) == set(Capabilities.__struct_fields__)


def test_each_step_knows_its_line(tmp_path: Path) -> None:
    script = load(GOOD, tmp_path)
    assert [place.rpartition(":")[2] for place in script.steps_at[:4]] == ["12", "13", "16", "17"]
    assert script.cleanup_at == (f"{tmp_path}/x.test.yaml:23",)
