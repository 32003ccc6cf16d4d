"""Values that are secret stand in no story, no kept screen, no record of an end, whichever way they came in."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from nbs_fleet.drivers.sim import Sim
from nbs_fleet.launch.environment import MASK, read_secrets, read_values, write_values
from nbs_fleet.plan.addresses import addresses
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.spec.load import load_team
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.exits import read_end
from nbs_fleet.supervisor.prepare import prepare
from nbs_fleet.supervisor.story import Story
from tests.support.cli_world import agent, call, make_team

BY_NAME = "value-of-a-telling-name"
BY_FILE = "postgres://me:pw0123456789@host/db"
ODD = "bytes-\udcff-that-are-no-text"


@pytest.fixture
def paths(short_path: Path) -> RunPaths:
    environ = {**os.environ, "XDG_STATE_HOME": f"{short_path}/state", "XDG_RUNTIME_DIR": f"{short_path}/none"}
    made = make_team(short_path / "r", "crew", (agent("ana"),), environ)
    store.make_folders(made, "ana")
    env = {"MY_TOKEN": BY_NAME, "DB": BY_FILE, "ODD_KEY": ODD, "LOG": "debug-is-no-secret"}
    write_values(made.agent("ana").values, env, ("DB",))
    return made


def test_a_variable_of_an_env_file_is_secret_whatever_its_name(paths: RunPaths) -> None:
    values = paths.agent("ana").values
    assert set(read_secrets(values)) == {BY_NAME, BY_FILE, ODD}
    assert read_values(values)["DB"] == BY_FILE
    assert read_secrets(values + ".none") == ()


def test_a_kept_screen_holds_none(paths: RunPaths) -> None:
    store.keep_capture(paths, "ana", 1.0, (f"DB={BY_FILE}", f"token {BY_NAME}!", "debug-is-no-secret"))
    text = Path(paths.agent("ana").captures, "1.000.txt").read_text()
    assert text == f"DB={MASK}\ntoken {MASK}!\ndebug-is-no-secret\n"


def test_the_last_lines_of_a_client_that_ended_hold_none(paths: RunPaths) -> None:
    rows = store.masked(paths, "ana", (f"fatal: can't reach {BY_FILE}",))
    end = read_end(Sim(), None, rows, 1.0)
    assert end.lines == (f"fatal: can't reach {MASK}",)


def test_a_story_holds_none_and_takes_values_that_are_no_text(paths: RunPaths) -> None:
    story = store.story(paths, "ana")
    story.tell(1.0, "seen", text=f"a {BY_FILE} b", more=[BY_NAME], odd=ODD)
    text = Path(story.path).read_text()
    assert BY_FILE not in text
    assert BY_NAME not in text
    assert text.count(MASK) == 3


def test_a_story_masks_what_a_later_start_brings(tmp_path: Path) -> None:
    story = Story(str(tmp_path / "s"))
    story.hide(("first-secret",))
    story.tell(1.0, "x", text="first-secret")
    story.hide(("second-secret", "second-secret-and-more"))
    story.tell(1.0, "x", text="second-secret-and-more")
    assert "secret" not in (tmp_path / "s").read_text()


def test_a_story_of_all_masks_each_ones_values_as_they_come(tmp_path: Path) -> None:
    story = Story(str(tmp_path / "s"), mask=("anas-secret",))
    story.hide_too(("bos-secret", "bos-secret-and-more"))
    story.hide_too(("anas-secret",))
    story.tell(1.0, "x", text="anas-secret bos-secret-and-more bos-secret")
    text = (tmp_path / "s").read_text()
    assert "secret" not in text
    assert text.count(MASK) == 3
    assert "more" not in text


TEAM = """version: 1
team: crew
driver: sim
notifications: [{on: [attention], via: webhook, url: "https://hooks.example/${HOOK_TOKEN}"}]
agents:
- handle: ana
  env_file: secrets.env
  env: {MY_TOKEN: literal-of-the-file, AUTH: "Bearer ${HOOK_TOKEN}", LOG: debug}
"""
HOOK = "t0ken-of-the-webhook"


@pytest.fixture
def team(short_path: Path) -> Path:
    (short_path / ".git").mkdir()
    (short_path / "secrets.env").write_text(f"DB={BY_FILE}\n")
    (short_path / "secrets.env").chmod(0o600)
    (short_path / "team.yaml").write_text(TEAM)
    return short_path / "team.yaml"


def test_what_a_secret_variable_is_put_into_is_secret_too(team: Path) -> None:
    environ = {**os.environ, "HOOK_TOKEN": HOOK, "XDG_STATE_HOME": str(team.parent / "state")}
    found = prepare(str(team), environ, check_versions=False)
    assert set(found.hidden["ana"]) >= {"DB", "AUTH"}
    assert "LOG" not in found.hidden["ana"]


def test_a_plan_names_webhooks_and_values_and_holds_none(team: Path) -> None:
    team.write_text(
        f"{TEAM}  notifications: [{{on: [attention], via: webhook, url: 'https://own.example/${{HOOK_TOKEN}}'}}]\n"
    )
    environ = {**os.environ, "HOOK_TOKEN": HOOK, "XDG_STATE_HOME": str(team.parent / "state")}
    found = prepare(str(team), environ, check_versions=False)
    plan = msgspec.json.encode(found.plan).decode()
    for secret in (HOOK, BY_FILE, "literal-of-the-file", "https://"):
        assert secret not in plan
    known = addresses(found.team)
    assert sorted(known.values()) == [f"https://hooks.example/{HOOK}", f"https://own.example/{HOOK}"]
    assert {rule.url for rules in found.plan.rules().values() for rule in rules} == set(known)


@pytest.mark.parametrize("command", [("validate",), ("plan",), ("plan", "--json"), ("config",)])
def test_no_command_about_a_team_file_shows_one(
    team: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", HOOK)
    monkeypatch.setenv("XDG_STATE_HOME", str(team.parent / "state"))
    said = call(command[0], str(team), *command[1:])
    assert said.code == 0, said
    for secret in (HOOK, BY_FILE, "literal-of-the-file"):
        assert secret not in said.out + said.err


def test_no_error_about_a_team_file_shows_one(team: Path) -> None:
    # The address makes no sense, because of what the variable holds.
    team.write_text(TEAM.replace("https://hooks.example/${HOOK_TOKEN}", "${HOOK_TOKEN}"))
    with pytest.raises(Exception, match="url") as caught:
        load_team(str(team), {"HOOK_TOKEN": HOOK})
    assert HOOK not in str(caught.value)
