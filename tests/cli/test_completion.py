"""Shell completion: what is offered where, and scripts that shells accept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nbs_fleet.cli import init
from nbs_fleet.cli.completion import HINTS
from tests.support.cli_world import agent, call, make_team


@pytest.fixture
def _team(tmp_path: Path) -> None:
    make_team(tmp_path / "root", "review", (agent("ana"), agent("bo-1", base="bo"), agent("bo-2", base="bo")))


def offered(monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """The words that bash is offered for the last word of this line."""
    monkeypatch.setenv("_NBS_FLEET_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"nbs-fleet {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" "))))
    said = call()
    assert (said.code, said.err) == (0, "")
    return said.out.split()


@pytest.mark.usefixtures("_team")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("va", ["validate"]),
        ("stat", []),
        ("inb", ["inbox"]),
        ("inbox a", ["archive"]),
        ("inbox list b", ["bo-1", "bo-2"]),
        ("why b", ["bo-1", "bo-2"]),
        ("why ana ", []),
        ("restart ana b", ["bo-1", "bo-2"]),
        ("why --j", ["--json"]),
        ("why --team ", ["review"]),
        ("plan x --only ana,b", ["ana,bo-1", "ana,bo-2"]),
        ("why --team none ", []),
        ("completion z", ["zsh"]),
        ("send ana --priority h", ["high"]),
        ("init --template ", list(init.templates())),
        ("validate ", []),
        ("sim --", ["--help"]),
    ],
)
def test_the_words_that_fit_are_offered(monkeypatch: pytest.MonkeyPatch, line: str, words: list[str]) -> None:
    assert offered(monkeypatch, line) == words


def test_all_commands_are_offered_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"up", "down", "ps", "why", "inbox"} <= set(offered(monkeypatch, ""))


def test_without_a_team_no_handle_is_offered_and_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(monkeypatch, "why ") == []


@pytest.mark.usefixtures("_team")
@pytest.mark.parametrize(
    ("shell", "answer"), [("zsh", '_arguments \'*: :(("bo-1"\n"bo-2"))\''), ("fish", "bo-1\nbo-2")]
)
def test_the_other_shells_are_answered_in_their_way(monkeypatch: pytest.MonkeyPatch, shell: str, answer: str) -> None:
    monkeypatch.setenv("_NBS_FLEET_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "nbs-fleet why b")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    said = call()
    assert (said.code, said.out, said.err) == (0, f"{answer}\n", "")


def test_a_fault_while_completing_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> list[str]:
        raise RuntimeError("boom")

    monkeypatch.setattr("nbs_fleet.cli.lookup.handles_of", broken)
    monkeypatch.setattr("nbs_fleet.cli.lookup.find_team", lambda _: None)
    monkeypatch.setenv("_NBS_FLEET_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "nbs-fleet why b")
    monkeypatch.setenv("COMP_CWORD", "2")
    said = call()
    assert (said.code, said.out, said.err) == (1, "", "")


@pytest.mark.parametrize("shell", sorted(HINTS))
def test_each_shell_gets_a_script_it_can_read(shell: str, tmp_path: Path) -> None:
    said = call("completion", shell)
    assert said.code == 0
    assert said.out.splitlines()[-1] == HINTS[shell]
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
        "COMP_WORDS=(nbs-fleet why bo); COMP_CWORD=2; "
        "eval \"$(complete -p nbs-fleet | sed -E 's/.*-F ([^ ]+) .*/\\1/') nbs-fleet\"; "
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=20, check=True, env=env)
    assert done.stdout.splitlines() == ["bo-1", "bo-2"]
