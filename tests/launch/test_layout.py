from __future__ import annotations

from msgspec.structs import replace

from nbs_fleet.launch.layout import PaneWanted, conf, start_lines
from nbs_fleet.launch.tmux_text import Pane, words
from nbs_fleet.spec.team import Layout

LONE = Pane("%1", "ana", "team", "@1", "ana", 7, False, None, None, "", 200, 50, "cat", False, True)


def want(handle: str, window: str | None = None, slot: int = 0) -> PaneWanted:
    return PaneWanted(handle, window or handle, slot, f"/run dir/{handle}/launch.sh")


def commands(lines: list[str]) -> list[list[str]]:
    return [words(text) for text in lines]


def test_a_pane_of_its_own_is_born_marked_and_moves_no_focus() -> None:
    assert commands(start_lines("team", [want("ana")], (), Layout())) == [
        ["new-window", "-d", "-t", "=team:", "-n", "ana", "--", "/bin/sh", "/run dir/ana/launch.sh"],
        ["set-option", "-p", "-t", "=team:=ana", "@nbs_handle", "ana"],
        ["set-option", "-p", "-t", "=team:=ana", "@nbs_team", "team"],
    ]


def test_tiled_panes_are_joined_from_the_last_to_the_first() -> None:
    wanted = [want("b", "agents-1", 1), want("c", "agents-1", 2), want("a", "agents-1", 0)]
    made = commands(start_lines("team", wanted, (), Layout(panes_per_window=3)))
    assert [line[5] for line in made if line[0] == "new-window"] == ["a", "b", "c"]
    assert [line for line in made if line[0] not in ("new-window", "set-option")] == [
        ["join-pane", "-d", "-s", "=team:=c", "-t", "=team:=a"],
        ["select-layout", "-t", "=team:=a", "tiled"],
        ["join-pane", "-d", "-s", "=team:=b", "-t", "=team:=a"],
        ["select-layout", "-t", "=team:=a", "tiled"],
        ["rename-window", "-t", "=team:=a", "agents-1"],
    ]


def test_a_window_that_is_there_is_joined_behind_its_last_pane() -> None:
    first = replace(LONE, window="agents-1")
    second = replace(first, id="%5", handle="bo")
    made = commands(start_lines("team", [want("cy", "agents-1", 2)], (first, second), Layout(panes_per_window=4)))
    assert made[-2:] == [
        ["join-pane", "-d", "-s", "=team:=cy", "-t", "%5"],
        ["select-layout", "-t", "%5", "tiled"],
    ]


def test_a_window_that_a_person_made_is_neither_taken_nor_mixed_up() -> None:
    persons = replace(LONE, handle="", team="")
    made = commands(start_lines("team", [want("ana")], (persons,), Layout()))
    assert made[0][5] == "ana_2"
    assert made[1][3] == "=team:=ana_2"
    assert made[-1] == ["rename-window", "-t", "=team:=ana_2", "ana"]


def test_a_living_pane_is_left_alone_and_a_dead_one_respawned_in_place() -> None:
    assert start_lines("team", [want("ana")], (LONE,), Layout()) == []
    assert commands(start_lines("team", [want("ana")], (replace(LONE, dead=True),), Layout())) == [
        ["select-pane", "-t", "%1", "-T", ""],
        ["respawn-pane", "-k", "-t", "%1", "--", "/bin/sh", "/run dir/ana/launch.sh"],
    ]


def test_a_pane_of_another_team_is_no_pane_of_ours() -> None:
    made = commands(start_lines("team", [want("ana")], (replace(LONE, team="other", dead=True),), Layout()))
    assert made[0][0] == "new-window"


def test_no_command_uses_an_index_or_a_shell_line() -> None:
    wanted = [want(f"agent-{number}", f"w{number // 4}", number % 4) for number in range(20)]
    for command in commands(start_lines("team", wanted, (LONE,), Layout(panes_per_window=4))):
        targets = [command[i + 1] for i, word in enumerate(command) if word in ("-t", "-s")]
        assert all(target == "=team:" or target.startswith(("=team:=", "%")) for target in targets)
        if "--" in command:
            assert command[command.index("--") + 1] == "/bin/sh"


def test_a_persons_wishes_come_before_what_the_fleet_needs() -> None:
    lines = conf(Layout(size=(120, 40)), "team").splitlines()
    wishes = lines.index("source-file -q ~/.config/nbs-fleet/tmux.conf")
    after = lines[wishes + 1 :]
    assert "set -g remain-on-exit on" in after
    assert 'set -g update-environment ""' in after
    assert "set -g default-size 120x40" in after
    assert "set -g base-index 0" in lines[:wishes]
    assert not any("window-size manual" in text for text in lines)


def test_the_status_line_and_the_keys_run_programs_of_the_run_directory_whatever_it_is_called() -> None:
    lines = conf(Layout(), "team", "/run/a #{b} it's/bin").splitlines()
    (status,) = [text for text in lines if text.startswith("set -g status-right ")]
    assert "##{b}" in status
    bound = [text.split()[1] for text in lines if text.startswith("bind-key ")]
    assert bound == ["Tab", "S", "B", "g"]
    wishes = lines.index("source-file -q ~/.config/nbs-fleet/tmux.conf")
    assert max(lines.index(text) for text in lines if text.startswith("bind-key")) < wishes, "a person may bind anew"
