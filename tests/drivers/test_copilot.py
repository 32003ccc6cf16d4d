"""The Copilot driver: how a start looks, what its plugin holds, what its hooks and session file say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nbs_fleet.drivers.base import PROMPT, Launch
from nbs_fleet.drivers.copilot import Copilot
from nbs_fleet.model import AgentState, BlockedKind, ExitKind
from nbs_fleet.spec.team import Dialogs
from tests.drivers.support import HERE, SESSION, make_facts

PLUGIN = "/state/review/agents/bo-1/plugin"


def launched(**given: Any) -> Launch:
    """A start with these fields."""
    return Copilot().launch(make_facts(driver="copilot", **given))


def session_file(name: str) -> str:
    """A captured session file."""
    return (HERE / "transcripts" / "others" / f"{name}.jsonl").read_text(encoding="utf-8")


def test_a_fresh_start_chooses_session_and_name_and_brings_the_plugin() -> None:
    launch = launched(has_prompt=True, model="gpt-x")
    assert launch.argv == (
        *("copilot", "--session-id", SESSION, "--name", "bo-1", "--model", "gpt-x"),
        *("--plugin-dir", PLUGIN, "-i", PROMPT),
    )
    assert launch.env == {"COPILOT_AUTO_UPDATE": "false"}


def test_a_resumed_start_names_the_session_alone() -> None:
    assert launched(resume=True).argv == ("copilot", f"--resume={SESSION}", "--plugin-dir", PLUGIN)


def test_trust_and_every_tool_are_given_at_once_only_where_the_file_gives_both() -> None:
    wide = {"permission_mode": "bypassPermissions", "dialogs": Dialogs(trust="accept")}
    assert launched(**wide).env["COPILOT_ALLOW_ALL"] == "true"
    for given in ({"permission_mode": "bypassPermissions"}, {"dialogs": Dialogs(trust="accept")}):
        assert "COPILOT_ALLOW_ALL" not in launched(**given).env
    assert "--yolo" in launched(permission_mode="bypassPermissions").argv
    assert "--yolo" not in launched(dialogs=Dialogs(trust="accept")).argv


def test_a_permission_mode_that_it_does_not_know_is_said() -> None:
    assert launched(permission_mode="plan").dropped == ("permission_mode plan",)


def test_where_nobody_answers_questions_there_is_no_tool_to_ask_them() -> None:
    refusing = launched(dialogs=Dialogs(question="deny"))
    assert "--no-ask-user" in refusing.argv
    assert "PreToolUse" in json.loads(refusing.files[f"{PLUGIN}/hooks.json"])["hooks"]
    assert "PreToolUse" not in json.loads(launched().files[f"{PLUGIN}/hooks.json"])["hooks"]


def test_the_plugin_hooks_each_event_once_and_tells_what_fleet_mail_is() -> None:
    files = launched().files
    about = json.loads(files[f"{PLUGIN}/plugin.json"])
    hooks = json.loads(files[f"{PLUGIN}/hooks.json"])["hooks"]
    assert (about["hooks"], about["skills"]) == ("hooks.json", ["skills"])
    assert hooks["Stop"] == [{"type": "command", "bash": "'/state/review/bin/nbs-hook' Stop", "timeoutSec": 10}]
    assert hooks["permissionRequest"][0]["bash"] == "'/state/review/bin/nbs-hook' PermissionRequest"
    assert hooks["SessionStart"][1]["bash"] == f"cat '{PLUGIN}/briefing.json'"
    told = json.loads(files[f"{PLUGIN}/briefing.json"])["additionalContext"]
    assert told.startswith("You are bo-1, one of several agents that work together in the team review")


def test_session_files_lie_below_its_own_home() -> None:
    here = Copilot().places(make_facts(driver="copilot"))
    assert here.transcript == f"/home/ana/.copilot/session-state/{SESSION}/events.jsonl"
    there = Copilot().places(make_facts(driver="copilot", environ={"COPILOT_HOME": "/srv/copilot"}))
    assert there.transcript == f"/srv/copilot/session-state/{SESSION}/events.jsonl"


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n", "1.0.102"),
        ("aws copilot version: v1.34.1", None),
    ],
)
def test_only_its_own_banner_is_a_version(said: str, version: str | None) -> None:
    assert Copilot().parse_version(said) == version


def hook(payload: dict[str, Any]) -> Any:
    """What the driver makes of a payload."""
    return Copilot().read_hook(json.dumps(payload))


def test_a_request_for_a_permission_is_read_in_its_own_spelling() -> None:
    news = hook(
        {
            "hookName": "permissionRequest",
            "sessionId": SESSION,
            "timestamp": 1795874718487,
            "cwd": "/home/me/proj",
            "toolName": "bash",
            "toolInput": {"command": "echo one > f1"},
            "permissionSuggestions": [],
        }
    )
    assert (news.event, news.session_id, news.tool) == ("PermissionRequest", SESSION, "bash")
    assert (news.reading.state, news.reading.detail) == (AgentState.BUSY, "bash: echo one > f1")
    assert news.request == "bash\ncommand: echo one > f1"


def test_that_a_dialog_opens_a_notification_says() -> None:
    news = hook(
        {
            "sessionId": SESSION,
            "message": "Run command: echo three > f3",
            "title": "Permission needed",
            "hook_event_name": "Notification",
            "notification_type": "permission_prompt",
        }
    )
    assert (news.reading.blocked, news.reading.detail) == (BlockedKind.PERMISSION, "Run command: echo three > f3")


def test_a_prompt_a_stop_and_a_question_are_read() -> None:
    head = {"session_id": SESSION, "timestamp": "2026-11-28T14:05:17.694Z", "cwd": "/home/me/proj"}
    prompt = hook({"hook_event_name": "UserPromptSubmit", **head, "prompt": "[nbs:d-4] go on"})
    assert (prompt.prompt, prompt.reading.state) == ("[nbs:d-4] go on", AgentState.BUSY)
    stop = hook({"hook_event_name": "Stop", **head, "stop_reason": "end_turn", "stop_hook_active": False})
    assert stop.reading.state is AgentState.IDLE
    asked = {"sessionId": SESSION, "message": "Information requested", "hook_event_name": "Notification"}
    question = hook({**asked, "notification_type": "elicitation_dialog"})
    assert (question.session_id, question.reading.blocked) == (SESSION, BlockedKind.QUESTION)


def test_a_session_file_tells_prompts_turns_and_last_words() -> None:
    text = session_file("copilot_turns")
    turns = Copilot().read_transcript(text, text)
    assert (turns.prompts, turns.finished) == (4, 4)
    assert (turns.reading.state, turns.last_text) == (AgentState.IDLE, "went on")
    begun = text[: text.index('"assistant.turn_end"')]
    assert Copilot().read_transcript(begun, "").reading.state is AgentState.BUSY


def test_a_session_file_tells_of_an_error() -> None:
    turns = Copilot().read_transcript(session_file("copilot_error401"), "")
    assert turns.reading.detail.startswith("error: Authentication failed")


def test_only_what_reached_the_model_proves_a_message() -> None:
    text = session_file("copilot_turns")
    assert Copilot().proofs(text) == ("d-3", "d-2", "d-4")
    printed = {"content": "[nbs:d-9] from an archive", "detailedContent": "[nbs:d-9] from an archive"}
    line = {"type": "tool.execution_complete", "id": "x", "data": {"success": True, "result": printed}}
    words = {"type": "assistant.message", "id": "y", "data": {"content": "[nbs:d-8] I said"}}
    assert Copilot().proofs(json.dumps(line) + "\n" + json.dumps(words)) == ()


@pytest.mark.parametrize(
    ("code", "lines", "kind"),
    [
        (0, ("", "  Resume     copilot --resume=1"), ExitKind.CLEAN),
        (1, ("Error: No session, task, or name matched '9'.",), ExitKind.NO_CONVERSATION),
        (1, ("error: unexpected argument '--bogus' found",), ExitKind.REFUSED),
        (1, ("something else",), ExitKind.CRASH),
    ],
)
def test_an_end_is_told_by_status_and_words(code: int, lines: tuple[str, ...], kind: ExitKind) -> None:
    assert Copilot().read_exit(code, None, lines) is kind
