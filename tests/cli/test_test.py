"""`nbs-fleet test` before it plays anything: files, choices, what is missing here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbs_fleet.cli import app

GOOD = """\
version: 1
name: {name}
team: {{version: 1, team: crew, driver: {driver}, agents: [{{handle: ana}}]}}
steps: [{{wait: {{agent: ana, state: idle}}}}]
"""


def file(folder: Path, name: str, driver: str = "sim") -> str:
    path = folder / f"{name}.test.yaml"
    path.write_text(GOOD.format(name=name, driver=driver))
    return str(path)


def test_all_faults_of_all_files_are_told_and_where_the_keys_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.test.yaml"
    bad.write_text(GOOD.format(name="bad", driver="sim").replace("steps:", "stepps:"))
    worse = tmp_path / "worse.test.yaml"
    worse.write_text(GOOD.format(name="worse", driver="sim").replace("state: idle", "state: idel"))
    assert app.run(["test", file(tmp_path, "good"), str(bad), str(worse)]) == 2
    told = capsys.readouterr().err
    assert 'bad.test.yaml:4:1: stepps: unknown key; did you mean "steps"?' in told
    assert ': steps[0].wait.state: "idel" is not known here; did you mean "idle"?' in told
    assert "nbs-fleet schema test" in told


def test_the_tests_are_listed_and_chosen_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [file(tmp_path, "crash"), file(tmp_path, "start")]
    assert app.run(["test", *files, "--list", "--json", "-k", "not crash"]) == 0
    assert [test["test"] for test in json.loads(capsys.readouterr().out)["tests"]] == ["start"]
    assert app.run(["test", *files, "--list", "-k", "nowhere"]) == 2
    assert app.run(["test", *files, "--list", "-k", "crash and"]) == 2


def test_a_client_that_is_not_here_is_a_matter_of_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    report = tmp_path / "report.xml"
    assert app.run(["test", file(tmp_path, "x", "claudeless"), "--junit", str(report)]) == 3
    assert "there is no claudeless on PATH" in capsys.readouterr().out
    assert '<error message="claudeless' in report.read_text()
    assert app.run(["test", file(tmp_path, "x"), "--driver", "claude"]) == 3
    assert "ANTHROPIC_API_KEY" in capsys.readouterr().out


def test_a_driver_that_does_not_exist_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["test", file(tmp_path, "x"), "--driver", "simm"]) == 2
    assert "drivers: " in capsys.readouterr().err
