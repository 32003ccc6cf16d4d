"""The entry point: finding commands, one door for errors, and a start that imports little."""

from __future__ import annotations

import inspect
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import pytest
import typer

from nbs_fleet import __version__
from nbs_fleet.cli import app, bringing, parsing
from nbs_fleet.errors import FleetError, UnknownNameError
from tests.support.cli_world import agent, call, make_team, write_record

PARSED = [name for name, entry in app.COMMANDS.items() if not entry.raw]
HEAVY = ("typer", "click", "rich", "pydantic", "jinja2", "libtmux", "yaml", "psutil", "watchdog", "textual")


def fake(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """A command `ls` that raises."""

    def run(words: Annotated[list[str] | None, typer.Argument()] = None) -> int:
        raise error

    monkeypatch.setattr(parsing, "load", lambda _: run)


def test_the_version_is_the_package_s() -> None:
    said = call("--version")
    assert (said.code, said.out) == (0, f"nbs-fleet {__version__}\n")


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_command_with_a_line(argv: list[str]) -> None:
    said = call(*argv)
    assert said.code == 0
    for name, entry in app.COMMANDS.items():
        first, _, second = name.partition(" ")
        assert f"\n  {first} " in said.out
        if second:
            assert f"\n  {second} " in call(first, "--help").out
        else:
            assert entry.summary in said.out
    assert "\n  status" not in said.out


@pytest.mark.parametrize("name", PARSED)
def test_each_command_s_help_has_examples_that_parse(name: str) -> None:
    said = call(*name.split(), "--help")
    assert said.code == 0
    examples = parsing.described(app.load(app.COMMANDS[name].target))[1]
    assert examples
    for example in examples:
        assert f"\n    {example}\n" in said.out
        program, *words = example.split()
        assert program == "nbs-fleet"
        assert words[: len(name.split())] == name.split()
        command = parsing.command(name)
        command.make_context(name, words[len(name.split()) :])  # raises what it refuses


@pytest.mark.parametrize("name", PARSED)
def test_each_parameter_is_explained(name: str) -> None:
    command = parsing.command(name)
    context = command.make_context(name, [], resilient_parsing=True)
    for param in command.get_params(context):
        record = param.get_help_record(context)
        assert record is not None
        assert record[1].partition("[")[0].strip(), param.name


@pytest.mark.parametrize(
    ("argv", "place", "message"),
    [
        (["pss"], "", "no such command 'pss'. Did you mean 'ps'?"),
        (["valdate", "x"], "", "no such command 'valdate'. Did you mean 'validate'?"),
        (["statu"], "", "no such command 'statu'. Did you mean 'status', 'start', 'restart'?"),
        (["zzz"], "", "no such command 'zzz'"),
        (["--json", "ps"], "", "no such option: --json"),
        (["inbox"], " inbox", "missing command"),
        (["inbox", "lst"], " inbox", "no such command 'lst'. Did you mean 'list'?"),
        (["inbox", "show"], " inbox show", "missing argument 'ID'"),
        (["why", "ana", "--jsn"], " why", "no such option: --jsn; did you mean --json?"),
        (["why", "ana", "bo"], " why", "got unexpected extra argument(s) (bo)"),
        (["init", "-t"], " init", "option '-t' requires an argument"),
        (["completion", "csh"], " completion", "invalid value for 'SHELL': 'csh' is not one of 'bash', 'zsh', 'fish'"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error_that_names_the_help(argv: list[str], place: str, message: str) -> None:
    said = call(*argv)
    assert (said.code, said.out) == (2, "")
    assert said.err == f"error: nbs-fleet{place}: {message}\nhint: see nbs-fleet{place} --help\n"


def test_an_alias_is_the_command_itself() -> None:
    assert call("status", "--help").out == call("ps", "--help").out.replace("nbs-fleet ps [", "nbs-fleet status [")


def test_options_may_follow_what_they_are_about(tmp_path: Path) -> None:
    make_team(tmp_path / "root", "review", (agent("ana"),))
    first, last = call("why", "--json", "--team", "review", "ana"), call("why", "ana", "--json", "--team=review")
    assert first.code == last.code == 0
    assert (first.out, first.err) == (last.out, last.err)


def test_a_known_error_shows_message_and_hint_and_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, UnknownNameError("no team", hint="start one"))
    said = call("ls")
    assert (said.code, said.err) == (4, "error: no team\nhint: start one\n")
    fake(monkeypatch, FleetError("broken"))
    assert call("ls").err == "error: broken\n"


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, KeyboardInterrupt())
    said = call("ls")
    assert (said.code, said.err) == (130, "error: interrupted\n")


def test_a_fault_of_ours_leaves_a_private_crash_file_and_two_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(monkeypatch, RuntimeError("boom\nand more"))
    said = call("ls", "secret-argument")
    assert said.code == 1
    first, second = said.err.splitlines()
    assert first == "error: this is a bug in nbs-fleet: RuntimeError: boom"
    path = Path(second.removeprefix("hint: please report it with "))
    assert path.is_relative_to(tmp_path / "state" / "nbs-fleet")
    text = path.read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "secret-argument" not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_old_crash_files_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "nbs-fleet" / "crashes"
    folder.mkdir(parents=True)
    for number in range(15):
        (folder / f"20000101T0000{number:02d}-1.txt").touch()
    fake(monkeypatch, RuntimeError("boom"))
    call("ls")
    kept = sorted(path.name for path in folder.iterdir())
    assert len(kept) == 10
    assert "boom" in (folder / kept[-1]).read_text(encoding="utf-8")


def test_a_crash_file_that_can_not_be_written_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    fake(monkeypatch, RuntimeError("boom"))
    said = call("ls")
    assert said.code == 1
    assert "no crash file could be written" in said.err
    assert "Traceback" not in said.err


def test_a_reader_that_goes_away_is_no_fault_of_ours() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "nbs_fleet", "--help"], stdout=write, stderr=subprocess.PIPE, timeout=20, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("argv", "allowed"),
    [
        (["--version"], ()),
        (["sim", "--version"], ()),
        (["--help"], ("typer",)),
        (["ls"], ("typer",)),
        (["ps"], ("typer",)),
        (["ps", "--json"], ("typer",)),
        (["why", "ana"], ("typer",)),
        (["logs"], ("typer",)),
        (["completion", "bash"], ("typer",)),
        (["attach", "ana"], ("typer",)),
        (["stop", "nobody"], ("typer",)),
        (["inbox", "list"], ("typer",)),
        (["schema"], ("typer", "pydantic")),
        *(([*name.split(), "--help"], ("typer",)) for name in PARSED),
    ],
)
def test_a_command_imports_no_heavy_module_it_does_not_need(
    argv: list[str], allowed: tuple[str, ...], tmp_path: Path
) -> None:
    paths = make_team(tmp_path / "root", "review", (agent("ana"),))
    write_record(paths, "ana", since=1.0)
    assert set(imported(argv, HEAVY)) <= set(allowed)


def test_a_command_imports_no_other_command() -> None:
    others = {entry.target.partition(":")[0] for name, entry in app.COMMANDS.items() if name != "why"}
    assert imported(["why", "--help"], tuple(others)) == []
    assert imported(["--help"], tuple(others)) == []
    assert imported(["inbox", "--help"], tuple(others)) == []


def imported(argv: list[str], modules: tuple[str, ...]) -> list[str]:
    """Which of these modules a process has imported once it has run a command line."""
    code = (
        "import sys\nfrom nbs_fleet.cli import app\n"
        f"app.run({argv!r})\n"
        f"print(*sorted(m for m in {modules!r} if m in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True, stdin=subprocess.DEVNULL
    )
    return done.stderr.splitlines()[-1].split()


def test_the_version_needs_neither_typer_nor_msgspec_nor_asyncio() -> None:
    code = "import sys\nfrom nbs_fleet.cli import app\napp.run(['--version'])\nprint({'typer', 'msgspec', 'asyncio'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_rows_of_a_team_need_neither_asyncio_nor_for_programs_typer(tmp_path: Path) -> None:
    paths = make_team(tmp_path / "root", "review", (agent("ana"),))
    write_record(paths, "ana", since=1.0)
    assert imported(["ps", "--json"], ("asyncio", "msgspec", "typer")) == ["msgspec"]
    assert imported(["ps"], ("asyncio", "msgspec", "typer")) == ["msgspec", "typer"]


def test_what_is_answered_without_a_parser_is_answered_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = make_team(tmp_path / "root", "review", (agent("ana"),))
    write_record(paths, "ana", since=1.0)
    monkeypatch.setattr(time, "time", lambda: 100.0)
    for words in app.QUICK:
        assert call(*words) == call(*words, "--team", "review")
        assert call(*words).code == 0


def test_plain_lines_of_up_mean_what_the_parser_makes_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    meant: list[tuple[str, dict[str, object]]] = []
    defaults = {name: one.default for name, one in inspect.signature(bringing.bring).parameters.items()}

    def note(file: str, **more: object) -> int:
        meant.append((file, {**defaults, **more, "file": None}))
        return 0

    monkeypatch.setattr(bringing, "bring", note)
    monkeypatch.setattr("nbs_fleet.cli.up.bring", note)
    for flags in ([], *([flag] for flag in bringing.FLAGS), ["--wait", "--no-wait"], ["--no-wait", "--wait", "--json"]):
        for line in (["t.yaml", *flags], [*flags, "t.yaml"]):
            assert bringing.plain(line) == 0
            assert parsing.execute(["up", *line]) == 0
            assert meant[-1] == meant[-2]


@pytest.mark.parametrize(
    "line", [[], ["--json"], ["a", "b"], ["a", "--only", "x"], ["a", "--"], ["a", "-h"], ["--timeout=1s", "a"], ["-"]]
)
def test_other_lines_of_up_are_for_the_parser(line: list[str]) -> None:
    assert bringing.plain(line) is None


def test_a_plain_up_needs_little_before_its_agents_start() -> None:
    parts = "nbs_fleet.cli.bringing, nbs_fleet.supervisor.prepare"
    code = f"import sys, {parts}\nprint({{'asyncio', 'tenacity', 'libtmux', 'psutil', 'jinja2', 'typer', 'pydantic'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
