"""The entry point: finding commands, one door for errors, and a start that imports little."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nbs_fleet import __version__
from nbs_fleet.cli import app, params, parsing
from nbs_fleet.errors import FleetError, UnknownNameError
from tests.support.cli_world import agent, call, make_team, write_record

LISTED = [name for name, entry in app.COMMANDS.items() if entry.summary]
PARSED = [name for name in LISTED if not app.COMMANDS[name].raw]
HEAVY = ("typer", "click", "rich", "pydantic", "jinja2", "libtmux", "yaml", "psutil", "watchdog")


def fake(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """A command `ls` that raises."""

    def run(_: list[str]) -> int:
        raise error

    monkeypatch.setitem(app.COMMANDS, "ls", app.Entry("", "", raw=True))
    monkeypatch.setattr(app, "load", lambda _: run)


def test_the_version_is_the_package_s() -> None:
    said = call("--version")
    assert (said.code, said.out) == (0, f"nbs-fleet {__version__}\n")


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_command_with_a_line(argv: list[str]) -> None:
    said = call(*argv)
    assert said.code == 0
    for name in LISTED:
        assert f"\n  {name} " in said.out
    assert "__complete" not in said.out


@pytest.mark.parametrize("name", PARSED)
def test_each_command_s_help_has_examples_that_parse(name: str) -> None:
    assert call(name, "--help").code == 0
    spec = params.command(name, app.load(app.COMMANDS[name]))
    assert spec.examples
    for example in spec.examples:
        program, *words = example.split()
        assert program == "nbs-fleet"
        found, rest = app.find(words)
        assert found == name
        assert set(parsing.parse(spec, rest)) == {field.name for field in spec.fields}


@pytest.mark.parametrize("name", PARSED)
def test_each_parameter_is_explained(name: str) -> None:
    for field in params.command(name, app.load(app.COMMANDS[name])).fields:
        assert field.param.help, field.name


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["pss"], 'unknown command "pss"; did you mean "ps"?'),
        (["valdate", "x"], 'unknown command "valdate"; did you mean "validate"?'),
        (["statu"], 'unknown command "statu"; did you mean "status"?'),
        (["zzz"], 'unknown command "zzz"'),
        (["--json", "ps"], "unknown option --json"),
    ],
)
def test_an_unknown_command_is_a_usage_error_with_the_nearest(argv: list[str], message: str) -> None:
    said = call(*argv)
    assert said.code == 2
    assert said.out == ""
    assert said.err.splitlines()[0] == f"error: nbs-fleet: {message}"
    assert "hint: " in said.err


def test_wrong_arguments_are_a_usage_error_that_names_the_help() -> None:
    said = call("why", "ana", "--jsn")
    assert said.code == 2
    assert said.err == (
        "error: nbs-fleet why: unknown option --jsn; did you mean --json?\nhint: see nbs-fleet why --help\n"
    )


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
        (["--help"], ()),
        (["ls"], ()),
        (["ps", "--json"], ()),
        (["why", "ana"], ()),
        (["logs"], ()),
        (["completion", "bash"], ()),
        (["attach", "ana"], ()),
        (["sim", "--version"], ()),
        (["schema"], ("pydantic",)),
    ],
)
def test_a_command_imports_no_heavy_module_it_does_not_need(
    argv: list[str], allowed: tuple[str, ...], tmp_path: Path
) -> None:
    paths = make_team(tmp_path / "root", "review", (agent("ana"),))
    write_record(paths, "ana", since=1.0)
    code = (
        "import sys\nfrom nbs_fleet.cli import app\n"
        f"app.run({argv!r})\n"
        f"print(*sorted(m for m in {HEAVY!r} if m in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True, stdin=subprocess.DEVNULL
    )
    assert set(done.stderr.splitlines()[-1].split()) <= set(allowed)


def test_the_version_needs_neither_msgspec_nor_asyncio() -> None:
    code = "import sys\nfrom nbs_fleet.cli import app\napp.run(['--version'])\nprint({'msgspec', 'asyncio'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
