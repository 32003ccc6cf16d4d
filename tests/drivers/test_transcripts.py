from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.claudeless import Claudeless
from nbs_fleet.model import AgentState
from tests.drivers.support import HERE, transcript, words

NAMES = sorted(path.stem for path in (HERE / "transcripts").glob("*.jsonl"))


@pytest.mark.parametrize(
    ("name", "prompts", "finished", "expected", "detail"),
    [
        ("idle", 1, 1, "idle", ""),
        ("tool_running", 2, 1, "busy", "Bash"),
        ("tool_done", 2, 2, "idle", ""),
        ("thinking", 3, 3, "busy", "prompt"),
        ("thought", 3, 4, "idle", ""),
        ("question", 1, 0, "busy", "AskUserQuestion"),
        ("question_declined", 1, 0, "idle", "interrupted"),
        ("interrupted", 1, 0, "idle", "interrupted"),
        ("interrupted_tool", 3, 2, "idle", "interrupted"),
        ("queued", 2, 2, "busy", "Bash"),
        ("queue_done", 2, 3, "idle", ""),
        ("subagent", 4, 4, "busy", "Agent"),
        ("subagent_done", 4, 5, "idle", ""),
        ("unknown_command", 1, 1, "idle", ""),
        ("shell", 1, 2, "idle", ""),
        ("compacted", 1, 2, "idle", ""),
        ("error_400", 1, 1, "unknown", "error: Prompt is too long"),
        ("error_401", 1, 1, "blocked login", "error: Invalid API key"),
        ("error_403", 1, 1, "blocked login", "error: Please run /login"),
        ("error_429", 1, 1, "limited", "error: API Error: Request rejected (429)"),
        ("error_500", 1, 1, "unknown", "error: API Error: 500"),
        ("error_529", 1, 1, "limited", "error: API Error: 529 Overloaded"),
        ("error_stream", 1, 1, "limited", "error: API Error: mock overloaded_error"),
    ],
)
def test_a_transcript_tells_its_turns(name: str, prompts: int, finished: int, expected: str, detail: str) -> None:
    text = transcript(name)
    turns = Claude().read_transcript(text, text)
    assert (turns.prompts, turns.finished, words(turns.reading)) == (prompts, finished, expected)
    assert turns.reading.detail.startswith(detail)


def test_every_captured_transcript_is_read_by_the_test_above() -> None:
    assert len(NAMES) == 23


def test_the_last_words_are_kept() -> None:
    assert Claude().read_transcript("", transcript("tool_done")).last_text == "after"


def test_no_transcript_says_nothing() -> None:
    turns = Claude().read_transcript("", "")
    assert (turns.prompts, turns.finished, turns.reading.state) == (0, 0, AgentState.UNKNOWN)


@given(st.sampled_from(NAMES), st.integers(0, 30_000), st.integers(0, 30_000))
def test_a_file_cut_anywhere_is_read_without_failing_and_never_counts_more(name: str, head: int, tail: int) -> None:
    text = transcript(name)
    whole = Claude().read_transcript(text, text)
    part = Claude().read_transcript(text[:head], text[len(text) - min(tail, len(text)) :])
    assert part.prompts <= whole.prompts
    assert part.finished <= whole.finished


@given(st.sampled_from(NAMES), st.data())
def test_the_order_of_the_lines_in_the_file_does_not_matter(name: str, data: st.DataObject) -> None:
    lines = transcript(name).splitlines()
    stamped = [line for line in lines if json.loads(line).get("timestamp")]
    times = [json.loads(line)["timestamp"] for line in stamped]
    if len(set(times)) < len(times):
        return
    mixed = "\n".join(data.draw(st.permutations(stamped)))
    assert Claude().read_transcript(mixed, "") == Claude().read_transcript("\n".join(stamped), "")


@given(st.lists(st.text(max_size=30) | st.sampled_from(["{}", "[]", "7", '{"uuid": "a", "type": "user"}']), max_size=8))
def test_no_file_makes_the_reader_fail(lines: list[str]) -> None:
    text = "\n".join(lines)
    Claude().read_transcript(text, text)
    Claudeless().read_transcript(text, text)


def line(kind: str, uuid: str, text: str, at: int) -> str:
    stamp = f"2026-11-27T23:15:{at:02}.000000000+00:00"
    content = text if kind == "user" else [{"type": "text", "text": text}]
    message = {"role": kind, "content": content, "stop_reason": None}
    return json.dumps({"type": kind, "uuid": uuid, "timestamp": stamp, "message": message})


def test_an_answered_prompt_of_claudeless_is_a_turn_and_its_file_never_tells_the_state() -> None:
    text = "\n".join(
        [
            '{"type":"queue-operation","operation":"dequeue"}',
            line("user", "a", "hi", 1),
            line("assistant", "b", "ok", 2),
        ]
    )
    turns = Claudeless().read_transcript(text, text)
    assert (turns.prompts, turns.finished, turns.last_text) == (1, 1, "ok")
    assert turns.reading.state is AgentState.UNKNOWN


def test_a_fresh_transcript_of_claudeless_has_no_turn() -> None:
    turns = Claudeless().read_transcript('{"type":"queue-operation","operation":"dequeue"}', "")
    assert (turns.prompts, turns.finished) == (0, 0)


def test_a_command_that_the_client_does_not_know_is_told_with_its_time() -> None:
    turns = Claude().read_transcript(transcript("unknown_command"), "")
    assert (turns.refused, round(turns.refused_at, 3)) == ("nope", 1795822797.115)


@pytest.mark.parametrize("words", ["Unknown skill: nbs-notify", "Unknown slash command: nbs-notify"])
def test_so_it_is_in_the_words_of_earlier_clients(words: str) -> None:
    line = {"type": "system", "subtype": "informational", "content": words, "uuid": "u"}
    text = json.dumps({**line, "timestamp": "2026-01-01T00:00:00Z"})
    assert Claude().read_transcript(text, "").refused == "nbs-notify"


def test_what_an_agent_says_of_unknown_commands_is_no_refusal() -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "Unknown command: /nbs-notify"}]}
    line = {"type": "assistant", "uuid": "u", "timestamp": "2026-01-01T00:00:00Z", "message": message}
    assert Claude().read_transcript(json.dumps(line), "").refused is None
