"""A growing file is counted as it grows: nothing twice, nothing missed, half lines later."""

from __future__ import annotations

import json
from pathlib import Path

from nbs_fleet.drivers.claude import Claude
from nbs_fleet.supervisor import meters
from nbs_fleet.supervisor.meters import Meter
from nbs_fleet.supervisor.policy import add


def line(ident: str, tokens: int) -> str:
    return json.dumps({"type": "assistant", "message": {"id": ident, "usage": {"input_tokens": tokens}}}) + "\n"


def test_a_file_is_counted_as_it_grows_and_half_a_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    meter = Meter(Claude(), str(path))
    assert meter.read().spent.total == 0
    path.write_text(line("a", 5) + line("b", 7)[:20], encoding="utf-8")
    assert meter.read().spent.total == 5
    path.write_text(line("a", 5) + line("b", 7) + line("ü", 1), encoding="utf-8")
    assert meter.read().spent.total == 13
    assert meter.read().spent.total == 13


def test_chunks_may_end_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(line(f"ü{n}", n) for n in range(40)), encoding="utf-8")
    for size in (1, 7, 100, 10_000):
        before, meters.CHUNK = meters.CHUNK, size
        try:
            assert Meter(Claude(), str(path)).read().spent.total == sum(range(40))
        finally:
            meters.CHUNK = before


def test_another_file_of_the_same_name_is_counted_anew(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(line("a", 50), encoding="utf-8")
    meter = Meter(Claude(), str(path))
    assert meter.read().spent.total == 50
    path.write_text(line("b", 3), encoding="utf-8")
    assert meter.read().spent.total == 3
    path.unlink()
    assert meter.read().spent.total == 3


def test_sessions_are_added_up_and_the_oldest_ones_become_one_sum() -> None:
    known: dict[str, int] = {}
    for number in range(60):
        known = add(known, f"s{number}", 10)
        known = add(known, f"s{number}", 15)
    assert sum(known.values()) == 60 * 15
    assert len(known) == 51
    assert add(known, "s59", 3) == known
