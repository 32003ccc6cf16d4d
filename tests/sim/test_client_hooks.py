"""Hooks of a running client: which run, what they are told, and what the model gets of what they say."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.sim.conftest import Begin

Json = dict[str, Any]
BYPASS = "--dangerously-skip-permissions"
EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
    "PreCompact",
    "PostCompact",
    "UserPromptExpansion",
    "CwdChanged",
)
ENVELOPE = ["session_id", "transcript_path", "cwd"]
# Keys in the order of captured payloads.
SHAPES = {
    "SessionStart": [*ENVELOPE, "hook_event_name", "source", "model", "session_title"],
    "UserPromptSubmit": [*ENVELOPE, "prompt_id", "permission_mode", "hook_event_name", "prompt", "session_title"],
    "PreToolUse": [
        *ENVELOPE,
        "prompt_id",
        "permission_mode",
        "effort",
        "hook_event_name",
        "tool_name",
        "tool_input",
        "tool_use_id",
    ],
    "PostToolUse": [
        *ENVELOPE,
        "prompt_id",
        "permission_mode",
        "effort",
        "hook_event_name",
        "tool_name",
        "tool_input",
        "tool_response",
        "tool_use_id",
        "duration_ms",
    ],
    "PostToolBatch": [*ENVELOPE, "prompt_id", "permission_mode", "effort", "hook_event_name", "tool_calls"],
    "Stop": [
        *ENVELOPE,
        "prompt_id",
        "permission_mode",
        "effort",
        "hook_event_name",
        "stop_hook_active",
        "last_assistant_message",
        "background_tasks",
        "session_crons",
    ],
    "SessionEnd": [*ENVELOPE, "prompt_id", "hook_event_name", "reason"],
}


def recording(log: Path, *events: str) -> Json:
    """Settings with a hook per event that keeps its payload."""
    hooks = {e: [{"hooks": [{"type": "command", "command": f"cat >> {log}; echo >> {log}"}]}] for e in events}
    return {"hooks": hooks}


def saying(event: str, out: Json | str, *, code: int = 0, err: str = "", matcher: str = "") -> Json:
    """Settings with one hook that prints something."""
    text = out if isinstance(out, str) else json.dumps(out)
    command = f"cat > /dev/null; printf %s '{text}'; printf %s '{err}' >&2; exit {code}"
    return {"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}}


def context(event: str, text: str) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def payloads(log: Path, event: str | None = None) -> list[Json]:
    if not log.exists():
        return []
    found = [json.loads(line) for line in log.read_text().splitlines() if line]
    return [p for p in found if event is None or p["hook_event_name"] == event]


def test_payloads_have_the_captured_shapes_in_the_captured_order(begin: Begin, tmp_path: Path) -> None:
    log = tmp_path / "hooks.log"
    client = begin("--name", "ana", BYPASS, settings=recording(log, *EVENTS))
    client.turn("[[bash echo hi]] [[say done]]")
    client.send("/exit\r")
    client.wait()
    found = payloads(log)
    assert [p["hook_event_name"] for p in found] == list(SHAPES)
    for payload in found:
        assert list(payload) == SHAPES[payload["hook_event_name"]]
    assert found[0]["source"] == "startup"
    assert found[1]["prompt"] == "[[bash echo hi]] [[say done]]"
    assert found[3]["tool_response"]["stdout"] == "hi"
    assert found[5]["last_assistant_message"] == "done"
    assert found[6]["reason"] == "prompt_input_exit"
    assert found[5]["transcript_path"].endswith(f"{found[5]['session_id']}.jsonl")


def test_payload_shapes_agree_with_the_files_captured_from_the_real_client() -> None:
    folder = Path(__file__).parent / "payloads"
    for name, shape in SHAPES.items():
        for path in folder.glob(f"{name}*.json"):
            captured = list(json.loads(path.read_text()))
            optional = {"session_title", "effort", "prompt_id"}
            assert [k for k in captured if k not in optional] == [k for k in shape if k not in optional], path.name


def test_a_hook_s_environment_tells_session_and_project(begin: Begin, tmp_path: Path) -> None:
    log = tmp_path / "env"
    settings = {
        "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": f"cat >/dev/null; env > {log}"}]}]}
    }
    client = begin(settings=settings, env={"TMUX_PANE": "%7", "OWN": "kept"})
    client.until(lambda: log.exists() and "COLUMNS" in log.read_text())
    found = dict(line.partition("=")[::2] for line in log.read_text().splitlines())
    assert found["CLAUDE_CODE_SESSION_ID"] == client.state()["sessionId"]
    assert found["CLAUDE_PROJECT_DIR"] == str(client.project)
    assert (found["CLAUDECODE"], found["CLAUDE_CODE_CHILD_SESSION"], found["CLAUDE_CODE_ENTRYPOINT"]) == (
        "1",
        "1",
        "cli",
    )
    assert (found["TMUX_PANE"], found["OWN"], found["COLUMNS"]) == ("%7", "kept", "100")


def test_hooks_of_all_sources_run_and_a_matcher_chooses(begin: Begin, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def group(word: str, matcher: str = "") -> list[Json]:
        return [
            {"matcher": matcher, "hooks": [{"type": "command", "command": f"cat >/dev/null; echo {word} >> {log}"}]}
        ]

    (tmp_path / "home/.claude").mkdir(parents=True)
    (tmp_path / "home/.claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": group("user")}}))
    (tmp_path / "project/.claude").mkdir(parents=True)
    (tmp_path / "project/.claude/settings.json").write_text(
        json.dumps({"hooks": {"PreToolUse": group("edit", "Edit")}})
    )
    client = begin(BYPASS, settings={"hooks": {"PreToolUse": group("flag", "Bash|Read")}})
    client.turn("[[bash true]] [[say ok]]")
    assert sorted(log.read_text().split()) == ["flag", "user"]


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ("SessionStart", "SessionStart hook additional context: NEEDLE"),
        ("UserPromptSubmit", "UserPromptSubmit hook additional context: NEEDLE"),
        ("PreToolUse", "<system-reminder>\\nPreToolUse:Bash hook additional context: NEEDLE\\n</system-reminder>"),
        ("PostToolUse", "<system-reminder>\\nPostToolUse:Bash hook additional context: NEEDLE\\n</system-reminder>"),
        ("PostToolBatch", "PostToolBatch hook additional context: NEEDLE"),
    ],
)
def test_additional_context_reaches_the_model(begin: Begin, event: str, wanted: str) -> None:
    client = begin(BYPASS, settings=saying(event, context(event, "NEEDLE")))
    client.turn("[[bash true]] [[say ok]]")
    assert wanted in client.heard()


def test_plain_output_reaches_the_model_from_prompts_but_not_from_tools(begin: Begin) -> None:
    client = begin(BYPASS, settings=saying("UserPromptSubmit", "NEEDLE"))
    client.turn("[[say ok]]")
    assert "UserPromptSubmit hook success: NEEDLE" in client.heard()
    client.close()
    client = begin(BYPASS, settings=saying("PreToolUse", "NEEDLE2"))
    client.turn("[[bash true]] [[say ok]]")
    assert "NEEDLE2" not in client.heard()


def test_a_blocked_prompt_is_dropped(begin: Begin) -> None:
    client = begin(settings=saying("UserPromptSubmit", {"decision": "block", "reason": "not now"}))
    client.say("hello")
    client.until_text("● UserPromptSubmit operation blocked by hook:")
    client.until_text("Original prompt: hello")
    client.until_status("idle")
    assert client.requests() == []


def test_a_denied_tool_does_not_run_and_the_model_hears_why(begin: Begin) -> None:
    decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not that"}
    client = begin(BYPASS, settings=saying("PreToolUse", {"hookSpecificOutput": decision}))
    client.turn("[[bash touch made]] [[say ok]]")
    assert not (client.project / "made").exists()
    assert '"content": "not that"' in client.heard()


def test_exit_2_denies_with_stderr(begin: Begin) -> None:
    client = begin(BYPASS, settings=saying("PreToolUse", "", code=2, err="because"))
    client.turn("[[bash touch made]] [[say ok]]")
    assert not (client.project / "made").exists()
    assert "PreToolUse:Bash hook error: [" in client.heard()
    assert "]: because" in client.heard()


def test_a_hook_can_answer_a_question(begin: Begin) -> None:
    given = {"questions": [{"question": "Which?", "header": "P", "options": [{"label": "A"}, {"label": "B"}]}]}
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": {"answers": {"Which?": "B"}},
    }
    client = begin(settings=saying("PreToolUse", {"hookSpecificOutput": output}, matcher="AskUserQuestion"))
    client.turn(f"[[tool AskUserQuestion {json.dumps(given)}]] [[say ok]]")
    assert '\\"Which?\\"=\\"B\\"' in client.heard()


def test_a_permission_hook_approves_without_a_person(begin: Begin) -> None:
    decision = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    client = begin(settings=saying("PermissionRequest", {"hookSpecificOutput": decision}))
    client.turn("[[bash touch made]] [[say ok]]")
    assert (client.project / "made").exists()
    client.until_text("Allowed by PermissionRequest hook")


def test_a_permission_hook_s_approval_of_a_plan_restores_bypass(begin: Begin) -> None:
    decision = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    client = begin(BYPASS, settings=saying("PermissionRequest", {"hookSpecificOutput": decision}))
    client.turn("[[tool EnterPlanMode {}]] [[plan]] [[tool ExitPlanMode {}]] [[bash touch made]] [[say ok]]")
    assert (client.project / "made").exists()


def test_a_permission_hook_denies_with_its_message(begin: Begin) -> None:
    decision = {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "ask ana"}}
    client = begin(settings=saying("PermissionRequest", {"hookSpecificOutput": decision}))
    client.turn("[[bash touch made]] [[say ok]]")
    assert '"content": "ask ana"' in client.heard()


def test_a_stop_hook_sends_the_turn_on_with_its_reason(begin: Begin, tmp_path: Path) -> None:
    once = f"""
    [ -e {tmp_path}/once ] && exit 0
    touch {tmp_path}/once
    echo '{{"decision": "block", "reason": "go on [[say second]]"}}'
    """
    log = tmp_path / "log"
    settings = recording(log, "Stop")
    settings["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": once})
    client = begin(settings=settings)
    client.turn("[[say first]]")
    assert "Stop hook feedback:\\ngo on" in client.heard()
    client.until_text("⎿ \xa0Stop hook error: go on")
    client.until_text("● second")
    assert [p["stop_hook_active"] for p in payloads(log)] == [False, True]
    summaries = [line for line in client.lines() if line.get("subtype") == "stop_hook_summary"]
    assert summaries[0]["hookErrors"] == ["go on [[say second]]"]


def test_a_stop_hook_that_always_blocks_is_overridden(begin: Begin, tmp_path: Path) -> None:
    block = saying("Stop", {"decision": "block", "reason": "again"})
    client = begin(settings=block, env={"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "3"})
    client.turn("[[say x]]")
    client.until_text("A hook blocked the turn from ending 4 consecutive times")
    assert len(client.requests()) == 4


def test_stop_context_goes_on_too_and_other_failures_change_nothing(begin: Begin) -> None:
    note = context("Stop", "NEEDLE")
    client = begin(settings=saying("Stop", note), env={"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "2"})
    client.turn("[[say x]]")
    assert "Stop hook additional context: NEEDLE" in client.heard()
    client.close()
    client = begin(settings=saying("Stop", "", code=1, err="oops"))
    client.turn("[[say x]]")
    client.until_text("Stop hook error: Failed with non-blocking status code: oops")


def test_a_tool_hook_can_end_the_turn_without_stop(begin: Begin, tmp_path: Path) -> None:
    settings = saying("PostToolUse", {"continue": False, "stopReason": "enough"})
    log = tmp_path / "log"
    settings["hooks"].update(recording(log, "Stop")["hooks"])
    client = begin(BYPASS, settings=settings)
    client.turn("[[bash true]] [[say never]]")
    client.until_text("PostToolUse:Bash hook stopped continuation: enough")
    assert len(client.requests()) == 1
    assert payloads(log) == []


def test_an_api_error_gives_stopfailure_instead_of_stop(begin: Begin, tmp_path: Path) -> None:
    log = tmp_path / "log"
    client = begin(settings=recording(log, "Stop", "StopFailure"))
    client.turn("[[err 401 9]]")
    found = payloads(log)
    assert [p["hook_event_name"] for p in found] == ["StopFailure"]
    assert (found[0]["error"], found[0]["last_assistant_message"]) == (
        "authentication_failed",
        "Invalid API key · Fix external API key",
    )


def test_a_hook_over_its_time_is_killed_with_its_children(begin: Begin, tmp_path: Path) -> None:
    command = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": command, "timeout": 0.3}]}]}
    client = begin(BYPASS, settings={"hooks": hooks})
    client.turn("[[bash true]] [[say ok]]")
    pid = int((tmp_path / "pid").read_text())
    client.until(lambda: not Path(f"/proc/{pid}").exists())


def test_the_end_is_not_held_up_by_a_slow_hook(begin: Begin) -> None:
    hooks = {"SessionEnd": [{"hooks": [{"type": "command", "command": "sleep 60", "timeout": 0.3}]}]}
    client = begin(settings={"hooks": hooks})
    client.signal(signal.SIGTERM)
    assert client.wait() == 143


def test_an_idle_client_says_so_once_after_its_threshold(begin: Begin, tmp_path: Path) -> None:
    log = tmp_path / "log"
    (tmp_path / "home/.claude").mkdir(parents=True)
    (tmp_path / "home/.claude/.claude.json").write_text('{"messageIdleNotifThresholdMs": 200}')
    client = begin(settings=recording(log, "Notification"))
    client.turn("[[say x]]")
    client.until(lambda: payloads(log) or None)
    assert payloads(log)[0]["notification_type"] == "idle_prompt"
    assert payloads(log)[0]["message"] == "Claude is waiting for your input"


def test_changed_settings_hold_from_the_next_prompt_and_broken_ones_never(begin: Begin, tmp_path: Path) -> None:
    path = tmp_path / "extra.json"
    path.write_text("{}")
    client = begin("--settings", str(path))
    client.turn("[[say one]]")
    path.write_text(json.dumps(saying("UserPromptSubmit", context("UserPromptSubmit", "NEEDLE"))))
    client.turn("[[say two]]")
    assert client.heard().count("NEEDLE") == 1
    path.write_text("{ broken")
    client.turn("[[say three]]")
    assert client.heard().count("NEEDLE") == 2


def test_late_news_of_a_background_hook_rides_on_a_later_request(begin: Begin) -> None:
    settings = saying("PostToolUse", context("PostToolUse", "NEEDLE"))
    settings["hooks"]["PostToolUse"][0]["hooks"][0]["async"] = True
    client = begin(BYPASS, settings=settings)
    client.turn("[[bash true]] [[bash sleep 0.3]] [[say ok]]")
    assert '"system", "content": [{"type": "text", "text": "NEEDLE' in client.heard()
