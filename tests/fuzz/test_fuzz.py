"""Each target with few inputs among the fast tests, with many among the long ones; the command is for more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import strategies as st

from nbs_fleet.errors import FleetError
from tests.fuzz.run import run
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

CHECKOUT = Path(__file__).resolve().parent.parent.parent
FEW = 25
MANY = 2_000
IN_CI = os.environ.get("CI") == "true"


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_in_is_read_or_refused(name: str) -> None:
    _is_well(name, FEW)


@pytest.mark.long
@pytest.mark.parametrize("name", TARGETS)
def test_and_so_it_is_for_many_inputs(name: str) -> None:
    _is_well(name, MANY)


def _is_well(name: str, inputs: int) -> None:
    # As elsewhere: new inputs are for whoever works on the code.
    seed = 1 if IN_CI else int.from_bytes(os.urandom(3))
    result = run(TARGETS[name], inputs, 120.0, seed)
    assert result.found is None, f"seed {seed}: {result.found.data[:500]!r}\n{result.found.trace}"
    assert result.inputs >= min(inputs, FEW)


def _refusing(data: bytes) -> None:
    if b"a" in data:
        raise FleetError("no a, please")


def _failing(data: bytes) -> None:
    assert len(data) < 5


def _hanging(data: bytes) -> None:
    while data:
        pass


def _hungry(data: bytes) -> None:
    assert len(bytearray(2 << 30)) > len(data)


def _target(read: object) -> Target:
    assert callable(read)
    return Target("x", "a reader of this test", lambda: st.binary(max_size=50), read)


def test_what_is_refused_in_words_is_no_finding() -> None:
    assert run(_target(_refusing), 200, 60, 0)[3] is None


def test_a_finding_is_the_shortest_input_that_shows_it() -> None:
    result = run(_target(_failing), 500, 60, 0)
    assert result.found is not None
    assert result.found.data == b"\0" * 5
    assert "AssertionError" in result.found.trace


@pytest.mark.parametrize(("read", "words"), [(_hanging, "not done within"), (_hungry, "MemoryError")])
def test_an_input_that_takes_all_time_or_memory_is_one(
    read: object, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fuzz.target.CPU_SECONDS", 0.2)
    result = run(_target(read), 500, 60, 0)
    assert result.found is not None
    assert words in result.found.trace


def test_the_command_tells_how_many_inputs_it_ran(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tests.fuzz", "cursors", "env-*", "--inputs", "30", "--keep", str(tmp_path)]
    done = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "60 inputs for 2 targets from seed 0; found in: none" in done.stdout
    assert (
        "no such target"
        in subprocess.run(
            [*argv[:3], "x"], cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False
        ).stderr
    )
