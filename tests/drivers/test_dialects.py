from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers.base import PROMPT, Driver, Launch
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.claudeless import FLAGS, Claudeless, known_args
from nbs_fleet.drivers.sim import Sim
from tests.drivers.support import SESSION, make_facts

CLIENT = "/state/review/agents/bo-1/client"


def claudeless(**given: Any) -> Launch:
    return Claudeless().launch(make_facts(driver="claudeless", **given))


def test_claudeless_gets_no_name_and_its_own_spelling_of_modes() -> None:
    argv = claudeless(permission_mode="acceptEdits", model="opus", has_prompt=True).argv
    assert argv == (
        *("claudeless", "--session-id", SESSION, "--settings", "/state/review/agents/bo-1/settings.json"),
        *("--model", "opus", "--permission-mode", "accept-edits", "--", PROMPT),
    )


def test_claudeless_resumes_by_its_own_flag() -> None:
    assert claudeless(resume=True).argv[:3] == ("claudeless", "--resume", SESSION)


def test_flags_that_claudeless_does_not_know_are_left_out_and_named() -> None:
    args = ("--scenario", "/s.toml", "--effort", "high", "--verbose", "--max-turns=3")
    launch = claudeless(args=args, permission_mode="auto")
    assert launch.argv[-3:] == ("--scenario", "/s.toml", "--verbose")
    assert launch.dropped == ("--permission-mode auto", "--effort", "high", "--max-turns=3")


@pytest.mark.parametrize("driver", [Claude(), Claudeless(), Sim()], ids=lambda d: d.name)
def test_no_argument_of_an_agent_takes_the_place_of_our_settings(driver: Driver) -> None:
    launch = driver.launch(make_facts(args=("--settings", "/mine.json", "--verbose", "--settings={}")))
    assert launch.dropped == ("--settings /mine.json", "--settings={}")
    own = launch.argv.index("--settings")
    assert launch.argv[own + 1] == "/state/review/agents/bo-1/settings.json"
    assert launch.argv[own + 2 :].count("--settings") == 0
    assert launch.argv[-1] == "--verbose"


def test_words_after_the_end_of_flags_are_text_and_no_settings() -> None:
    args = ("--verbose", "--", "--settings", "as text")
    launch = Claude().launch(make_facts(args=args, has_prompt=True))
    assert (launch.argv[-5:], launch.dropped) == ((*args, PROMPT), ())


@given(st.lists(st.sampled_from([*sorted(FLAGS)[:5], "--effort", "--worktree", "value", "a b"]), max_size=8))
def test_no_argument_is_lost_and_no_unknown_flag_is_passed(args: list[str]) -> None:
    known, unknown = known_args(tuple(args))
    assert sorted((*known, *unknown)) == sorted(args)
    assert all(word in FLAGS for word in known if word.startswith("-"))


def test_claudeless_always_has_a_configuration_folder_of_its_own() -> None:
    launch = claudeless(environ={"CLAUDE_CONFIG_DIR": "/home/ana/.claude"})
    assert launch.env == {"CLAUDELESS_CONFIG_DIR": CLIENT, "CLAUDE_CONFIG_DIR": CLIENT}
    places = Claudeless().places(make_facts(environ={"CLAUDE_CONFIG_DIR": "/home/ana/.claude"}))
    assert places.state_dir is None
    assert places.transcript == f"{CLIENT}/projects/-srv-project/{SESSION}.jsonl"


def test_a_folder_named_by_the_team_file_wins_over_any_inherited_one() -> None:
    facts = make_facts(env={"CLAUDE_CONFIG_DIR": "/cfg"}, environ={"CLAUDELESS_CONFIG_DIR": "/other"})
    launch = Claudeless().launch(facts)
    assert launch.env == {}
    assert "CLAUDELESS_CONFIG_DIR" in launch.unset
    assert (Claudeless().places(facts).transcript or "").startswith("/cfg/projects/")


def test_claudeless_names_project_folders_in_its_own_way() -> None:
    places = Claudeless().places(make_facts(real_dir="/srv/my_project.v2"))
    assert places.transcript == f"{CLIENT}/projects/-srv-my_project-v2/{SESSION}.jsonl"


@pytest.mark.parametrize(("output", "expected"), [("claudeless 0.2.2\n", "0.2.2"), ("2.1.197 (Claude Code)", None)])
def test_the_version_of_claudeless_is_read(output: str, expected: str | None) -> None:
    assert Claudeless().parse_version(output) == expected


def test_the_simulator_starts_as_claude_code_does_with_another_program() -> None:
    given: dict[str, Any] = {"has_prompt": True, "model": "opus", "permission_mode": "plan"}
    sim, claude = Sim().launch(make_facts(driver="sim", **given)), Claude().launch(make_facts(**given))
    assert sim.argv == ("nbs-fleet", "sim", *claude.argv[1:])


def test_the_simulator_never_touches_a_persons_own_configuration() -> None:
    facts = make_facts(driver="sim", environ={"CLAUDE_CONFIG_DIR": "/home/ana/.claude"})
    assert Sim().launch(facts).env["CLAUDE_CONFIG_DIR"] == CLIENT
    assert Sim().places(facts).state_dir == f"{CLIENT}/sessions"


def test_the_simulator_keeps_a_configuration_folder_of_the_team_file() -> None:
    facts = make_facts(driver="sim", env={"CLAUDE_CONFIG_DIR": "/cfg"})
    assert "CLAUDE_CONFIG_DIR" not in Sim().launch(facts).env
    assert Sim().places(facts).state_dir == "/cfg/sessions"


def test_the_version_of_the_simulator_is_ours() -> None:
    assert Sim().parse_version("nbs-fleet 0.1.0\n") == "0.1.0"
    assert Sim().parse_version("something") is None
