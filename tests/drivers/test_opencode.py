"""The opencode driver: how a start looks, what its plugin is given, what that writes down."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from nbs_fleet.drivers import opencode_plugin
from nbs_fleet.drivers.base import PROMPT, Facts
from nbs_fleet.drivers.opencode import CONFIG, Opencode
from nbs_fleet.drivers.recipes import MailFolder
from nbs_fleet.model import AgentState
from nbs_fleet.spec.team import Dialogs
from tests.drivers.support import SESSION, make_facts

FOLDER = "/state/review/agents/bo-1"
PLUGIN = f"{FOLDER}/plugin/nbs-fleet.js"
LINES = (
    {"type": "user", "text": "[nbs:d-1-a] hello"},
    {"type": "context", "text": "[nbs:d-2-a] from a hook"},
    {"type": "assistant", "text": "[nbs:d-3-a] my own words"},
    {"type": "user", "text": "go on"},
)
TEXT = "".join(json.dumps(line) + "\n" for line in LINES)


def facts(**given: Any) -> Facts:
    """Facts of one start."""
    return make_facts(driver="opencode", **{"model": "x/y", **given})


def config(**given: Any) -> dict[str, Any]:
    """The configuration of one start."""
    found: dict[str, Any] = json.loads(Opencode().launch(facts(**given)).env[CONFIG])
    return found


def given(**fields: Any) -> dict[str, Any]:
    """What the plugin of one start is given."""
    text = Opencode().launch(facts(**fields)).files[PLUGIN]
    found, _ = json.JSONDecoder().raw_decode(text.partition("const given = ")[2])
    return dict(found)


def test_a_fresh_start_leaves_the_session_to_the_client_and_opens_no_port() -> None:
    launch = Opencode().launch(facts(has_prompt=True, permission_mode="bypassPermissions"))
    assert launch.argv == ("opencode", "-m", "x/y", "--auto", "--prompt", PROMPT)
    assert config(permission_mode="bypassPermissions")["permission"] == "allow"
    assert "permission" not in config()


def test_a_resumed_start_names_the_session_and_tells_the_plugin() -> None:
    assert Opencode().launch(facts(resume=True)).argv[:3] == ("opencode", "-s", SESSION)
    assert given(resume=True)["session"] == SESSION
    assert given()["session"] is None


@pytest.mark.parametrize(
    ("fields", "objects"),
    [
        ({}, True),
        ({"model": "x/y"}, False),
        ({"settings": {"model": "x/y"}}, False),
        ({"args": ("--model", "x/y")}, False),
        ({"args": ("--verbose",)}, True),
    ],
)
def test_it_is_not_started_without_a_model(fields: dict[str, Any], *, objects: bool) -> None:
    agent = make_facts(driver="opencode", **fields).agent
    assert bool(Opencode().objections(agent)) == objects


def test_settings_of_the_team_file_stand_above_those_of_the_environment_and_ours_below() -> None:
    environ = {CONFIG: json.dumps({"theme": "theirs", "plugin": ["their-plugin"], "username": "bo"})}
    found = config(environ=environ, settings={"theme": "ours", "share": "auto"})
    assert found == {
        "autoupdate": False,
        "share": "auto",
        "theme": "ours",
        "username": "bo",
        "plugin": ["their-plugin", f"file://{PLUGIN}"],
    }


def test_a_configuration_that_is_none_is_left_out_and_named() -> None:
    launch = Opencode().launch(facts(environ={CONFIG: "{// comment\n}"}))
    assert launch.dropped == (CONFIG,)
    assert json.loads(launch.env[CONFIG])["autoupdate"] is False


def test_the_plugin_knows_its_agents_folders_and_what_it_must_refuse() -> None:
    found = given(dialogs=Dialogs(question="deny"))
    assert found["hook"] == "/state/review/bin/nbs-hook"
    assert found["mail"] == f"{FOLDER}/mail"
    assert found["sessions"] == f"{FOLDER}/sessions"
    assert found["refuses"] == ["question"]
    assert given()["refuses"] == []


def test_no_text_can_leave_its_place_in_the_plugin() -> None:
    hostile = 'a"; process.exit(1) //\n\u2028`${x}`'
    text = opencode_plugin.text(opencode_plugin.Given("/h", "/m", "/s", hostile))
    found, _ = json.JSONDecoder().raw_decode(text.partition("const given = ")[2])
    assert found["briefing"] == hostile
    assert "\u2028" not in text


def test_what_the_plugin_writes_down_tells_turns_and_proves_what_reached_the_model() -> None:
    turns = Opencode().read_transcript(TEXT, TEXT)
    assert (turns.prompts, turns.finished, turns.last_text) == (2, 1, "[nbs:d-3-a] my own words")
    assert turns.reading.state is AgentState.BUSY
    assert Opencode().proofs(TEXT) == ("d-1-a", "d-2-a")


def test_its_inbox_is_its_mail() -> None:
    assert Opencode().inbox(facts(), None) == MailFolder()


def test_its_skills_stand_beside_those_of_a_persons_own_configuration() -> None:
    theirs = {"skills": {"paths": ["/own"], "urls": ["u"]}, "plugin": ["p"]}
    known = replace(make_facts(driver="opencode", settings=theirs), skills=("nbs-poll",))
    given = json.loads(Opencode().variables(known)[CONFIG])
    assert given["skills"] == {"paths": ["/own", f"{known.agent_dir}/skills"], "urls": ["u"]}
    assert given["plugin"][0] == "p"
    assert "skills" not in json.loads(Opencode().variables(make_facts(driver="opencode"))[CONFIG])
