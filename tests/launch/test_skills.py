"""Skills on disk: what is written, what goes with it, what an earlier start left."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbs_fleet.errors import FleetError
from nbs_fleet.launch.skills import deploy
from nbs_fleet.plan.types import Skill


def test_a_skill_lies_where_the_client_looks_with_the_files_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md.j2").write_text("{{ handle }}")
    script = folder / "scripts" / "run.sh"
    script.write_bytes(b"#!/bin/sh\n\x00")
    script.chmod(0o755)
    own = tmp_path / "own"
    place = own / ".claude" / "skills"
    deploy(str(own), str(place), (Skill("mine", "ana", str(folder)), Skill("other", "words")))
    assert sorted(str(p.relative_to(place)) for p in place.rglob("*") if p.is_file()) == [
        "mine/SKILL.md",
        "mine/scripts/run.sh",
        "other/SKILL.md",
    ]
    assert (place / "mine" / "SKILL.md").read_text() == "ana"
    assert (place / "mine" / "scripts" / "run.sh").read_bytes() == script.read_bytes()
    assert (place / "mine" / "scripts" / "run.sh").stat().st_mode & 0o777 == 0o755


def test_skills_that_left_the_team_file_are_gone_at_the_next_start(tmp_path: Path) -> None:
    own, place = tmp_path / "own", tmp_path / "own" / "x"
    deploy(str(own), str(place), (Skill("one", "1"), Skill("two", "2")))
    deploy(str(own), str(place), (Skill("two", "3"),))
    assert [(p.name, (p / "SKILL.md").read_text()) for p in place.iterdir()] == [("two", "3")]
    deploy(str(own), None, (Skill("two", "3"),))
    assert not list(own.iterdir())


def test_a_folder_that_can_not_be_copied_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="skills can't be written") as caught:
        deploy(str(tmp_path / "own"), str(tmp_path / "own"), (Skill("s", "", str(tmp_path / "none")),))
    assert caught.value.hint
