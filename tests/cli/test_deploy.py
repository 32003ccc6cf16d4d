"""deploy, cleanup and doctor: what clients need in a person's files, put in ahead of `up` and taken out again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbs_fleet.drivers.base import Facts
from nbs_fleet.drivers.deployment import AddItem, Deployment, Edit, NewFile, SetKey
from nbs_fleet.drivers.sim import Sim
from tests.support.cli_world import call

TEAM = "version: 1\nteam: crew\ndriver: sim\nagents: [{handle: ana}, {handle: bo}]\n"
THEIRS = '{\n  // mine\n  "theme": "dark",\n  "hooks": ["own"]\n}\n'


@pytest.fixture
def settings(here: Path) -> Path:
    """A settings file of the person, and a team file."""
    (here / ".git").mkdir()
    (here / "team.yaml").write_text(TEAM, encoding="utf-8")
    path = here.parent / "client" / "settings.json"
    path.parent.mkdir()
    path.write_text(THEIRS, encoding="utf-8")
    path.chmod(0o640)
    return path


@pytest.fixture
def needy(settings: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver whose client can only be told by that file, and by one of its own beside it."""

    def deploy(_self: Sim, facts: Facts) -> tuple[Deployment, ...]:
        hook = AddItem(("hooks",), f"{facts.run}/bin/nbs-hook")
        note = NewFile(str(settings.parent / f"{facts.agent.handle}.txt"), "from the fleet\n")
        return (Edit(str(settings), "json", (hook, SetKey(("theme",), "light"))), note)

    monkeypatch.setattr(Sim, "deploy", deploy)
    return settings


def everything(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_team_whose_clients_get_all_with_their_start_changes_and_leaves_nothing(settings: Path) -> None:
    before = everything(settings.parents[1])
    said = call("deploy", "team.yaml")
    assert said.code == 0
    assert said.out.splitlines() == [
        "ana  sim  all it needs comes with its start",
        "bo   sim  all it needs comes with its start",
    ]
    assert everything(settings.parents[1]) == before


def test_a_dry_run_only_tells(needy: Path) -> None:
    before = everything(needy.parents[1])
    said = call("deploy", "team.yaml", "--dry-run")
    assert said.code == 0
    assert f"{needy}  hooks" in said.out
    assert said.out.endswith("nothing was changed\n")
    assert everything(needy.parents[1]) == before


def test_what_was_put_in_stands_beside_a_persons_own_and_cleanup_takes_only_that_out(needy: Path) -> None:
    assert call("deploy", "team.yaml").code == 0
    text = needy.read_text(encoding="utf-8")
    assert "// mine" in text
    assert '"own"' in text
    assert '"theme": "light"' in text
    assert needy.stat().st_mode & 0o777 == 0o640
    assert (needy.parent / "ana.txt").read_text() == (needy.parent / "bo.txt").read_text() == "from the fleet\n"
    listed = call("cleanup", "--dry-run").out
    assert f"{needy}  hooks  for ana, bo" in listed
    doctor = call("doctor").out
    assert "not up, but changed" in doctor
    assert "nbs-fleet cleanup --team crew" in doctor
    again = everything(needy.parent)
    assert call("deploy", "team.yaml").code == 0
    assert everything(needy.parent) == again
    needy.write_text(text.replace("// mine", "// still mine"), encoding="utf-8")
    assert call("cleanup").code == 0
    assert needy.read_text(encoding="utf-8") == THEIRS.replace("// mine", "// still mine")
    assert sorted(path.name for path in needy.parent.iterdir()) == ["settings.json"]
    assert call("cleanup").out == "crew has changed nothing in your files\n"


def test_cleanup_takes_out_what_an_agent_needed_that_has_left_the_file_since(needy: Path, here: Path) -> None:
    assert call("deploy", "team.yaml").code == 0
    (here / "team.yaml").write_text(TEAM.replace("{handle: bo}", "{handle: cy}"), encoding="utf-8")
    assert call("deploy", "team.yaml").code == 0
    assert (needy.parent / "cy.txt").exists()
    assert call("cleanup").code == 0
    assert everything(needy.parent) == {str(needy): THEIRS.encode()}


def test_a_file_that_can_not_be_changed_is_named_with_the_agent(needy: Path) -> None:
    needy.write_text("{ broken", encoding="utf-8")
    said = call("deploy", "team.yaml")
    assert said.code == 1
    assert f"ana: {needy}: " in said.err
    assert needy.read_text(encoding="utf-8") == "{ broken"


def test_in_json_each_agent_has_its_changes(needy: Path) -> None:
    found = json.loads(call("deploy", "team.yaml", "--json").out)
    assert (found["team"], found["deployed"]) == ("crew", True)
    assert [agent["handle"] for agent in found["agents"]] == ["ana", "bo"]
    assert found["agents"][0]["changes"] == [
        f"{needy}  hooks",
        f"{needy}  theme",
        f"{needy.parent}/ana.txt  the whole file",
    ]


SKILLED = "version: 1\nteam: crew\ndriver: qwen\nskills: [{skill}]\nagents: [{{handle: ana}}, {{handle: bo}}]\n"


def test_skills_that_a_client_finds_only_in_the_project_are_linked_there_for_a_while(here: Path) -> None:
    (here / ".git").mkdir()
    (here / "team.yaml").write_text(SKILLED.format(skill="nbs-poll"), encoding="utf-8")
    link = here / ".agents" / "skills" / "nbs-poll"
    assert [line.split(maxsplit=2)[2] for line in call("deploy", "team.yaml", "--dry-run").out.splitlines()[:2]] == [
        f"{link}  a link"
    ] * 2
    assert not link.exists()
    assert call("deploy", "team.yaml").code == 0
    assert "name: nbs-poll" in (link / "SKILL.md").read_text(encoding="utf-8")
    assert call("cleanup", "--team", "crew").code == 0
    assert not (here / ".agents").exists()


def test_agents_of_one_folder_are_not_given_different_skills_of_one_name(here: Path) -> None:
    (here / ".git").mkdir()
    (here / "mine").mkdir()
    (here / "mine" / "SKILL.md.j2").write_text("{% for chat in chats %}{{ chat.name }}{% endfor %}", encoding="utf-8")
    team = SKILLED.format(skill="./mine").replace("{handle: bo}", "{handle: bo, chats: []}")
    (here / "team.yaml").write_text(team + "chats: [live]\n", encoding="utf-8")
    for command in (("deploy", "--dry-run"), ("validate",)):
        said = call(*command, "team.yaml")
        assert said.code == 2
        assert "agents.bo.skills: mine differs from that of ana" in said.err
