"""Shell completion: what is offered where, and scripts that shells accept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nbs_fleet.cli import init
from nbs_fleet.cli.completion import SCRIPTS, candidates
from tests.support.cli_world import agent, call, make_team


@pytest.fixture
def _team(tmp_path: Path) -> None:
    make_team(tmp_path / "root", "review", (agent("ana"), agent("bo-1", base="bo"), agent("bo-2", base="bo")))


@pytest.mark.usefixtures("_team")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["va"], ["validate"]),
        (["__"], []),
        (["why", "b"], ["bo-1", "bo-2"]),
        (["why", "ana", ""], []),
        (["restart", "ana", "b"], ["bo-1", "bo-2"]),
        (["why", "--j"], ["--json"]),
        (["why", "--team", ""], ["review"]),
        (["plan", "x", "--only", "ana,b"], ["ana,bo-1", "ana,bo-2"]),
        (["completion", "z"], ["zsh"]),
        (["init", "--template", ""], list(init.templates())),
        (["validate", ""], []),
        (["sim", "--"], []),
        (["nonsense", ""], []),
    ],
)
def test_the_words_that_fit_are_offered(words: list[str], offered: list[str]) -> None:
    assert candidates(words) == offered


def test_all_commands_are_offered_for_nothing() -> None:
    offered = candidates([""])
    assert {"up", "down", "ps", "why"} <= set(offered)
    assert "__complete" not in offered


def test_without_a_team_no_handle_is_offered_and_nothing_is_said() -> None:
    said = call("__complete", "why", "")
    assert (said.code, said.out, said.err) == (0, "", "")


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_each_shell_gets_a_script_it_can_read(shell: str, tmp_path: Path) -> None:
    said = call("completion", shell)
    assert said.code == 0
    program = shutil.which(shell)
    if program is None:
        return  # what can be checked without the shell was checked
    script = tmp_path / "script"
    script.write_text(said.out, encoding="utf-8")
    subprocess.run([program, "-n", str(script)], check=True, timeout=20)


@pytest.mark.usefixtures("_team")
def test_bash_completes_a_handle(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "nbs-fleet"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nbs_fleet "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = call("completion", "bash").out + (
        'COMP_WORDS=(nbs-fleet why bo); COMP_CWORD=2; _nbs_fleet; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=20, check=True, env=env)
    assert done.stdout.splitlines() == ["bo-1", "bo-2"]


def test_an_unknown_shell_is_refused() -> None:
    said = call("completion", "tcsh")
    assert said.code == 2
    assert '"tcsh" is none of bash, zsh, fish' in said.err
