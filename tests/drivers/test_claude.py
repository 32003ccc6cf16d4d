from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers.base import PROMPT
from nbs_fleet.drivers.claude import SESSION_MARKS, Claude
from nbs_fleet.drivers.claude_places import slug
from nbs_fleet.drivers.claude_settings import QUIET, merge
from nbs_fleet.model import AgentState, BlockedKind
from nbs_fleet.spec.team import Dialogs
from tests.drivers.support import SESSION, make_facts

STATE = {
    "pid": 4242,
    "sessionId": SESSION,
    "cwd": "/srv/project",
    "startedAt": 1795820882046,
    "procStart": "87471",
    "version": "2.1.197",
    "kind": "interactive",
    "name": "bo-1",
    "status": "idle",
    "updatedAt": 1795820882000,
    "statusUpdatedAt": 1795820882281,
}


def argv(**given: Any) -> tuple[str, ...]:
    return Claude().launch(make_facts(**given)).argv


def pairs(words: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(words[1::2], words[2::2], strict=False))


def test_a_fresh_start_names_its_session() -> None:
    flags = pairs(argv())
    assert flags["--session-id"] == SESSION
    assert "--resume" not in flags


def test_a_later_start_resumes_and_does_not_name_the_session_again() -> None:
    flags = pairs(argv(resume=True))
    assert flags["--resume"] == SESSION
    assert "--session-id" not in flags


def test_the_flags_carry_what_the_team_file_says() -> None:
    words = argv(model="opus", permission_mode="bypassPermissions", args=("--add-dir", "/data"))
    flags = pairs(words)
    assert words[0] == "claude"
    assert flags["--settings"] == "/state/review/agents/bo-1/settings.json"
    assert (flags["--name"], flags["--model"], flags["--permission-mode"]) == ("bo-1", "opus", "bypassPermissions")
    assert words[-2:] == ("--add-dir", "/data")


def test_the_prompt_stands_last_behind_two_dashes() -> None:
    assert argv(has_prompt=True, args=("--verbose",))[-3:] == ("--verbose", "--", PROMPT)


def test_a_resumed_session_takes_a_message_as_its_prompt() -> None:
    assert argv(resume=True, has_prompt=True)[-2:] == ("--", PROMPT)


def test_without_a_prompt_there_are_no_dashes() -> None:
    assert "--" not in argv(resume=True)


def test_two_dashes_of_the_team_file_are_not_doubled() -> None:
    assert argv(has_prompt=True, args=("--",))[-2:] == ("--", PROMPT)


def test_a_command_of_the_team_file_takes_the_place_of_the_program() -> None:
    assert argv(command=("nice", "claude"))[:2] == ("nice", "claude")


def test_marks_of_another_session_are_dropped_and_updates_are_off() -> None:
    launch = Claude().launch(make_facts())
    assert launch.env == {"DISABLE_AUTOUPDATER": "1"}
    assert launch.unset == SESSION_MARKS
    assert "CLAUDE_CODE_CHILD_SESSION" in launch.unset


def test_trust_is_given_by_a_variable_only_where_the_policy_accepts_it() -> None:
    launch = Claude().launch(make_facts(dialogs=Dialogs(trust="accept")))
    assert launch.env["CLAUDE_CODE_SANDBOXED"] == "1"


def test_variables_of_the_team_file_are_neither_set_nor_dropped_by_us() -> None:
    env = {"DISABLE_AUTOUPDATER": "0", "CLAUDECODE": "1", "CLAUDE_CODE_SANDBOXED": "0"}
    launch = Claude().launch(make_facts(env=env, dialogs=Dialogs(trust="accept")))
    assert launch.env == {}
    assert "CLAUDECODE" not in launch.unset


def test_the_sandbox_sign_is_never_ours_to_set() -> None:
    launch = Claude().launch(make_facts(permission_mode="bypassPermissions", dialogs=Dialogs(bypass="accept")))
    assert "IS_SANDBOX" not in launch.env


def test_settings_are_quiet_and_hold_the_permissions_as_they_are() -> None:
    rules = {"allow": ["Bash(git log:*)"], "deny": ["WebFetch"]}
    settings = Claude().settings(make_facts(permissions=rules))
    assert {key: settings[key] for key in QUIET} == QUIET
    assert settings["permissions"] == rules
    assert "skipDangerousModePermissionPrompt" not in settings


def test_settings_accept_bypass_where_the_policy_does() -> None:
    assert Claude().settings(make_facts(dialogs=Dialogs(bypass="accept")))["skipDangerousModePermissionPrompt"] is True


def test_settings_of_the_team_file_win_key_by_key() -> None:
    own = {"editorMode": "vim", "permissions": {"defaultMode": "plan"}}
    settings = Claude().settings(make_facts(settings=own, permissions={"allow": ["Read"]}))
    assert settings["editorMode"] == "vim"
    assert settings["permissions"] == {"allow": ["Read"], "defaultMode": "plan"}
    assert settings["disableAgentView"] is True


JSON = st.recursive(st.integers() | st.text(max_size=5), lambda c: st.dictionaries(st.text(max_size=3), c, max_size=3))
TREES = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


@given(TREES, TREES)
def test_merging_keeps_all_of_the_upper_tree_and_changes_neither(base: dict[str, Any], over: dict[str, Any]) -> None:
    before = json.dumps([base, over])
    merged = merge(base, over)
    assert merge(merged, over) == merged
    assert set(merged) == {*base, *over}
    assert json.dumps([base, over]) == before


def test_the_files_of_a_client_lie_in_the_home_of_its_agent() -> None:
    places = Claude().places(make_facts())
    assert places.state_dir == "/home/ana/.claude/sessions"
    assert places.transcript == f"/home/ana/.claude/projects/-srv-project/{SESSION}.jsonl"


def test_a_configuration_folder_of_the_environment_counts() -> None:
    assert Claude().places(make_facts(environ={"CLAUDE_CONFIG_DIR": "/cfg"})).state_dir == "/cfg/sessions"
    assert Claude().places(make_facts(environ={"CLAUDE_CONFIG_DIR": "cfg"})).state_dir == "/srv/project/cfg/sessions"


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/srv/my_project.v2", "-srv-my-project-v2"),
        ("/home/me/pr oj/ünï€😀", "-home-me-pr-oj--n----"),
        ("/tmp/example/L" + "q" * 186, "-tmp-example-L" + "q" * 186),
        ("/tmp/example/L" + "q" * 187, "-tmp-example-L" + "q" * 186 + "-s182fj"),
    ],
)
def test_the_folder_of_a_project_is_named_as_the_client_does(folder: str, expected: str) -> None:
    assert slug(folder) == expected


@given(st.text(min_size=1, max_size=400))
def test_a_project_folder_is_a_plain_short_file_name(path: str) -> None:
    name = slug(path)
    assert name.isascii()
    assert len(name) <= 200 + 1 + 6
    assert all(c.isalnum() or c == "-" for c in name)


@pytest.mark.parametrize(
    ("status", "waiting", "state", "kind"),
    [
        ("idle", None, AgentState.IDLE, None),
        ("shell", None, AgentState.IDLE, None),
        ("busy", None, AgentState.BUSY, None),
        ("waiting", "permission prompt", AgentState.BLOCKED, None),
        ("waiting", "dialog open", AgentState.BLOCKED, None),
        ("waiting", "sandbox request", AgentState.BLOCKED, BlockedKind.PERMISSION),
        ("waiting", None, AgentState.BLOCKED, None),
        ("dreaming", None, AgentState.UNKNOWN, None),
        (None, None, AgentState.UNKNOWN, None),
    ],
)
def test_the_state_file_is_read(
    status: str | None, waiting: str | None, state: AgentState, kind: BlockedKind | None
) -> None:
    found = Claude().read_state_file(json.dumps({**STATE, "status": status, "waitingFor": waiting}))
    assert found is not None
    assert (found.pid, found.start, found.session_id, found.at) == (4242, 87471, SESSION, 1795820882.281)
    assert (found.reading.state, found.reading.blocked) == (state, kind)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": "7"}', '{"pid": true}', json.dumps(STATE)[:-9]])
def test_half_a_state_file_is_none(text: str) -> None:
    assert Claude().read_state_file(text) is None


@given(st.dictionaries(st.sampled_from(sorted(STATE)), JSON | st.none() | st.booleans()))
def test_no_state_file_makes_the_reader_fail(data: dict[str, Any]) -> None:
    Claude().read_state_file(json.dumps({**STATE, **data}))


@pytest.mark.parametrize(
    ("title", "state", "name"),
    [
        ("⠐ bo-1", AgentState.BUSY, "bo-1"),
        ("⠂ Fix the build", AgentState.BUSY, "Fix the build"),
        ("✳ bo-1", AgentState.UNKNOWN, "bo-1"),
        ("✳ Claude Code", AgentState.UNKNOWN, "Claude Code"),
        ("host", AgentState.UNKNOWN, None),
        ("", AgentState.UNKNOWN, None),
    ],
)
def test_the_title_tells_a_turn_but_never_that_nothing_waits(title: str, state: AgentState, name: str | None) -> None:
    reading = Claude().read_title(title)
    assert (reading.state, reading.title) == (state, name)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("2.1.197 (Claude Code)\n", "2.1.197"),
        ("warning: x\n2.2.0-beta.1 (Claude Code)\n", "2.2.0-beta.1"),
        ("claudeless 0.2.2", None),
        ("", None),
    ],
)
def test_the_version_is_read(output: str, expected: str | None) -> None:
    assert Claude().parse_version(output) == expected
