"""why, peek, ls: what they show of a team on disk, without a supervisor and without tmux."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from nbs_fleet.launch.processes import identify, moment
from nbs_fleet.model import AgentState, Evidence, Exit, ExitKind, Source
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.supervisor import status as status_module
from nbs_fleet.supervisor.protocol import Answer
from nbs_fleet.supervisor.status import SupervisorStatus
from tests.support.cli_world import agent, call, make_team, write_record

NOON = 1_700_049_600.0


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return make_team(tmp_path / "root", "review", (agent("ana"), agent("bo-2", base="bo")))


@pytest.fixture
def _supervised(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a supervisor answered."""
    answer = (SupervisorStatus("running", 4121, NOON), Answer(pid=4121, since=NOON))
    monkeypatch.setattr(status_module, "supervisor_status", lambda _: answer)


@pytest.mark.usefixtures("_supervised")
def test_why_shows_state_and_evidence_strongest_first(paths: RunPaths) -> None:
    now = moment()
    write_record(
        paths,
        "bo-2",
        state=AgentState.BLOCKED,
        blocked="permission",
        since=time.time() - 192.5,
        evidence=(
            Evidence(Source.STATE_FILE, "waiting: permission prompt", NOON + 0.113),
            Evidence(Source.HOOK, "PermissionRequest Bash", NOON + 0.087, "rm -r build\x1b[31m"),
            Evidence(Source.TITLE, "✳ bo-2", 0.0, "(says nothing about dialogs)"),
        ),
        starts=(now.mono - 700, now.mono - 5),
        boot=now.boot,
        pending="model changed",
        last_exit=Exit(ExitKind.CRASH, NOON, code=7, lines=("one", "two")),
    )
    assert call("why", "bo").out.splitlines() == [
        "blocked: permission, for 3m 12s",
        "  state file  waiting: permission prompt  12:00:00.113",
        "  hook        PermissionRequest Bash      12:00:00.087  rm -r build^[[31m",
        "  title       ✳ bo-2                                    (says nothing about dialogs)",
        "  policy      permission: ask",
        "  pending     restarts when next idle: model changed",
        "  last exit   crash (exit 7)              12:00:00.000",
        "  restarts    1 of 5 starts within 10m used",
        "    one",
        "    two",
    ]


@pytest.mark.usefixtures("_supervised")
def test_why_in_json_has_everything(paths: RunPaths) -> None:
    write_record(paths, "ana", state=AgentState.IDLE, since=NOON, evidence=(Evidence(Source.HOOK, "Stop", NOON),))
    found = json.loads(call("why", "ana", "--json").out)
    assert found["schema"] == 1
    assert (found["state"], found["since"], found["declared"]) == ("idle", "2023-11-15T12:00:00.000Z", True)
    assert found["evidence"] == [{"source": "hook", "says": "Stop", "at": "2023-11-15T12:00:00.000Z", "detail": ""}]
    assert found["budget"] == {"policy": "on-failure", "used": 0, "max": 5, "within": 600.0}


def test_without_a_supervisor_the_last_state_is_not_shown_as_known(paths: RunPaths) -> None:
    write_record(paths, "ana", state=AgentState.IDLE, since=time.time() - 250, proc=identify(1))
    assert call("why", "ana").out.splitlines()[0] == "unknown: last idle, 4m"


def test_an_agent_that_never_ran_and_one_that_left_the_file_are_said(paths: RunPaths) -> None:
    assert call("why", "ana").out == "stopped, never started\n"
    write_record(paths, "old", since=NOON)
    assert "it is no longer in it; the next up stops it" in call("why", "old").out


def test_peek_shows_the_newest_kept_screen_where_there_is_no_pane(paths: RunPaths) -> None:
    write_record(paths, "ana")
    for at, text in ((NOON, "old\n"), (NOON + 60, "❯ new\x1b[1m\nline\n")):
        Path(paths.agent("ana").captures, f"{at:.3f}.txt").write_text(text, encoding="utf-8")
    said = call("peek", "ana")
    assert said.out == "❯ new^[[1m\nline\n"
    assert said.err.startswith("ana: no pane; the last screen kept, ")
    found = json.loads(call("peek", "ana", "--json").out)
    assert (found["source"], found["at"]) == ("capture", "2023-11-15T12:01:00.000Z")
    assert found["rows"] == ["❯ new\x1b[1m", "line"]


def test_peek_of_an_agent_without_any_screen_says_what_to_do(paths: RunPaths) -> None:
    said = call("peek", "ana")
    assert said.code == 1
    assert "hint: nbs-fleet start ana" in said.err


def test_attach_of_an_agent_that_does_not_run_says_where_to_look(paths: RunPaths) -> None:
    said = call("attach", "ana")
    assert said.code == 1
    assert "nbs-fleet peek ana" in said.err
    assert call("attach", "anna").code == 4


def test_an_agent_may_not_attach(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBS_FLEET_RUN", paths.run)
    said = call("attach", "ana")
    assert said.code == 1
    assert "this is for a person to do" in said.err


def test_ls_lists_all_teams_with_what_runs(paths: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    make_team(tmp_path / "日本", "build", (agent("cy"),))
    write_record(paths, "ana", proc=identify(1))
    assert call("ls").out.splitlines() == [
        "TEAM    SUPERVISOR  RUNNING  ROOT",
        "build   down            0/1  ~/日本",
        "review  dead            1/2  ~/root",
    ]
    found = json.loads(call("ls", "--json").out)
    assert [team["team"] for team in found["teams"]] == ["build", "review"]
    assert found["teams"][1]["supervisor"] == {"state": "dead", "pid": None}


def test_ls_of_nothing_says_how_to_begin() -> None:
    said = call("ls")
    assert (said.code, said.out) == (0, "")
    assert "nbs-fleet up FILE" in said.err
    assert json.loads(call("ls", "--json").out) == {"schema": 1, "teams": []}


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (
            Exit(ExitKind.CRASH, NOON, code=1, lines=("x", "  Error:   no\tnetwork ")),
            "crash (exit 1): Error: no network",
        ),
        (Exit(ExitKind.CRASH, NOON, signal=9, lines=("? for shortcuts      ● high",)), "crash (signal 9)"),
        (Exit(ExitKind.CLEAN, NOON, code=0), f"{ExitKind.CLEAN.value} (exit 0)"),
        (Exit(ExitKind.CRASH, NOON, lines=("  ",)), "crash"),
    ],
)
def test_an_end_is_explained_by_the_client_s_last_words_unless_it_was_killed(end: Exit, said: str) -> None:
    assert end.explain() == said
