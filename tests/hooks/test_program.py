"""What the hook program decides, and that deciding twice changes nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbs_fleet.hooks import program
from nbs_fleet.hooks.program import Agent, decide
from tests.support.hooked import Hooked

Json = dict[str, Any]
STOP: Json = {"hook_event_name": "Stop", "prompt_id": "p1", "stop_hook_active": False, "session_id": "s"}


@pytest.fixture
def ana(tmp_path: Path) -> Hooked:
    return Hooked(tmp_path / "run", policy={"plan": "ask", "permission": "ask", "question": "ask", "stop": "free"})


def ask(ana: Hooked, event: str, **payload: Any) -> tuple[Json, Json]:
    said, note = decide(Agent(str(ana.agent)), event, {"hook_event_name": event, **payload})
    return dict(said), dict(note)


def stop(ana: Hooked, **more: Any) -> tuple[Json, Json]:
    return ask(ana, "Stop", **{**STOP, **more})


def signal(ana: Hooked, at: int) -> None:
    path = ana.agent / "signal.json"
    path.write_text("{}")
    os.utime(path, (at, at))


def prompt(ana: Hooked, at: int) -> None:
    path = ana.agent / "turn"
    path.touch()
    os.utime(path, (at, at))


# -- messages


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "UserPromptSubmit"])
def test_a_message_is_handed_over_without_a_word_on_permissions(ana: Hooked, event: str) -> None:
    ids = [ana.put("inbox", "[nbs:d-1] one"), ana.put("inbox", "[nbs:d-2] two")]
    said, note = ask(ana, event, tool_name="Bash")
    context = {"hookEventName": event, "additionalContext": "[nbs:d-1] one\n\n[nbs:d-2] two"}
    assert said == {"hookSpecificOutput": context}
    assert note == {"answer": "context", "why": "message", "ids": ids}
    assert ask(ana, event, tool_name="Bash") == ({}, {})
    assert ana.claimed_ids() == ids


def test_a_subagent_gets_no_message(ana: Hooked) -> None:
    ana.put("inbox", "x")
    assert ask(ana, "PostToolUse", tool_name="Bash", agent_id="a1") == ({}, {})
    assert ana.claimed_ids() == []


def test_a_message_is_not_put_beside_an_empty_prompt_where_no_transcript_would_show_it(ana: Hooked) -> None:
    message_id = ana.put("inbox", "x")
    assert ask(ana, "UserPromptSubmit", prompt="") == ({}, {})
    assert ana.claimed_ids() == []
    assert ask(ana, "UserPromptSubmit", prompt="go on")[1]["ids"] == [message_id]


def test_a_message_too_long_for_a_context_waits_for_the_stop(ana: Hooked) -> None:
    short = ana.put("inbox", "s" * 9_000)
    long = ana.put("inbox", "ü" * 20_000)
    last = ana.put("inbox", "later")
    assert ask(ana, "PostToolUse")[1]["ids"] == [short]
    assert ask(ana, "PostToolUse") == ({}, {})
    said, note = stop(ana)
    assert note["ids"] == [long, last]
    assert said["reason"] == "ü" * 20_000 + "\n\nlater"


def test_only_registered_messages_are_handed_over(ana: Hooked) -> None:
    ana.put("inbox", "forged", "d-9", registered=False)
    assert stop(ana) == ({}, {})
    assert ana.names("inbox") == ["000001-d-9.msg"]


def test_a_stop_is_held_back_for_messages_whatever_the_flag_says(ana: Hooked) -> None:
    message_id = ana.put("inbox", "hello")
    said, note = stop(ana, stop_hook_active=True)  # a turn that mail began has the flag from the start
    assert said == {"decision": "block", "reason": "hello"}
    assert note == {"answer": "block", "why": "message", "ids": [message_id]}


def test_stops_of_one_prompt_are_held_back_eight_times_at_most(ana: Hooked) -> None:
    answers = []
    for n in range(12):
        ana.put("inbox", f"m{n}")
        answers.append(bool(stop(ana, stop_hook_active=n > 0)[0]))
    assert answers == [True] * 8 + [False] * 4
    assert len(ana.names("inbox")) == 4
    assert stop(ana, prompt_id="p2")[0]["reason"] == "m8\n\nm9\n\nm10\n\nm11"


@pytest.mark.parametrize(
    "words", ["API Error: 500 Internal server error", "API Error: Repeated 529 Overloaded errors."]
)
def test_a_turn_that_failed_is_always_let_go(ana: Hooked, words: str) -> None:
    ana.set_policy({"stop": "signal"})
    ana.put("inbox", "x")
    assert stop(ana, last_assistant_message=words) == ({}, {})
    assert ana.claimed_ids() == []


def test_a_failure_at_the_end_of_the_transcript_is_seen(ana: Hooked, tmp_path: Path) -> None:
    ana.set_policy({"stop": "signal"})
    transcript = tmp_path / "t.jsonl"
    failed = {"type": "assistant", "isApiErrorMessage": True}
    transcript.write_text(json.dumps(failed) + "\n" + json.dumps({"type": "system"}) + '\n{"cut')
    assert stop(ana, transcript_path=str(transcript)) == ({}, {})
    with transcript.open("a") as file:
        file.write("\n" + json.dumps({"type": "user"}) + "\n")
    assert stop(ana, transcript_path=str(transcript))[1]["why"] == "signal"


# -- the signal


def test_an_unsignalled_stop_is_held_back_once_per_prompt_with_the_commands(ana: Hooked) -> None:
    ana.set_policy({"stop": "signal"})
    said, note = stop(ana)
    assert note == {"answer": "block", "why": "signal"}
    for word in ("complete", "escalate", "continue"):
        assert f"nbs-fleet signal {word}" in said["reason"]
    assert stop(ana, stop_hook_active=True) == ({}, {})
    assert stop(ana, prompt_id="p2", stop_hook_active=True)[1] == note


def test_a_signalled_stop_is_let_go_however_often_the_hook_runs(ana: Hooked) -> None:
    ana.set_policy({"stop": "signal"})
    prompt(ana, 100)
    signal(ana, 101)
    assert [stop(ana) for _ in range(3)] == [({}, {})] * 3


def test_a_signal_of_an_earlier_turn_does_not_count(ana: Hooked) -> None:
    ana.set_policy({"stop": "signal"})
    signal(ana, 99)
    prompt(ana, 100)
    assert stop(ana)[1] == {"answer": "block", "why": "signal"}
    signal(ana, 102)
    assert stop(ana, stop_hook_active=True) == ({}, {})


def test_messages_and_the_signal_share_the_count_and_both_are_heard(ana: Hooked) -> None:
    ana.set_policy({"stop": "signal"})
    ana.put("inbox", "hello")
    assert [stop(ana)[1].get("why") for _ in range(3)] == ["message", "signal", None]
    assert json.loads((ana.agent / "stops.json").read_text())["blocks"] == 2


def test_a_stop_that_can_not_be_counted_is_let_go(ana: Hooked) -> None:
    ana.set_policy({"stop": "signal"})
    (ana.agent / "stops.json").mkdir()
    assert stop(ana) == ({}, {})


def test_a_client_without_prompt_ids_is_asked_once_per_turn(ana: Hooked, tmp_path: Path) -> None:
    ana.set_policy({"stop": "signal", "dialect": "claudeless"})
    transcript = tmp_path / "t.jsonl"
    transcript.write_text("one\n")
    turn: Json = {"prompt_id": None, "transcript_path": str(transcript)}
    said, _ = stop(ana, **turn)
    assert said["data"] == {"decision": "block", "reason": said["reason"]}
    assert said["decision"] == "block"
    assert stop(ana, **turn, stop_hook_active=True) == ({}, {})
    signal(ana, 50)
    transcript.write_text("one\ntwo\n")
    assert [stop(ana, **turn) for _ in range(2)] == [({}, {})] * 2
    transcript.write_text("one\ntwo\nthree\n")
    assert stop(ana, **turn)[1]["why"] == "signal"  # that signal was used up by the turn before


def test_an_agent_without_policies_is_left_alone(ana: Hooked) -> None:
    (ana.agent / "hooks.json").unlink()
    ana.put("inbox", "x")
    assert stop(ana) == ({}, {})
    assert ask(ana, "PermissionRequest", tool_name="Bash") == ({}, {})


# -- dialogs


@pytest.mark.parametrize(
    ("policy", "tool", "behavior"),
    [
        ({"plan": "approve"}, "ExitPlanMode", "allow"),
        ({"plan": "accept"}, "ExitPlanMode", "allow"),
        ({"plan": "deny"}, "ExitPlanMode", "deny"),
        ({"plan": "ask"}, "ExitPlanMode", None),
        ({"plan": "approve"}, "Bash", None),
        ({"permission": "approve"}, "Bash", "allow"),
        ({"permission": "approve"}, "ExitPlanMode", None),
        ({"permission": "approve"}, "AskUserQuestion", None),
        ({"permission": "deny"}, "mcp__x__y", "deny"),
        ({"permission": "deny"}, "AskUserQuestion", None),
        ({"question": "approve"}, "AskUserQuestion", None),
        ({"question": "accept"}, "AskUserQuestion", None),
        ({"question": "deny"}, "AskUserQuestion", "deny"),
        ({"plan": "approve", "permission": "approve"}, None, None),
    ],
)
def test_a_dialog_is_answered_as_its_own_policy_says(
    ana: Hooked, policy: Json, tool: str | None, behavior: str | None
) -> None:
    ana.set_policy(policy)
    said, note = ask(ana, "PermissionRequest", tool_name=tool, tool_input={})
    if behavior is None:
        assert (said, note) == ({}, {})
        return
    specific = said["hookSpecificOutput"]
    assert specific["hookEventName"] == "PermissionRequest"
    assert specific["decision"]["behavior"] == behavior
    assert bool(specific["decision"].get("message")) == (behavior == "deny")
    assert note == {"answer": behavior, "why": "policy"}


def test_a_question_is_refused_before_its_dialog_opens(ana: Hooked) -> None:
    ana.set_policy({"question": "deny"})
    said, note = ask(ana, "PreToolUse", tool_name="AskUserQuestion")
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "nbs-fleet send" in said["hookSpecificOutput"]["permissionDecisionReason"]
    assert note == {"answer": "deny", "why": "policy"}
    assert ask(ana, "PreToolUse", tool_name="Bash") == ({}, {})


def test_claudeless_gets_answers_in_its_own_shape(ana: Hooked) -> None:
    ana.set_policy({"question": "deny", "dialect": "claudeless"})
    said, _ = ask(ana, "PreToolUse", tool_name="AskUserQuestion")
    assert set(said) == {"proceed", "error"}
    ana.put("inbox", "x")
    assert ask(ana, "PreToolUse", tool_name="Bash") == ({}, {})  # it can't add a context
    assert ana.claimed_ids() == []


# -- as a process


def test_the_supervisor_reads_event_and_answer_in_one_file(ana: Hooked) -> None:
    message_id = ana.put("inbox", "hello")
    done = ana.call("Stop", payload={**STOP, "last_assistant_message": "dé\udc00"})
    assert json.loads(done.stdout) == {"decision": "block", "reason": "hello"}
    (event,) = ana.spooled()
    assert event["nbs"] == {"answer": "block", "why": "message", "ids": [message_id]}
    assert event["prompt_id"] == "p1"
    assert not [name for name in os.listdir(ana.agent / "spool") if name.startswith(".")]


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_payload_that_is_none_is_kept_and_answered_by_nothing(ana: Hooked, payload: bytes) -> None:
    ana.put("inbox", "x")
    done = ana.call("Stop", payload=payload)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [(ana.agent / "spool" / n).read_bytes() for n in ana.names("spool")] == [payload]
    assert ana.claimed_ids() == []


def test_a_prompt_ends_what_was_signalled_before(ana: Hooked) -> None:
    ana.set_policy({"stop": "signal", "asks": ["Stop"]})
    signal(ana, 50)
    ana.call("UserPromptSubmit", payload={"hook_event_name": "UserPromptSubmit"})
    assert b"about to stop" in ana.call("Stop", payload=STOP).stdout


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda c: st.lists(c) | st.dictionaries(st.text(), c),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    event=st.sampled_from(["Stop", "PreToolUse", "PostToolUse", "UserPromptSubmit", "PermissionRequest", "Other"]),
    payload=st.dictionaries(
        st.sampled_from(["prompt_id", "tool_name", "transcript_path", "stop_hook_active", "agent_id", "session_id"]),
        JSON,
    ),
    policy=st.dictionaries(st.sampled_from(["plan", "permission", "question", "stop", "dialect", "shapes"]), JSON),
)
def test_no_payload_and_no_policy_breaks_it(ana: Hooked, event: str, payload: Json, policy: Json) -> None:
    ana.set_policy(policy)
    said, note = ask(ana, event, **payload)
    json.dumps(said)
    assert bool(said) == bool(note)
    if note.get("answer") == "allow":
        assert payload.get("tool_name") != "AskUserQuestion"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from(["prompt", "signal", "stop", "again", "message"]), max_size=25))
def test_over_any_history_no_prompt_is_held_back_nine_times_and_no_message_comes_twice(
    ana: Hooked, steps: list[str]
) -> None:
    ana.set_policy({"stop": "signal"})
    (ana.agent / "stops.json").unlink(missing_ok=True)
    clock, number = 100, 0
    held: dict[int, int] = {}
    for step in steps:
        clock += 1
        if step == "prompt":
            number += 1
            prompt(ana, clock)
        elif step == "signal":
            signal(ana, clock)
        elif step == "message":
            ana.put("inbox", "text")
        else:
            _, note = stop(ana, prompt_id=f"p{number}")
            held[number] = held.get(number, 0) + bool(note)
    assert max(held.values(), default=0) <= program.MOST_BLOCKS
    assert len(set(ana.claimed_ids())) == len(ana.claimed_ids())
