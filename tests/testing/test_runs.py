"""What is decided around a run of tests: its environment, its team file, which tests, reports and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from nbs_fleet.spec.team import Agent
from nbs_fleet.testing import report
from nbs_fleet.testing.choose import choice
from nbs_fleet.testing.outcome import Kind, Outcome, Trouble, exit_code
from nbs_fleet.testing.schema import OverridesFile
from nbs_fleet.testing.surroundings import Folders, environment, first_files, without_credentials
from nbs_fleet.testing.teamfile import Stand, inline_text, overlay_text, stand_in

ANA = Agent("ana", "ana", "reviewer", "claude", "/r", args=("--verbose",), command=("my-claude",))
OVERRIDES = OverridesFile.model_validate(
    {
        "driver": "sim",
        "scenario": "all.toml",
        "roles": {"reviewer": {"scenario": "role.toml"}},
        "agents": {"bo": {"driver": "claude", "command": "own"}},
    }
)


def test_nothing_of_a_person_gets_into_a_world() -> None:
    caller = {
        "HOME": "/home/me",
        "PATH": "/bin",
        "TMUX": "x",
        "NBS_HANDLE": "me",
        "NBS_FLEET_RUN": "/run",
        "CLAUDE_CONFIG_DIR": "/home/me/.claude",
        "XDG_CONFIG_HOME": "/home/me/.config",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
    }
    env = environment(caller, Folders("/tmp/nf-1"))
    assert not [value for value in env.values() if "/home/me" in value]
    assert not {"TMUX", "NBS_HANDLE", "NBS_FLEET_RUN"} & set(env)
    assert env["HOME"] == "/tmp/nf-1/home"
    assert env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert env["PATH"] == "/bin"


def test_the_real_client_is_past_its_first_questions_and_must_have_an_account() -> None:
    folders = Folders("/tmp/nf-1")
    env = {"ANTHROPIC_API_KEY": "k" * 40}
    (text,) = first_files(["claude"], ["/tmp/nf-1/project"], env, folders).values()
    seen = json.loads(text)
    assert seen["hasCompletedOnboarding"] is True
    assert list(seen["projects"]) == ["/tmp/nf-1/project"]
    assert env["ANTHROPIC_API_KEY"] not in text
    assert first_files(["sim"], ["/x"], env, folders) == {}
    assert without_credentials(["claude"], env) is None
    assert "ANTHROPIC_API_KEY" in (without_credentials(["claude"], {}) or "")
    assert without_credentials(["sim"], {}) is None


def test_the_nearest_override_wins_and_the_command_line_over_all() -> None:
    bo = Agent("bo-1", "bo", None, "claude", "/r")
    assert stand_in(ANA, OVERRIDES, driver=None, folder="/t") == Stand("sim", None, "/t/role.toml")
    assert stand_in(bo, OVERRIDES, driver=None, folder="/t") == Stand("claude", ("own",), "/t/all.toml")
    assert stand_in(bo, OVERRIDES, driver="claudeless", folder="/t") == Stand("claudeless", None, "/t/all.toml")


def test_a_client_s_own_arguments_go_with_it() -> None:
    def entry(stand: Stand) -> dict[str, object]:
        text = overlay_text(
            "/t/a$b.yaml", "/w", [ANA], {"ana": stand}, sidecar={"poll": "1s"}, programs={"sim": ("nbs-fleet", "sim")}
        )
        assert "/t/a$$b.yaml" in text
        found = json.loads(text)["agents"]
        assert len(found) == 1
        return dict(found[0])

    other = entry(Stand("sim", None, "/t/x.toml"))
    assert other["args"] == ["--scenario", "/t/x.toml"]
    assert other["command"] == ["nbs-fleet", "sim"]
    assert other["sidecar"] == {"poll": "1s"}
    same = entry(Stand("claude", None, "/t/x.toml"))
    assert "args" not in same
    assert "command" not in same


def test_an_inline_team_finds_what_lies_beside_the_test_file(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("x")
    team = {"root": "..", "agents": [{"handle": "ana", "prompt": "p.md"}, {"handle": "bo", "prompt": "worker.md.j2"}]}
    found = json.loads(inline_text(team, str(tmp_path)))
    assert "root" not in found
    assert [agent["prompt"] for agent in found["agents"]] == [f"{tmp_path}/p.md", "worker.md.j2"]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("crash", {"a crash", "Crash of tmux"}),
        ("crash and not tmux", {"a crash"}),
        ("start or tmux", {"start", "Crash of tmux"}),
        ("not (crash or start)", set()),
    ],
)
def test_an_expression_chooses_by_words_of_the_name(expression: str, names: set[str]) -> None:
    meant = choice(expression)
    assert {name for name in ("a crash", "Crash of tmux", "start") if meant(name)} == names


@pytest.mark.parametrize("expression", ["", "a and", "(a", "a b", "or", ")"])
def test_an_expression_that_is_none_is_told(expression: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        choice(expression)


def outcome(kind: Kind, name: str = "t", run: int = 1) -> Outcome:
    troubles = (Trouble("ana is \x1b idle", "t:3", "w", ("saw",)),) if kind is Kind.FAILED else ()
    return Outcome(name, "t.test.yaml", kind, 1.0, run, troubles=troubles, reason="no" if kind is Kind.SKIPPED else "")


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ((Kind.PASSED, Kind.SKIPPED), 0),
        ((Kind.PASSED, Kind.FAILED, Kind.TIMED_OUT), 1),
        ((Kind.FAILED, Kind.FILE), 2),
        ((Kind.FAILED, Kind.ENVIRONMENT), 3),
        ((Kind.PASSED, Kind.TIMED_OUT), 124),
        ((Kind.INTERRUPTED, Kind.FAILED), 130),
        ((), 0),
    ],
)
def test_the_worst_that_happened_is_the_exit_code(kinds: tuple[Kind, ...], code: int) -> None:
    assert exit_code(tuple(outcome(kind) for kind in kinds)) == code


def test_a_junit_file_has_a_case_for_each_run() -> None:
    every = (
        outcome(Kind.PASSED),
        outcome(Kind.FAILED, run=2),
        outcome(Kind.SKIPPED, "s"),
        outcome(Kind.TIMED_OUT, "l"),
    )
    suite = ET.fromstring(report.junit(every, 4.0)).find("testsuite")
    assert suite is not None
    assert [suite.get(k) for k in ("tests", "failures", "errors", "skipped")] == ["4", "2", "0", "1"]
    assert [case.get("name") for case in suite] == ["t", "t [2]", "s", "l"]
    failure = suite[1][0]
    assert failure.tag == "failure"
    assert "t:3" in (failure.text or "")
    assert "seen:     saw" in (failure.text or "")


def test_the_rate_counts_what_was_played() -> None:
    every = [outcome(Kind.PASSED), outcome(Kind.FAILED), outcome(Kind.SKIPPED, "s")]
    assert report.rates(every) == [("t", 1, 2)]
