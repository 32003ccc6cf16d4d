"""Which team and which agents are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbs_fleet.cli import lookup
from nbs_fleet.errors import FleetError, UnknownNameError
from tests.support.cli_world import agent, make_team, write_record


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two roots, each with its team."""
    one, other = tmp_path / "one", tmp_path / "other"
    make_team(one, "review", (agent("ana"), agent("bo-1", base="bo"), agent("bo-2", base="bo")))
    make_team(other, "build", (agent("cy"),))
    return one, other


def test_without_any_team_the_error_says_how_to_start_one() -> None:
    with pytest.raises(UnknownNameError) as error:
        lookup.find_team()
    assert error.value.hint == "nbs-fleet up FILE starts one"


def test_the_only_team_is_found_from_anywhere(tmp_path: Path) -> None:
    make_team(tmp_path / "one", "review", (agent("ana"),))
    assert lookup.find_team().team == "review"


def test_the_nearest_root_upwards_counts(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    below = two[1] / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert lookup.find_team().team == "build"
    make_team(two[1] / "a", "inner", (agent("di"),))
    assert lookup.find_team().team == "inner"


def test_elsewhere_several_teams_are_ambiguous(two: tuple[Path, Path]) -> None:
    with pytest.raises(UnknownNameError) as error:
        lookup.find_team()
    assert error.value.hint == "choose with --team: build, review"


def test_several_teams_of_one_root_are_ambiguous(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    make_team(two[0], "second", (agent("di"),))
    monkeypatch.chdir(two[0])
    with pytest.raises(UnknownNameError) as error:
        lookup.find_team()
    assert error.value.hint == "choose with --team: review, second"


def test_a_team_is_found_by_name_from_anywhere(two: tuple[Path, Path]) -> None:
    found = lookup.find_team("build")
    assert (found.team, found.root) == ("build", str(two[1].resolve()))
    assert found.plan().agents[0].agent.handle == "cy"


def test_a_wrong_name_gets_the_nearest_and_the_choices(two: tuple[Path, Path]) -> None:
    with pytest.raises(UnknownNameError) as error:
        lookup.find_team("biuld")
    assert error.value.message == 'no team "biuld"; did you mean "build"?'
    assert error.value.hint == "choose with --team: build, review"


def test_a_name_of_two_teams_is_ambiguous_and_the_files_are_the_choices(two: tuple[Path, Path]) -> None:
    make_team(two[1], "review", (agent("di"),))
    with pytest.raises(UnknownNameError) as error:
        lookup.find_team("review")
    files = [f"{root.resolve()}/review.yaml" for root in two]
    assert error.value.hint == "choose with --team: " + ", ".join(files)


def test_a_team_is_found_by_its_file(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    (two[0] / "review.yaml").touch()
    (two[0] / "new.yaml").touch()
    assert lookup.find_team(str(two[0] / "review.yaml")).team == "review"
    monkeypatch.chdir(two[0])
    assert lookup.find_team("review.yaml").team == "review"
    for name, message in (("new.yaml", "was never up"), ("none.yaml", "no such team file")):
        with pytest.raises(UnknownNameError, match=message):
            lookup.find_team(name)


def test_the_environment_of_an_agent_names_its_team(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    run = lookup.find_team("build").paths.run
    monkeypatch.setenv("NBS_FLEET_RUN", run)
    assert lookup.find_team().team == "build"
    assert lookup.find_team("review").team == "review"
    monkeypatch.setenv("XDG_STATE_HOME", "/nowhere")
    assert lookup.find_team().paths.run == run


def test_a_run_directory_that_is_gone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBS_FLEET_RUN", "/nowhere")
    with pytest.raises(UnknownNameError, match=r"\$NBS_FLEET_RUN names no team: /nowhere"):
        lookup.find_team()


def test_a_base_handle_stands_for_its_copies(two: tuple[Path, Path]) -> None:
    found = lookup.find_team("review")
    assert lookup.find_handles(found, ["bo"]) == ("bo-1", "bo-2")
    assert lookup.find_handles(found, ["bo-2", "bo", "ana"]) == ("bo-2", "bo-1", "ana")
    assert lookup.find_handle(found, "ana") == "ana"
    with pytest.raises(UnknownNameError) as error:
        lookup.find_handle(found, "bo")
    assert error.value.hint == "choose one: bo-1, bo-2"


def test_a_wrong_handle_gets_the_nearest_and_the_choices(two: tuple[Path, Path]) -> None:
    with pytest.raises(UnknownNameError) as error:
        lookup.find_handles(lookup.find_team("review"), ["anna"])
    assert error.value.message == 'no agent "anna" in review; did you mean "ana"?'
    assert error.value.hint == "its agents: ana, bo-1, bo-2"
    assert error.value.exit_code == 4


def test_an_agent_that_left_the_file_is_still_known(two: tuple[Path, Path]) -> None:
    found = lookup.find_team("build")
    write_record(found.paths, "old")
    assert lookup.handles_of(found) == ("cy", "old")
    assert lookup.find_handle(found, "old") == "old"


def test_a_damaged_plan_is_a_clear_error(two: tuple[Path, Path]) -> None:
    found = lookup.find_team("build")
    Path(found.paths.plan).write_text("{", encoding="utf-8")
    with pytest.raises(FleetError) as error:
        found.plan()
    assert found.paths.plan in error.value.message
