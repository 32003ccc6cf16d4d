"""Tokens are counted once for each request, however its lines lie, and equal what an independent count finds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers import claude_usage
from nbs_fleet.drivers.usage import OPEN, Tally, Use

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.jsonl"))


def independent(text: str) -> int:
    """All tokens of a file, by its last line for each message id; the client's own messages count nothing."""
    requests: dict[str, int] = {}
    for line in text.splitlines():
        entry = json.loads(line)
        message = entry.get("message") or {}
        if entry.get("type") == "assistant" and message.get("model") != "<synthetic>":
            usage = message["usage"]
            requests[message["id"]] = sum(
                value for key, value in usage.items() if key.endswith("_tokens") and isinstance(value, int)
            )
    return sum(requests.values())


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_real_transcript_counts_as_an_independent_reading_does(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tally = claude_usage.count(Tally(), text)
    assert tally.spent.total == independent(text)


def entry(ident: str, use: Use, *, side: bool = False, model: str = "opus") -> str:
    usage = {
        "input_tokens": use.input,
        "output_tokens": use.output,
        "cache_read_input_tokens": use.cached,
        "cache_creation_input_tokens": use.stored,
    }
    message = {"id": ident, "model": model, "usage": usage, "content": [{"type": "text", "text": "x"}]}
    return json.dumps({"type": "assistant", "isSidechain": side, "message": message})


def test_a_reply_of_several_blocks_counts_once_with_its_last_numbers() -> None:
    lines = [entry("m1", Use(10, 1, 5, 0)), entry("m1", Use(10, 30, 5, 0)), entry("m2", Use(1, 1, 1, 1))]
    tally = claude_usage.count(Tally(), "\n".join(lines))
    assert tally.spent == Use(11, 31, 6, 1)
    assert (tally.context, tally.model) == (4, "opus")


def test_a_subagent_costs_tokens_and_fills_no_context_and_a_compaction_empties_it() -> None:
    lines = [entry("m1", Use(100, 20)), entry("s1", Use(50, 5), side=True)]
    tally = claude_usage.count(Tally(), "\n".join(lines))
    assert (tally.spent.total, tally.context) == (175, 120)
    tally = claude_usage.count(tally, '{"type":"system","subtype":"compact_boundary"}')
    assert (tally.spent.total, tally.context) == (175, 0)


def test_what_the_client_wrote_itself_and_what_is_damaged_counts_nothing() -> None:
    lines = [
        entry("e1", Use(9, 9), model="<synthetic>"),
        '{"type":"assistant","message":{"id":"m1","usage":"none"}}',
        '{"type":"assistant","message":{"id":"m2","usage":{"input_tokens":-5,"output_tokens":true}}}',
        '{"type":"assistant","message":{"id":["m3"],"usage":{"input_tokens":5}}}',
        '{"type":"user","message":{"usage":{"input_tokens":5}}}',
        '["usage"]',
        '{"usage": ',
    ]
    assert claude_usage.count(Tally(), "\n".join(lines)).spent.total == 0


uses = st.builds(Use, *(st.integers(0, 10**9) for _ in range(4)))
requests = st.lists(st.tuples(st.integers(0, 2 * OPEN), uses), max_size=4 * OPEN)


@given(requests, st.integers(1, 7))
def test_the_count_is_the_same_however_the_lines_are_cut(history: Sequence[tuple[int, Use]], size: int) -> None:
    lines = [entry(f"m{number}", use) for number, use in history]
    whole = claude_usage.count(Tally(), "\n".join(lines))
    parts = Tally()
    for start in range(0, len(lines), size):
        parts = claude_usage.count(parts, "\n".join(lines[start : start + size]))
    assert parts == whole
    recent = {number for number, _ in history[-OPEN:]}
    last = dict(history)
    if len(last) <= OPEN:
        assert whole.spent.total == sum(use.total for use in last.values())
    assert len(whole.open) <= OPEN
    assert recent <= {int(name[1:]) for name, _ in whole.open}
