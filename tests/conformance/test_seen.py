"""What was seen is made comparable, and what differs is found."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.conformance import records, seen
from tests.conformance.table import INTERACTIONS
from tests.conformance.table.entry import play

U = "11111111-2222-4333-8444-555555555501"
PLACES = {"/tmp/nf-1/project": "<project>", "/tmp/nf-1": "<base>"}
SEEN: dict[str, Any] = {
    "looks": [{"after": "until idle", "screen": "idle", "detail": "", "title": "✳ ana", "rows": ["❯ hi", "● ho"]}],
    "hooks": [{"hook_event_name": "Stop", "last_assistant_message": "ho"}],
    "side_hooks": [],
    "transcript": [{"type": "user", "content": "hi"}, {"type": "queue-operation", "operation": "dequeue"}],
    "requests": [["user text: hi"]],
    "files": ["f.txt"],
}

ELSE: dict[str, Any] = {
    "looks": [{**SEEN["looks"][0], "screen": "busy"}],
    "hooks": [{"hook_event_name": "Stop", "last_assistant_message": "hm"}],
    "side_hooks": [{"hook_event_name": "FileChanged"}],
    "transcript": SEEN["transcript"][1:],
    "requests": [["user text: hm"]],
    "files": [],
}


def test_ids_paths_times_and_counts_get_names() -> None:
    found = {
        "cwd": "/tmp/nf-1/project/sub",
        "log": "/tmp/nf-1/log",
        "id": U,
        "tool_use_id": "toolu_0a1b",
        "duration_ms": 31,
        "at": "2026-05-01T09:30:00.123Z",
        "path": "/tmp/nf-1/home/.claude/plans/quiet-plan.md",
    }
    assert seen.tidy(found, PLACES) == {
        "cwd": "<project>/sub",
        "log": "<base>/log",
        "id": "<uuid>",
        "tool_use_id": "<use>",
        "duration_ms": "<n>",
        "at": "<time>",
        "path": "<base><plan>",
    }


def test_a_screen_keeps_its_words_and_loses_what_is_random() -> None:
    rows = [
        "│ welcome │",
        "╰─────────╯",
        "",
        "❯ hi",
        "● Osmosing… (3s · ↓ 12 tokens)",
        "✻ Cooked for 1m 2s",
        "──────────────── ana ──",
        "❯\u00a0",
        "─" * 80,
        "  ? for shortcuts                              ● high · /effort",
        "/exit                         Exit the CLI",
    ]
    assert seen.rows(rows, {}) == ["❯ hi", "<working>", "✻ <worked>", "❯", "  ? for shortcuts"]


def test_only_what_is_new_in_a_request_is_listed() -> None:
    first = [{"role": "user", "content": "hi"}]
    reminder = "<system-reminder>\nToday's date is 2026-05-01.\n</system-reminder>"
    second: list[dict[str, Any]] = [
        *first,
        {"role": "assistant", "content": [{"type": "text", "text": "ho"}]},
        {"role": "user", "content": [{"type": "text", "text": reminder}, {"type": "text", "text": "more"}]},
    ]
    found = seen.requests([first, second], {})
    assert found == [["user text: hi"], ["assistant text: ho", "user text: more"]]


@pytest.mark.parametrize("part", records.PARTS)
def test_a_difference_in_any_part_is_found(part: str) -> None:
    interaction = play("x", "x", "until idle")
    other = copy.deepcopy(SEEN)
    assert records.differences(interaction, SEEN, other) == []
    other[part] = ELSE[part]
    found = records.differences(interaction, SEEN, other)
    assert found[0] == f"{part}:"
    assert any(line.startswith(("-", "+")) for line in found[1:])
    assert records.differences(play("x", "x", "until idle", aside=f"-{part}"), SEEN, other) == []


def test_lines_about_the_queue_have_no_place_among_the_others() -> None:
    other = {**SEEN, "transcript": SEEN["transcript"][::-1]}
    assert records.differences(play("x", "x", "until idle"), SEEN, other) == []


def test_what_has_no_order_is_compared_without_one() -> None:
    one = {**SEEN, "hooks": [{"hook_event_name": "A"}, {"hook_event_name": "B"}]}
    other = {**SEEN, "hooks": one["hooks"][::-1]}
    assert records.differences(play("x", "x", "until idle"), one, other)
    assert records.differences(play("x", "x", "until idle", aside="hooks"), one, other) == []


def test_every_step_of_the_table_is_one_that_can_be_played() -> None:
    from tests.conformance.steps import VERBS

    assert {step.partition(" ")[0] for i in INTERACTIONS for step in i.steps} <= VERBS.keys()
    assert all(i.about and i.steps for i in INTERACTIONS)


def test_a_line_of_a_transcript_stands_behind_the_one_it_follows_from() -> None:
    """The real client may write the lines of its first turn out of order."""
    prompt = {"type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": "hi"}}
    reply = {"type": "assistant", "uuid": "2", "parentUuid": "1", "message": {"role": "assistant", "content": []}}
    queued = {"type": "queue-operation", "operation": "enqueue"}
    resumed = {"type": "system", "uuid": "3", "parentUuid": "of a line that is elsewhere"}
    assert seen.after_parents([reply, queued, prompt, resumed]) == [queued, prompt, reply, resumed]
    assert [line["type"] for line in seen.transcript([reply, prompt], {})] == ["user", "assistant"]
