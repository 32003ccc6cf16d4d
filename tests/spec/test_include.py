"""Included files: defaults below the including file, with their own names in errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nbs_fleet.errors import TeamFileError
from nbs_fleet.spec.loaded import Loaded

Load = Callable[..., Loaded]
TOP = "version: 1\nteam: t\n"


def problems(load: Load, text: str) -> tuple[str, ...]:
    with pytest.raises(TeamFileError) as caught:
        load(text)
    return caught.value.problems


def test_the_including_file_stands_above_the_included_ones(root: Path, load: Load) -> None:
    (root / "a.yaml").write_text("model: opus\nenv: {A: a, B: a, C: a}\nargs: [--a]\n")
    (root / "b.yaml").write_text("env: {B: b, C: b}\nargs: [--b]\nstop: signal\n")
    agent = load(TOP + "include: [a.yaml, b.yaml]\nenv: {C: c}\nagents: [{handle: ana}]\n").team.agents[0]
    assert agent.env == {"A": "a", "B": "b", "C": "c"}
    assert (agent.args, agent.model, agent.stop) == (("--b",), "opus", "signal")


def test_agents_of_an_included_file_come_first_and_can_be_changed_by_handle(root: Path, load: Load) -> None:
    (root / "base.yaml").write_text("agents:\n  - {handle: ana, model: opus, env: {A: x}}\n  - {handle: bo}\n")
    text = TOP + "include: [base.yaml]\nagents:\n  - {handle: cy}\n  - {handle: ana, env: {B: y}, count: 2}\n"
    team = load(text).team
    assert [a.handle for a in team.agents] == ["ana-1", "ana-2", "bo", "cy"]
    assert (team.agents[0].model, team.agents[0].env) == ("opus", {"A": "x", "B": "y"})


def test_a_handle_that_one_file_names_twice_is_still_an_error(root: Path, load: Load) -> None:
    (root / "base.yaml").write_text("agents: [{handle: ana}]\n")
    lines = problems(load, TOP + "include: [base.yaml]\nagents:\n  - {handle: ana}\n  - {handle: ana}\n")
    assert [line.split(": ")[0] for line in lines] == ["team.yaml:6:14"]


def test_roles_merge_by_name_and_a_recovery_is_replaced_whole(root: Path, load: Load) -> None:
    (root / "base.yaml").write_text(
        "on_idle: {do: nudge, attempts: 3, text: go}\nroles: {r: {model: opus, prompt_text: hi}}\n"
    )
    (root / "p.md").write_text("hello")
    text = TOP + "include: [base.yaml]\non_idle: restart\nroles: {r: {stop: signal, prompt: p.md}}\n"
    agent = load(text + "agents: [{handle: ana, role: r}]\n").team.agents[0]
    assert (agent.on_idle.do, agent.on_idle.attempts, agent.on_idle.text) == ("restart", 1, None)
    assert (agent.model, agent.stop) == ("opus", "signal")
    assert (agent.prompt, agent.prompt_text) == (str(root / "p.md"), None)


def test_paths_are_taken_from_the_file_in_which_they_are_written(root: Path, load: Load) -> None:
    (root / "lib").mkdir()
    (root / "lib" / "base.yaml").write_text("root: ..\nroles: {r: {prompt: p.md, skills: [s]}}\n")
    (root / "lib" / "p.md").write_text("hello")
    (root / "lib" / "s").mkdir()
    team = load(TOP + "include: [lib/base.yaml]\nagents: [{handle: ana, role: r}]\n").team
    assert team.root == str(root)
    assert (team.agents[0].prompt, team.agents[0].skills) == (str(root / "lib/p.md"), (str(root / "lib/s"),))


def test_problems_in_an_included_file_carry_its_name(root: Path, load: Load) -> None:
    (root / "lib").mkdir()
    (root / "lib" / "base.yaml").write_text("# base\nmodle: opus\nagents: [{handle: ana, count: 0}]\n")
    lines = problems(load, TOP + "include: [lib/base.yaml]\ncolour: red\n")
    assert lines == (
        "team.yaml:4:1: colour: unknown key; `nbs-fleet schema` lists all",
        'lib/base.yaml:2:1: modle: unknown key; did you mean "model"?',
        "lib/base.yaml:3:31: agents[0].count: must be at least 1",
    )


def test_an_included_file_with_broken_syntax_or_bytes_is_named(root: Path, load: Load) -> None:
    (root / "a.yaml").write_text("model: [opus\n")
    (root / "b.yaml").write_bytes(b"x: \xff\n")
    assert problems(load, TOP + "include: [a.yaml, b.yaml]\nagents: [{handle: ana}]\n") == (
        'a.yaml:2:1: the list that begins at 1:8 is not closed here; write "," between its parts and "]" at its end',
        "b.yaml:1:4: byte 0xff is not UTF-8; save the file as UTF-8",
    )


def test_files_that_include_each_other_are_told_with_the_chain(root: Path, load: Load) -> None:
    (root / "a.yaml").write_text("include: [b.yaml]\n")
    (root / "b.yaml").write_text("include: [a.yaml]\n")
    assert problems(load, TOP + "include: [a.yaml]\nagents: [{handle: ana}]\n") == (
        "b.yaml:1:11: include[0]: includes go in a circle: a.yaml -> b.yaml -> a.yaml; remove this line",
    )


def test_the_same_file_may_be_included_by_two_files(root: Path, load: Load) -> None:
    (root / "base.yaml").write_text("model: opus\n")
    (root / "a.yaml").write_text("include: [base.yaml]\nstop: signal\n")
    (root / "b.yaml").write_text("include: [base.yaml]\n")
    agent = load(TOP + "include: [a.yaml, b.yaml]\nagents: [{handle: ana}]\n").team.agents[0]
    assert (agent.model, agent.stop) == ("opus", "signal")


def test_includes_are_bounded_in_depth_and_number(root: Path, load: Load) -> None:
    for n in range(12):
        (root / f"d{n}.yaml").write_text(f"include: [d{n + 1}.yaml]\n")
    lines = problems(load, TOP + "include: [d0.yaml]\nagents: [{handle: ana}]\n")
    assert lines == ("d7.yaml:1:11: include[0]: included more than 8 levels deep; include the file further up",)
    (root / "empty.yaml").write_text("vars: {}\n")
    many = ", ".join(["empty.yaml"] * 51)
    lines = problems(load, TOP + f"include: [{many}]\nagents: [{{handle: ana}}]\n")
    assert lines[0].endswith("include[50]: more than 50 includes; merge some of the files")


def test_an_include_may_be_named_by_a_variable_which_is_not_shown(root: Path, load: Load) -> None:
    (root / "base-x.yaml").write_text("model: opus\n")
    text = TOP + "include: ['base-${WHICH}.yaml']\nagents: [{handle: ana}]\n"
    assert load(text, {"WHICH": "x"}).team.agents[0].model == "opus"
    with pytest.raises(TeamFileError) as caught:
        load(text, {"WHICH": "hidden"})
    assert caught.value.problems == (
        'team.yaml:3:11: include[0]: "base-${WHICH}.yaml": no such file; did you mean "base-x.yaml"?',
    )
