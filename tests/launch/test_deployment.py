"""Files of a person that a fleet changes: what goes in comes out, whatever happens in between."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nbs_fleet.drivers.deployment import AddItem, Edit, Link, NewFile, SetKey
from nbs_fleet.errors import FleetError
from nbs_fleet.launch import files
from nbs_fleet.launch.deployment import LIST, deploy, describe, read, stands, undo

SETTINGS = '{\n  // mine\n  "hooks": {"Stop": [{"mine": 1}]},\n}\n'
OURS = {"hooks": [{"type": "command", "command": "/run/x/bin/nbs-hook Stop"}]}


@pytest.fixture
def run(tmp_path: Path) -> str:
    (tmp_path / "run").mkdir()
    return str(tmp_path / "run")


def edit(path: Path, *changes: AddItem | SetKey) -> Edit:
    return Edit(str(path), "json", changes or (AddItem(("hooks", "Stop"), OURS), SetKey(("tips",), False)))


def test_a_file_comes_back_byte_for_byte_with_its_mode_and_link(run: str, tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "settings.json", tmp_path / "settings.json"
    real.parent.mkdir()
    real.write_text(SETTINGS)
    real.chmod(0o640)
    link.symlink_to(real)
    deploy(run, "ana", (edit(link),))
    assert "nbs-hook" in real.read_text()
    assert '{"mine": 1}' in real.read_text()
    assert undo(run) == ()
    assert real.read_text() == SETTINGS
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert not os.path.exists(os.path.join(run, LIST))


def test_a_persons_own_edits_in_between_stay(run: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(SETTINGS)
    deploy(run, "ana", (edit(path),))
    path.write_text(path.read_text().replace("// mine", "// still mine").replace('{"mine": 1}', '{"mine": 2}'))
    assert undo(run) == ()
    assert path.read_text() == SETTINGS.replace("// mine", "// still mine").replace('{"mine": 1}', '{"mine": 2}')


def test_a_second_start_changes_nothing_and_another_wish_replaces_the_first(run: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(SETTINGS)
    deploy(run, "ana", (edit(path),))
    once = path.read_text()
    deploy(run, "ana", (edit(path),))
    assert path.read_text() == once
    path.write_text(SETTINGS)  # somebody took ours out
    deploy(run, "ana", (edit(path),))
    assert path.read_text() == once
    deploy(run, "ana", (edit(path, SetKey(("tips",), True)),))
    assert "nbs-hook" not in path.read_text()
    assert deploy(run, "ana", ()) == ()
    assert path.read_text() == SETTINGS


def test_what_two_agents_need_goes_with_the_last_of_them(run: str, tmp_path: Path) -> None:
    path, skill = tmp_path / "settings.json", tmp_path / ".agents" / "skills" / "x" / "SKILL.md"
    path.write_text(SETTINGS)
    for handle in ("ana", "bo"):
        deploy(run, handle, (edit(path), NewFile(str(skill), "text")))
    assert undo(run, "ana") == ()
    assert "nbs-hook" in path.read_text()
    assert skill.read_text() == "text"
    assert undo(run, "bo") == ()
    assert path.read_text() == SETTINGS
    assert not (tmp_path / ".agents").exists()


def test_a_file_that_was_not_there_is_gone_again_unless_a_person_wrote_into_it(run: str, tmp_path: Path) -> None:
    path = tmp_path / "client" / "settings.json"
    deploy(run, "ana", (edit(path),))
    assert json.loads(path.read_text())["tips"] is False
    undo(run)
    assert not path.exists()
    deploy(run, "ana", (edit(path),))
    path.write_text(path.read_text().replace("{", '{"own": 1, ', 1))
    undo(run)
    assert json.loads(path.read_text()) == {"own": 1}


@pytest.mark.parametrize("write", range(1, 5))
def test_a_crash_at_any_write_is_undone(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: int) -> None:
    path, new = tmp_path / "settings.json", tmp_path / "skills" / "SKILL.md"
    path.write_text(SETTINGS)
    count = 0
    real = files.write_atomic

    def failing(*args: object, **more: object) -> None:
        nonlocal count
        count += 1
        if count == write:
            raise KeyboardInterrupt
        real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("nbs_fleet.launch.deployment.write_atomic", failing)
    with pytest.raises(KeyboardInterrupt):
        deploy(run, "ana", (edit(path), NewFile(str(new), "text")))
    monkeypatch.setattr("nbs_fleet.launch.deployment.write_atomic", real)
    assert undo(run) == ()
    assert path.read_text() == SETTINGS
    assert not new.parent.exists()


def test_a_file_of_others_is_never_replaced_and_a_changed_one_of_ours_stays(run: str, tmp_path: Path) -> None:
    skill = tmp_path / "SKILL.md"
    skill.write_text("theirs")
    with pytest.raises(FleetError, match="is not ours"):
        deploy(run, "ana", (NewFile(str(skill), "ours"),))
    skill.unlink()
    deploy(run, "ana", (NewFile(str(skill), "ours"),))
    skill.write_text("ours, but better")
    assert undo(run) == ()
    assert skill.read_text() == "ours, but better"


def test_what_cannot_be_changed_or_undone_is_said(run: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{ not json")
    with pytest.raises(FleetError, match=r"settings\.json: it is no JSON"):
        deploy(run, "ana", (edit(path),))
    path.write_text(SETTINGS)
    deploy(run, "ana", (edit(path),))
    path.write_text("{ broken")
    assert [line.partition(":")[0] for line in undo(run)] == [str(path)] * 2
    path.write_text(SETTINGS)
    assert undo(run) == ()


def test_agents_of_one_folder_share_a_link_and_the_last_takes_it_away(run: str, tmp_path: Path) -> None:
    project, skill = tmp_path / "project", tmp_path / "run" / "skills" / "x"
    project.mkdir()
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("text")
    link = project / ".agents" / "skills" / "x"
    for handle in ("ana", "bo"):
        deploy(run, handle, (Link(str(link), str(skill)),))
    assert (link / "SKILL.md").read_text() == "text"
    assert [describe(entry) for entry in read(run).entries] == [f"{link}  a link  for ana, bo"]
    assert deploy(run, "ana", ()) == ()
    assert link.is_symlink()
    assert undo(run) == ()
    assert not list(project.iterdir())
    assert skill.exists()


def test_a_link_that_was_taken_away_is_put_in_again_and_one_made_anew_by_a_person_stays(
    run: str, tmp_path: Path
) -> None:
    link, skill = tmp_path / "skills" / "x", tmp_path / "run" / "x"
    skill.mkdir(parents=True)
    wanted = (Link(str(link), str(skill)),)
    deploy(run, "ana", wanted)
    link.unlink()
    assert not stands(read(run).entries[0])
    deploy(run, "ana", wanted)
    assert link.is_symlink()
    link.unlink()
    link.mkdir()
    assert undo(run) == ()
    assert link.is_dir()
    assert not link.is_symlink()


def test_a_skill_of_a_persons_own_stays_and_is_good_enough_if_it_says_the_same(run: str, tmp_path: Path) -> None:
    theirs, skill = tmp_path / "skills" / "x", tmp_path / "run" / "x"
    for folder in (theirs, skill):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("same")
    assert deploy(run, "ana", (Link(str(theirs), str(skill)),)) == ()
    (theirs / "SKILL.md").write_text("another")
    with pytest.raises(FleetError, match="is there already, and is not ours"):
        deploy(run, "ana", (Link(str(theirs), str(skill)),))
    assert undo(run) == ()
    assert (theirs / "SKILL.md").read_text() == "another"
