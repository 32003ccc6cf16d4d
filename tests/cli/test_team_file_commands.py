"""validate, plan, config, schema, init: nothing is started, and only init writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nbs_fleet.cli import init, plan
from nbs_fleet.plan.types import Plan, Snapshot, Step, Verb
from nbs_fleet.spec.load import load_team
from nbs_fleet.spec.schema_json import schema_text
from nbs_fleet.supervisor.prepare import Prepared
from tests.support.cli_world import call, make_team

GOOD = """\
version: 1
team: crew
driver: sim
chats: [live]
agents:
  - {handle: ana, env: {LOG: debug, MY_TOKEN: hunter2-hunter2}}
  - {handle: bo, count: 2, driver: claude}
"""
BAD = "version: 1\nteam: crew\ncolour: red\nagents:\n  - {handle: ana, role: none}\n"


@pytest.fixture
def good(here: Path) -> Path:
    (here / ".git").mkdir()
    path = here / "team.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return path


def everything(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_a_good_file_is_ok_with_its_counts(good: Path, tmp_path: Path) -> None:
    before = everything(tmp_path)
    said = call("validate", "team.yaml")
    assert (said.code, said.out, said.err) == (0, "ok: crew: 3 agents (sim 1, claude 2), 1 chat\n", "")
    assert everything(tmp_path) == before


def test_a_good_file_in_json(good: Path) -> None:
    found = json.loads(call("validate", "team.yaml", "--json").out)
    assert (found["ok"], found["team"], found["problems"]) == (True, "crew", [])
    assert found["agents"] == ["ana", "bo-1", "bo-2"]


def test_all_problems_of_a_bad_file_are_listed_and_the_code_is_2(here: Path) -> None:
    (here / "team.yaml").write_text(BAD, encoding="utf-8")
    said = call("validate", "team.yaml")
    assert said.code == 2
    assert "team.yaml:3:1: colour: " in said.err
    assert "team.yaml:5:25: agents[0].role: " in said.err
    found = json.loads((answer := call("validate", "team.yaml", "--json")).out)
    assert (answer.code, answer.err, found["ok"], len(found["problems"])) == (2, "", False, 2)


def test_a_prompt_that_can_not_be_rendered_is_a_problem(here: Path) -> None:
    text = "version: 1\nteam: crew\ndriver: sim\nagents:\n  - {handle: ana, prompt_text: '{{ nobody }}'}\n"
    (here / "team.yaml").write_text(text, encoding="utf-8")
    said = call("validate", "team.yaml")
    assert said.code == 2
    assert "nobody" in said.err


def test_config_shows_each_value_with_its_origin_and_no_secret(good: Path) -> None:
    said = call("config", "team.yaml")
    assert said.code == 0
    assert "  bo-2:\n    driver: claude " in said.out
    assert "# team.yaml:7" in said.out
    assert "hunter2" not in said.out
    found = json.loads(call("config", "team.yaml", "--json").out)
    assert {"key": "agents.ana.env.LOG", "value": "debug", "origin": "team.yaml:6"} in found["values"]


def test_schema_prints_the_schema_as_it_is() -> None:
    assert call("schema").out == schema_text()


def prepared(good: Path, *steps: Step) -> Prepared:
    paths = make_team(good.parent, "crew", ())
    team = load_team(str(good), {}).team
    agents = Plan("crew", str(good), team.root, "", paths, team.layout, ())
    return Prepared(team, agents, Snapshot(server_alive=False), steps, {}, {}, ("careful",))


def test_a_plan_is_one_line_per_step_with_its_reasons(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = (
        Step("ana", Verb.KEEP),
        Step("bo-1", Verb.RESTART, ("model changed", "prompt changed"), when_idle=True, fresh=True),
        Step("old", Verb.STOP, ("left the team file",)),
    )
    plan.show(prepared(good, *steps), json=False)
    done = capsys.readouterr()
    assert done.err == "warning: careful\n"
    assert done.out.splitlines()[1:] == [
        "  ana       keep",
        "  bo-1      restart  model changed, prompt changed, when next idle, fresh session",
        "  old       stop     left the team file",
        "nothing was done; nbs-fleet up team.yaml does it",
    ]
    plan.show(prepared(good, *steps), json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["steps"][2] == {
        "handle": "old",
        "verb": "stop",
        "reasons": ["left the team file"],
        "when_idle": False,
        "fresh": False,
    }


def test_a_plan_without_work_says_so(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan.show(prepared(good, Step("ana", Verb.KEEP)), json=False)
    assert capsys.readouterr().out.endswith("nothing to do\n")


@pytest.mark.parametrize("template", init.templates())
@pytest.mark.parametrize("file", ["team.yaml", "teams/mine.yaml"])
def test_each_template_is_valid_where_init_writes_it(template: str, file: str, here: Path) -> None:
    (here / ".git").mkdir()
    assert call("init", file, "--template", template).code == 0
    said = call("validate", file, "--json")
    found = json.loads(said.out)
    assert (said.code, found["problems"], found["root"]) == (0, [], str(here.resolve()))
    text = (here / file).read_text(encoding="utf-8")
    assert f"teams/{template}.yaml" not in text
    for scenario in re.findall(r"--scenario, ([^\]]+)\]", text):
        assert (here / scenario).is_file()


def test_init_keeps_what_is_there_unless_forced(here: Path) -> None:
    (here / "team.yaml").write_text("mine", encoding="utf-8")
    said = call("init", "--template", "pair")
    assert said.code == 1
    assert "already there: team.yaml" in said.err
    assert (here / "team.yaml").read_text(encoding="utf-8") == "mine"
    assert call("init", "--template", "pair", "--force").code == 0
    assert "team: pair" in (here / "team.yaml").read_text(encoding="utf-8")


def test_init_again_with_the_same_template_changes_nothing_and_says_nothing_wrong(here: Path) -> None:
    assert call("init").code == 0
    assert call("init").code == 0


def test_an_unknown_template_gets_the_nearest() -> None:
    said = call("init", "--template", "reviw")
    assert said.code == 4
    assert 'no template "reviw"; did you mean "review"?' in said.err


def test_the_templates_are_listed_with_their_purpose(here: Path) -> None:
    said = call("init", "--list")
    assert said.out.splitlines()[0].startswith("demo ")
    assert not list(here.iterdir())


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_what_a_driver_has_against_an_agent_is_refused_with_its_place(here: Path, command: str) -> None:
    (here / "team.yaml").write_text("version: 1\nteam: crew\nagents:\n  - handle: ana\n    driver: opencode\n")
    said = call(command, "team.yaml")
    assert said.code == 2
    assert "team.yaml:5: agents.ana: opencode needs a model" in said.err
