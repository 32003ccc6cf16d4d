"""From a valid file to a Team: copies, chats, buses, duties, places."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from nbs_fleet.errors import TeamFileError
from nbs_fleet.spec.load import load_team
from nbs_fleet.spec.loaded import Loaded
from nbs_fleet.spec.team import Chat, Notification, Pythia, Standup, Team

Load = Callable[..., Loaded]
TOP = "version: 1\nteam: t\n"
REVIEW = """\
# yaml-language-server: $schema=../docs/team.schema.json
version: 1
team: review
root: ..                          # relative to this file
vars: {project: Widget}
driver: claude
chats:
  - live                          # the first one is the main chat
  - {name: review, members: [ana, bo]}      # bo stands for bo-1 .. bo-3
bus: [.nbs/events]
standup: {every: 15m, chat: live}
pythia: {every: 20, agent: oracle, bus: .nbs/events}
dialogs: {trust: accept, plan: approve}
roles:
  reviewer: {prompt: reviewer.md.j2, model: opus, permission_mode: bypassPermissions}
agents:
  - {handle: ana, role: reviewer}
  - {handle: bo, count: 3, prompt: tester.md.j2, depends_on: [ana], env: {LOG: debug}}
  - {handle: oracle, prompt: pythia.md.j2}
"""


def test_the_example_of_the_handbook_becomes_a_team(root: Path) -> None:
    (root / "teams").mkdir()
    (root / "teams" / "review.yaml").write_text(REVIEW)
    (root / "teams" / "reviewer.md.j2").write_text("You review {{ vars.project }}.")
    loaded = load_team("teams/review.yaml", {}, known_drivers=("claude",))
    team = loaded.team
    assert (team.name, team.root, team.file) == ("review", str(root), str(root / "teams/review.yaml"))
    assert [a.handle for a in team.agents] == ["ana", "bo-1", "bo-2", "bo-3", "oracle"]
    assert [a.base for a in team.agents] == ["ana", "bo", "bo", "bo", "oracle"]
    assert team.chats == (
        Chat("live", str(root / ".nbs/chat/live.chat"), ("ana", "bo-1", "bo-2", "bo-3", "oracle")),
        Chat("review", str(root / ".nbs/chat/review.chat"), ("ana", "bo-1", "bo-2", "bo-3")),
    )
    assert team.main_chat == "live"
    assert team.standup == Standup(900.0, "live")
    assert team.pythia == Pythia(20, str(root / ".nbs/events"), "oracle")
    ana, bo, *_, oracle = team.agents
    assert (ana.prompt, bo.prompt) == (str(root / "teams/reviewer.md.j2"), "template:tester.md.j2")
    assert (ana.role, ana.model, ana.dialogs.bypass, ana.dialogs.plan) == ("reviewer", "opus", "accept", "approve")
    assert (bo.depends_on, bo.env, bo.dir, bo.driver) == (("ana",), {"LOG": "debug"}, str(root), "claude")
    assert (bo.chats, oracle.chats) == (("live", "review"), ("live",))
    assert loaded.warnings == ()


def test_a_team_survives_being_written_as_json(load: Load) -> None:
    text = TOP + "chats: [live]\nstandup: {every: 90s}\nbudget: {hours: 1.5}\nvars: {a: [1, {b: null}]}\n"
    text += "notifications: [{on: failed, via: command, command: 'a b', cooldown: 5m}]\nagents: [{handle: ana}]\n"
    team = load(text).team
    assert msgspec.json.decode(msgspec.json.encode(team), type=Team) == team
    assert team.notifications == (Notification(("failed",), "command", command=("a", "b"), cooldown=300.0),)


@pytest.mark.parametrize(
    ("count", "handles"), [("", ["bo"]), (", count: 1", ["bo-1"]), (", count: 2", ["bo-1", "bo-2"])]
)
def test_a_count_makes_numbered_copies(count: str, handles: list[str], load: Load) -> None:
    assert [a.handle for a in load(TOP + f"agents: [{{handle: bo{count}}}]\n").team.agents] == handles


def test_a_base_handle_stands_for_all_copies_and_a_copy_for_itself(load: Load) -> None:
    text = TOP + (
        "chats: [{name: all, members: [bo, cy]}, {name: one, members: [bo-2, cy]}]\n"
        "agents:\n  - {handle: bo, count: 2}\n  - {handle: cy, depends_on: [bo, bo-1]}\n  - {handle: di, depends_on: [bo-2]}\n"
    )
    team = load(text).team
    assert [c.members for c in team.chats] == [("bo-1", "bo-2", "cy"), ("bo-2", "cy")]
    assert [a.chats for a in team.agents] == [("all",), ("all", "one"), ("all", "one"), ()]
    assert [a.depends_on for a in team.agents[2:]] == [("bo-1", "bo-2"), ("bo-2",)]


def test_an_agent_may_take_part_in_fewer_chats(load: Load) -> None:
    text = TOP + "chats: [live, talk]\nagents: [{handle: ana, chats: [talk]}, {handle: bo}, {handle: cy, chats: []}]\n"
    team = load(text).team
    assert [a.chats for a in team.agents] == [("talk",), ("live", "talk"), ()]
    assert [c.members for c in team.chats] == [("bo",), ("ana", "bo")]


def test_a_bus_is_the_usual_one_if_it_exists_else_none(root: Path, load: Load) -> None:
    text = TOP + "agents: [{handle: ana}, {handle: bo, bus: [own, own]}]\n"
    assert load(text).team.bus == ()
    (root / ".nbs" / "events").mkdir(parents=True)
    team = load(text).team
    assert (team.bus, team.agents[0].bus) == ((str(root / ".nbs/events"),), (str(root / ".nbs/events"),))
    assert team.agents[1].bus == (str(root / "own"),)


def test_a_pythia_takes_its_interval_from_the_bus_unless_the_file_says_it(root: Path, load: Load) -> None:
    text = TOP + "bus: [.nbs/events]\nagents: [{handle: ana}]\n"
    assert load(text + "pythia: {}\n").team.pythia == Pythia(20, str(root / ".nbs/events"), None)
    (root / ".nbs" / "events").mkdir(parents=True)
    (root / ".nbs" / "events" / "config.yaml").write_text("# bus\nretention-max-bytes: 1\npythia-interval: 7\n")
    found = load(text + "pythia: {}\n").team.pythia
    assert found is not None
    assert found.every == 7
    found = load(text + "pythia: {every: 3}\n").team.pythia
    assert found is not None
    assert found.every == 3
    assert load(text + "pythia: false\n").team.pythia is None


def test_a_standup_goes_to_the_main_chat_every_quarter_of_an_hour(load: Load) -> None:
    text = TOP + "chats: [live, talk]\nagents: [{handle: ana}]\n"
    assert load(text + "standup: {}\n").team.standup == Standup(900.0, "live")
    assert load(text + "standup: {every: 1h, chat: talk}\n").team.standup == Standup(3600.0, "talk")
    assert load(text + "standup: off\n").team.standup is None
    assert load(text).team.standup is None


def test_numbers_are_text_where_text_is_meant_for_a_program(load: Load) -> None:
    text = (
        TOP
        + "agents: [{handle: ana, env: {A: 0644, B: 1.50, C: -3, D: 0x1F}, args: [-n, 5], command: [python, 3.10]}]\n"
    )
    agent = load(text).team.agents[0]
    assert agent.env == {"A": "0644", "B": "1.50", "C": "-3", "D": "0x1F"}
    assert (agent.args, agent.command) == (("-n", "5"), ("python", "3.10"))


def test_free_content_arrives_as_written(load: Load) -> None:
    text = TOP + "settings: {a: [1, 2.5, true, null, 'no'], date: 2024-01-01, t: 1:30}\nagents: [{handle: ana}]\n"
    assert load(text).team.agents[0].settings == {"a": [1, 2.5, True, None, "no"], "date": "2024-01-01", "t": "1:30"}


def test_a_command_is_split_like_in_a_shell(load: Load) -> None:
    text = TOP + "agents: [{handle: ana, command: \"my client 'a b' #x\"}]\n"
    assert load(text).team.agents[0].command == ("my", "client", "a b", "#x")


def test_the_root_is_the_nearest_folder_with_nbs_or_git(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "t.yaml").write_text(TOP + "agents: [{handle: ana}]\n")
    (tmp_path / "a" / ".git").write_text("gitdir: elsewhere")
    assert load_team(str(deep / "t.yaml"), {}).team.root == str((tmp_path / "a").resolve())
    (tmp_path / "a" / "b" / ".nbs").mkdir()
    assert load_team(str(deep / "t.yaml"), {}).team.root == str((tmp_path / "a" / "b").resolve())


@pytest.mark.parametrize("name", ["with blank 'and' \"quotes\"", "ünïcödé-日本-😀", "x" * 200, "a\nb", "$HOME"])
def test_any_name_of_a_root_is_carried_through(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    (folder / ".nbs" / "events").mkdir(parents=True)
    (folder / "src").mkdir()
    file = folder / "team.yaml"
    file.write_text(TOP + "dir: src\nchats: [live]\nagents: [{handle: ana}]\n")
    team = load_team(str(file), {}).team
    assert team.root == os.path.realpath(folder)
    assert (team.agents[0].dir, team.bus) == (os.path.join(team.root, "src"), (os.path.join(team.root, ".nbs/events"),))
    file.write_text(TOP)
    with pytest.raises(TeamFileError) as caught:
        load_team(str(file), {})
    assert "\n" not in caught.value.problems[0]


def test_the_root_has_no_symbolic_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "link")
    (tmp_path / "link" / "t.yaml").write_text(TOP + "root: ../link\nagents: [{handle: ana}]\n")
    assert load_team(str(tmp_path / "link" / "t.yaml"), {}).team.root == os.path.realpath(tmp_path / "real")


def test_a_prompt_beside_the_file_goes_before_a_packaged_one(root: Path, load: Load) -> None:
    text = TOP + "agents: [{handle: ana, prompt: tester.md.j2}]\n"
    assert load(text).team.agents[0].prompt == "template:tester.md.j2"
    (root / "tester.md.j2").write_text("mine")
    assert load(text).team.agents[0].prompt == str(root / "tester.md.j2")
    (root / "tester.md.j2").write_text("x" * 100_001)
    with pytest.raises(TeamFileError, match="is longer than 100000 bytes"):
        load(text)
    (root / "tester.md.j2").write_bytes(b"\xff")
    with pytest.raises(TeamFileError, match="is not UTF-8"):
        load(text)


def test_skills_are_folders_beside_the_file_or_packaged_ones(root: Path, load: Load) -> None:
    (root / "mine").mkdir()
    assert load(TOP + "skills: [mine, nbs-poll]\nagents: [{handle: ana}]\n").team.agents[0].skills == (
        str(root / "mine"),
        "template:skills/nbs-poll",
    )


def test_five_hundred_agents_are_enough(load: Load) -> None:
    text = TOP + "chats: [live]\nagents: [{handle: a, count: 499}, {handle: b, depends_on: [a]}]\n"
    team = load(text).team
    assert len(team.agents) == 500
    assert len(team.agents[-1].depends_on) == 499
