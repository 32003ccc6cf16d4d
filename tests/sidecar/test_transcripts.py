"""What a sidecar reads of a transcript: its edges, its size, and the prompts of this run of the client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbs_fleet.drivers.base import Turns
from nbs_fleet.launch import registry
from nbs_fleet.sidecar.actions import ReadTranscript, ScreenSeen, TranscriptSeen
from nbs_fleet.sidecar.sources import EDGE_BYTES, edges, read_transcript
from tests.support.sidecar_run import IDLE, Run, file

BEFORE = (
    '{"type":"user","message":{"role":"user","content":"before"},"timestamp":"2026-11-01T10:00:00.000Z","uuid":"u1"}\n'
)
MODE = '{"type":"mode","mode":"normal","sessionId":"s"}\n'
NOW = BEFORE.replace("before", "go on")


def test_a_prompt_of_an_earlier_run_does_not_acknowledge_the_prompt_of_this_one() -> None:
    run = Run(prompt=True)
    assert ReadTranscript() in run.tell(file(IDLE))
    run.tell(ScreenSeen(IDLE), TranscriptSeen(Turns(prompts=3), 900, fresh=0))
    assert not run.report.ready
    run.tell(TranscriptSeen(Turns(prompts=4), 950, fresh=1))
    assert run.report.ready


@pytest.mark.parametrize("padding", [0, EDGE_BYTES, 3 * EDGE_BYTES])
def test_what_follows_the_beginning_of_this_run_is_told_apart(tmp_path: Path, padding: int) -> None:
    driver = registry.get("claude")
    path = tmp_path / "s.jsonl"
    filler = json.dumps({"type": "system", "content": "x" * 1000}) + "\n"
    path.write_text(BEFORE + filler * (padding // 1000))
    begun = path.stat().st_size
    assert read_transcript(driver, str(path), begun).prompted is False
    with path.open("a") as more:
        more.write(MODE)
    assert read_transcript(driver, str(path), begun).prompted is False
    with path.open("a") as more:
        more.write(NOW + filler * (padding // 1000))
    seen = read_transcript(driver, str(path), begun)
    assert (seen.fresh, seen.size, seen.prompted) == (1, path.stat().st_size, True)


def test_a_session_that_is_new_or_was_written_anew_counts_as_a_whole(tmp_path: Path) -> None:
    driver = registry.get("claude")
    path = tmp_path / "s.jsonl"
    path.write_text(BEFORE)
    assert read_transcript(driver, str(path)).prompted
    assert read_transcript(driver, str(path), 10_000).prompted
    assert not read_transcript(driver, str(tmp_path / "none"), 10).prompted
    assert edges(None, 5) == ("", "")
