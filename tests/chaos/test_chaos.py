"""The parts of a soak that are pure, and one short soak of its own."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.testing.world import Done
from tests.chaos import verdict
from tests.chaos.__main__ import line, table
from tests.chaos.clock import Clock
from tests.chaos.damage import damage, flipped, put_right
from tests.chaos.kinds import FILES, PASSING, REQUIRED, Kind, Way, file_kind
from tests.chaos.schedule import schedule
from tests.chaos.soak import Outcome, soak

SECONDS = 45.0


@given(st.integers(0, 10_000), st.floats(0, 300))
def test_a_schedule_has_each_kind_of_fault_and_of_file_and_follows_from_its_seed(seed: int, seconds: float) -> None:
    strikes = schedule(seed, seconds)
    assert {one.kind for one in strikes} == set(Kind)
    assert {*REQUIRED, *PASSING} <= {one.file for one in strikes}
    assert schedule(seed, seconds) == strikes


def test_longer_soaks_have_more_faults() -> None:
    assert len(schedule(1, 300)) > len(schedule(1, 60)) >= len(REQUIRED) + len(Kind) - 1


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("plan.json", "plan"),
        ("agents/a1/state.json", "record"),
        ("agents/a1/queue/d-mx0vut0q-dp31e.json", "message"),
        ("agents/a1/queue/.d-mx0vut0q-dp31e.json.12.tmp", "temporary file"),
        ("agents/a1/mail/1795898933635029-d-mx0vut0q-dp31e.msg", "mail"),
        ("agents/a1/story.jsonl.2", "agent's story"),
        ("story.jsonl", "team's story"),
        ("../../../../run/nbs-fleet/8098481b/a1.env", "values"),
        ("something.else", None),
    ],
)
def test_a_file_is_known_by_its_path(path: str, kind: str | None) -> None:
    assert file_kind(path) == kind


@given(st.binary(min_size=1, max_size=5000), st.integers())
def test_flipped_bits_change_the_first_or_the_last_byte(data: bytes, seed: int) -> None:
    changed = flipped(data, random.Random(seed))
    assert len(changed) == len(data)
    assert changed[0] != data[0] or changed[-1] != data[-1]


@pytest.mark.parametrize("way", Way)
def test_damage_is_put_right_by_another_file_or_the_old_content(tmp_path: Path, way: Way) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(b'{"a": 1}')
    found = damage(str(tmp_path), "x.json", "record", way, 7)
    assert found is not None
    assert not put_right(str(tmp_path), found)
    other = tmp_path / "other"
    other.write_bytes(b'{"a": 2}')
    os.replace(other, file)
    assert put_right(str(tmp_path), found)


def test_a_file_that_is_gone_is_not_damaged(tmp_path: Path) -> None:
    assert damage(str(tmp_path), "x.json", "record", Way.FLIP, 7) is None


@pytest.mark.parametrize(
    ("code", "out", "wrong"),
    [
        (0, "fine", False),
        (1, "error: can't write: No space left on device", False),
        (1, "", True),
        (1, "Traceback (most recent call last):", True),
        (1, "error: this is a bug in nbs-fleet: OSError", True),
        (-9, "", True),
        (None, "", True),
    ],
)
def test_a_command_may_fail_but_not_anyhow(code: int | None, out: str, wrong: bool) -> None:
    assert bool(verdict.commands([Done(("ps",), code, out)])) is wrong


def test_the_table_has_each_fault_and_a_line_says_how_it_went() -> None:
    outcome = Outcome(3, 90.0, 4.0, ("lost",), {"disk full": 2}, {"plan": 1}, {}, {"directives delivered": 5}, ("x",))
    assert "disk full" in table([outcome, outcome])
    assert "4" in table([outcome, outcome]).split("disk full")[1].splitlines()[0]
    assert line(outcome).startswith("seed 3: 1 wrong; 2 faults, 5 directives")


def test_every_kind_of_file_is_to_be_struck_or_passing() -> None:
    assert Counter([*REQUIRED, *PASSING]) == Counter(list(FILES))


@pytest.mark.tmux
@pytest.mark.long
def test_a_soak_breaks_no_law(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = soak(int(os.environ.get("NBS_SEED") or 1), SECONDS, lambda _: None)
    with capsys.disabled():
        print(f"\n{line(outcome)}\n{table([outcome])}\n{json.dumps(outcome.remarks)}")
    # Without a compiler nobody can set the clock here.
    unset = {f"never injected: {kind}" for kind in (Kind.CLOCK_BACK, Kind.CLOCK_ON)} if not Clock.possible() else set()
    assert set(outcome.wrong) - unset == set(), "\n".join(outcome.wrong)
