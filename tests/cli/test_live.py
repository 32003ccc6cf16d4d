"""doctor --live: what is said of what was seen; the trial itself runs against clients in tests/e2e."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbs_fleet.cli.live import Verdict, said


@pytest.mark.parametrize(
    ("verdict", "good", "fix"),
    [
        (Verdict(delivered=True, rung="mail", heeded=True), True, ""),
        (Verdict(delivered=True, rung="mail", heeded=False), False, "delivery: keys"),
        (Verdict(delivered=True, rung="keys", heeded=True), False, "nothing to do"),
        (Verdict(delivered=False, rung="", heeded=False), False, "logged in"),
    ],
)
def test_each_outcome_has_its_words_and_its_advice(verdict: Verdict, good: bool, fix: str) -> None:
    assert verdict.good is good
    assert fix in verdict.words()[1]


def test_only_the_models_own_words_count(tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    asked = {"type": "user", "message": {"content": "say fleet123"}}
    transcript.write_text(json.dumps(asked) + "\nnot json\n")
    assert not said(str(transcript), "fleet123")
    answered = {"type": "assistant", "message": {"content": [{"type": "text", "text": "fleet123"}]}}
    with transcript.open("a") as file:
        file.write(json.dumps(answered) + "\n")
    assert said(str(transcript), "fleet123")
    assert not said(str(tmp_path / "missing"), "fleet123")
