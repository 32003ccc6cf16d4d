"""Every captured payload is read right: one line of the table below per file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers.base import HookNews
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.claude_hook_news import read
from nbs_fleet.drivers.claudeless import Claudeless
from nbs_fleet.model import AgentState, BlockedKind, ErrorKind

HERE = Path(__file__).parent / "payloads"
BUSY, IDLE, BLOCKED, COMPACTING, UNKNOWN = (
    AgentState.BUSY,
    AgentState.IDLE,
    AgentState.BLOCKED,
    AgentState.COMPACTING,
    AgentState.UNKNOWN,
)

GOLDEN: dict[str, tuple[AgentState, str]] = {
    "claude_code/ConfigChange": (UNKNOWN, ""),
    "claude_code/CwdChanged": (UNKNOWN, ""),
    "claude_code/InstructionsLoaded": (UNKNOWN, ""),
    "claude_code/Notification_idle_prompt": (IDLE, ""),
    "claude_code/Notification_permission_prompt": (BLOCKED, "Claude Code needs your approval for the plan"),
    "claude_code/PermissionRequest_AskUserQuestion": (BLOCKED, "Which library should we use?"),
    "claude_code/PermissionRequest_Bash": (BLOCKED, "Bash: touch zz"),
    "claude_code/PermissionRequest_ExitPlanMode": (BLOCKED, "# Plan"),
    "claude_code/PostCompact": (IDLE, "compacted"),
    "claude_code/PostToolBatch": (BUSY, ""),
    "claude_code/PostToolUse": (BUSY, "Bash"),
    "claude_code/PostToolUseFailure": (BUSY, "Bash"),
    "claude_code/PreCompact_auto": (COMPACTING, "auto"),
    "claude_code/PreCompact_manual": (COMPACTING, "manual"),
    "claude_code/PreToolUse": (BUSY, "Bash"),
    "claude_code/PreToolUse_in_subagent": (UNKNOWN, ""),
    "claude_code/SessionEnd_clear": (UNKNOWN, "clear"),
    "claude_code/SessionEnd_other": (UNKNOWN, "other"),
    "claude_code/SessionEnd_prompt_input_exit": (UNKNOWN, "prompt_input_exit"),
    "claude_code/SessionStart_clear": (UNKNOWN, ""),
    "claude_code/SessionStart_compact": (UNKNOWN, ""),
    "claude_code/SessionStart_resume": (UNKNOWN, ""),
    "claude_code/SessionStart_startup": (UNKNOWN, ""),
    "claude_code/Stop": (IDLE, ""),
    "claude_code/StopFailure_authentication_failed": (IDLE, "Invalid API key · Fix external API key"),
    "claude_code/StopFailure_invalid_request": (IDLE, "Prompt is too long · the request is ~250000 tokens"),
    "claude_code/StopFailure_rate_limit": (IDLE, "API Error: Request rejected (429)"),
    "claude_code/StopFailure_server_error": (IDLE, "API Error: Repeated 529 Overloaded errors."),
    "claude_code/StopFailure_unknown": (IDLE, "API Error: mock overloaded_error"),
    "claude_code/Stop_active": (IDLE, ""),
    "claude_code/Stop_with_background": (IDLE, "a background shell runs"),
    "claude_code/SubagentStart": (UNKNOWN, ""),
    "claude_code/SubagentStop": (UNKNOWN, ""),
    "claude_code/TaskCreated": (UNKNOWN, ""),
    "claude_code/UserPromptExpansion": (BUSY, ""),
    "claude_code/UserPromptSubmit": (BUSY, ""),
    "claudeless/Notification_elicitation_dialog": (BLOCKED, ""),
    "claudeless/Notification_idle_prompt": (IDLE, ""),
    "claudeless/PreToolUse_AskUserQuestion": (BUSY, "AskUserQuestion"),
    "claudeless/PreToolUse_Bash": (BUSY, "Bash"),
    "claudeless/PreToolUse_ExitPlanMode": (BUSY, "ExitPlanMode"),
    "claudeless/SessionStart": (UNKNOWN, ""),
    "claudeless/Stop": (IDLE, ""),
}
KINDS = {
    "claude_code/Notification_permission_prompt": BlockedKind.PLAN,
    "claude_code/PermissionRequest_AskUserQuestion": BlockedKind.QUESTION,
    "claude_code/PermissionRequest_Bash": BlockedKind.PERMISSION,
    "claude_code/PermissionRequest_ExitPlanMode": BlockedKind.PLAN,
    "claudeless/Notification_elicitation_dialog": BlockedKind.QUESTION,
}
ERRORS = {
    "claude_code/StopFailure_authentication_failed": ErrorKind.AUTHENTICATION,
    "claude_code/StopFailure_invalid_request": ErrorKind.CONTEXT_FULL,
    "claude_code/StopFailure_rate_limit": ErrorKind.RATE_LIMIT,
    "claude_code/StopFailure_server_error": ErrorKind.OVERLOAD,
    "claude_code/StopFailure_unknown": ErrorKind.OVERLOAD,
}


def payload(name: str) -> dict[str, Any]:
    found = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def news(name: str, **changes: Any) -> HookNews:
    found = read(json.dumps({**payload(name), **changes}))
    assert found is not None
    return found


def test_every_captured_payload_is_in_the_table() -> None:
    captured = {f"{p.parent.name}/{p.stem}" for p in HERE.glob("*/*.json")}
    assert captured == {*GOLDEN, "claude_code/_hook_env"}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_captured_payload_says_what_the_client_did(name: str) -> None:
    found, raw = news(name), payload(name)
    state, detail = GOLDEN[name]
    assert (found.event, found.session_id) == (raw["hook_event_name"], raw["session_id"])
    assert found.transcript == raw["transcript_path"]
    assert found.reading.state is state
    assert found.reading.detail.startswith(detail) if detail else found.reading.detail == ""
    assert found.reading.blocked is KINDS.get(name)
    assert found.error is ERRORS.get(name)
    assert found.subagent == raw.get("agent_id")
    assert found.last_text == raw.get("last_assistant_message")
    assert found.stop_active == raw.get("stop_hook_active", False)


def test_prompt_tool_and_cause_are_carried() -> None:
    assert news("claude_code/UserPromptSubmit").prompt == "[[err 429 99]]"
    assert news("claude_code/PreToolUse").tool == "Bash"
    assert news("claude_code/SessionStart_resume").cause == "resume"
    assert news("claude_code/SessionEnd_clear").cause == "clear"
    assert news("claude_code/Notification_idle_prompt").cause == "idle_prompt"
    assert news("claude_code/PreCompact_auto").cause == "auto"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "1", '"Stop"', "{}", '{"hook_event_name": 3}', '{"hook_event_name": ""}', "[" * 99_999],
)
def test_what_is_no_payload_is_none(text: str) -> None:
    assert read(text) is None
    assert Claude().read_hook(text) is None
    assert Claudeless().read_hook(text) is None


def test_a_payload_cut_off_anywhere_is_none() -> None:
    text = json.dumps(payload("claude_code/Stop"))
    assert all(read(text[:end]) is None for end in range(len(text)))


def test_the_environment_of_a_hook_is_no_payload() -> None:
    assert read((HERE / "claude_code/_hook_env.json").read_text(encoding="utf-8")) is None


def test_a_stop_that_our_hook_held_back_is_no_idle() -> None:
    note = {"answer": "block", "why": "message", "ids": ["d-1", "d-2"]}
    found = news("claude_code/Stop", nbs=note)
    assert found.reading.state is BUSY
    assert (found.answer, found.handed) == ("block", ("d-1", "d-2"))


@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_a_dialog_that_our_hook_answered_blocks_nobody(answer: str) -> None:
    found = news("claude_code/PermissionRequest_ExitPlanMode", nbs={"answer": answer, "why": "policy"})
    assert (found.reading.state, found.reading.detail) == (BUSY, f"ExitPlanMode: {answer} by policy")


def test_a_dialog_asked_for_by_a_subagent_blocks_the_agent() -> None:
    found = news("claude_code/PermissionRequest_Bash", agent_id="a1", agent_type="general-purpose")
    assert (found.reading.state, found.subagent) == (BLOCKED, None)


def test_while_a_background_agent_works_the_agent_is_busy() -> None:
    tasks = [{"id": "x", "type": "subagent", "status": "running"}]
    assert news("claude_code/Stop", background_tasks=tasks).reading.state is BUSY
    done = [{"id": "x", "type": "subagent", "status": "completed"}]
    assert news("claude_code/Stop", background_tasks=done).reading.state is IDLE


@pytest.mark.parametrize(
    ("tool", "given_input", "detail"),
    [
        ("Bash", {"command": "rm -r build\nls"}, "Bash: rm -r build"),
        ("Write", {"file_path": "/p/a.py", "content": "x"}, "Write: /p/a.py"),
        ("WebFetch", {"url": "http://x", "prompt": "y"}, "WebFetch: http://x"),
        ("mcp__a__b", {"n": 1}, "mcp__a__b"),
        ("Bash", {"command": "x" * 900}, "Bash: " + "x" * 194),
        ("Bash", None, "Bash"),
    ],
)
def test_a_permission_says_what_it_is_for(tool: str, given_input: Any, detail: str) -> None:
    found = news("claude_code/PermissionRequest_Bash", tool_name=tool, tool_input=given_input)
    assert found.reading.detail == detail


@given(
    event=st.sampled_from([name.split("/")[1].split("_")[0] for name in GOLDEN]),
    fields=st.dictionaries(
        st.sampled_from(
            ["tool_input", "tool_name", "background_tasks", "nbs", "agent_id", "message", "error", "trigger"]
        ),
        st.recursive(
            st.none() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c), max_leaves=5
        ),
    ),
)
def test_odd_fields_never_break_the_reading(event: str, fields: dict[str, Any]) -> None:
    found = read(json.dumps({**fields, "hook_event_name": event}))
    assert found is not None
    assert (found.reading.blocked is not None) == (found.reading.state is BLOCKED)
