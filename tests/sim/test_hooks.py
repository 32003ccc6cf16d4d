"""What a hook's output means: the rules that were measured on the real client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nbs_fleet.sim.hooks import Verdict, judge, matches
from nbs_fleet.sim.process import Output


def said(event: str, out: Any, code: int = 0, err: str = "") -> Verdict:
    text = out if isinstance(out, str) else json.dumps(out)
    return judge(event, "cmd", Output(code, text, err), 5)


def specific(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


@pytest.mark.parametrize(
    ("matcher", "value", "wanted"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("Write|Edit", "Edit", True),
        ("mcp__.*", "mcp__x__y", True),
        ("/abs/inbox", "1.msg", False),
        ("[", "x", False),
        ("startup", None, True),
    ],
)
def test_a_matcher_is_names_or_a_regular_expression(matcher: str, value: str | None, wanted: bool) -> None:
    assert matches(matcher, value) is wanted


def test_no_output_says_nothing() -> None:
    verdict = said("Stop", "")
    assert (verdict.block, verdict.context, verdict.text, verdict.error) == (None, None, None, None)


def test_exit_2_blocks_with_what_was_written_to_stderr() -> None:
    assert said("Stop", "", 2, "not yet\n").block == "[cmd]: not yet\n"


def test_another_exit_code_is_an_error_that_changes_nothing() -> None:
    verdict = said("Stop", '{"decision": "block"}', 1, "oops")
    assert (verdict.error, verdict.block) == ("Failed with non-blocking status code: oops", None)


def test_plain_text_and_broken_json_are_text() -> None:
    assert said("UserPromptSubmit", "hello\n").text == "hello"
    assert said("UserPromptSubmit", "{broken").text == "{broken"


def test_specific_output_needs_the_event_s_name() -> None:
    wanted = 'Hook JSON output validation failed — hookSpecificOutput is missing required field "hookEventName"'
    assert said("PreToolUse", {"hookSpecificOutput": {"additionalContext": "x"}}).error == wanted
    assert said("PreToolUse", specific("Stop", additionalContext="x")).error is not None


def test_decisions_and_context_are_read() -> None:
    assert said("Stop", {"decision": "block", "reason": "go on"}).block == "go on"
    assert said("PostToolUse", {"continue": False, "stopReason": "enough"}).stop == "enough"
    assert said("UserPromptSubmit", specific("UserPromptSubmit", additionalContext="news")).context == "news"
    denied = said("PreToolUse", specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="no"))
    assert (denied.permission, denied.reason) == ("deny", "no")
    answered = said(
        "PreToolUse", specific("PreToolUse", permissionDecision="allow", updatedInput={"answers": {"q": "a"}})
    )
    assert answered.updated == {"answers": {"q": "a"}}
    allowed = said("PermissionRequest", specific("PermissionRequest", decision={"behavior": "allow"}))
    assert allowed.decision == {"behavior": "allow"}


def test_the_old_way_to_deny_a_tool_still_works() -> None:
    verdict = said("PreToolUse", {"decision": "block", "reason": "no"})
    assert (verdict.permission, verdict.reason, verdict.block) == ("deny", "no", None)


def test_a_hook_that_ran_out_of_time_says_nothing() -> None:
    verdict = judge("Stop", "cmd", Output(-1, '{"decision": "block"}', "", timed_out=True), 5)
    assert verdict.timed_out
    assert verdict.block is None
