"""The Qwen driver: how a start looks, what its settings hold, what its hooks and session file say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nbs_fleet.drivers.base import PROMPT, Launch
from nbs_fleet.drivers.qwen import Qwen
from nbs_fleet.model import AgentState, BlockedKind, ExitKind
from nbs_fleet.spec.team import Dialogs
from tests.drivers.support import HERE, SESSION, make_facts

SETTINGS = "/state/review/agents/bo-1/settings.json"


def launched(**given: Any) -> Launch:
    """A start with these fields."""
    return Qwen().launch(make_facts(driver="qwen", **given))


def settings(**given: Any) -> dict[str, Any]:
    """The settings of a start with these fields."""
    return Qwen().settings(make_facts(driver="qwen", **given))


def session_file() -> str:
    """A captured session file."""
    return (HERE / "transcripts" / "others" / "qwen_turns.jsonl").read_text(encoding="utf-8")


def test_a_fresh_start_chooses_the_session_and_tells_the_agent_of_fleet_mail() -> None:
    launch = launched(has_prompt=True, model="qwen-x", permission_mode="bypassPermissions")
    assert launch.argv[:7] == ("qwen", "--session-id", SESSION, "-m", "qwen-x", "--approval-mode", "yolo")
    assert launch.argv[-2:] == ("-i", PROMPT)
    assert launch.argv[launch.argv.index("--append-system-prompt") + 1].startswith("You are bo-1,")


def test_a_resumed_start_names_the_session_alone() -> None:
    assert launched(resume=True).argv[:3] == ("qwen", "-r", SESSION)


def test_a_system_prompt_of_the_team_files_own_takes_the_place_of_ours() -> None:
    assert launched(args=("--append-system-prompt", "mine")).argv.count("--append-system-prompt") == 1


def test_our_settings_give_way_to_a_persons_and_those_of_the_team_file_do_not() -> None:
    assert launched().env == {"QWEN_CODE_SYSTEM_DEFAULTS_PATH": SETTINGS}
    assert launched(settings={"ui": {"theme": "x"}}).env == {"QWEN_CODE_SYSTEM_SETTINGS_PATH": SETTINGS}


def test_settings_hook_each_event_once_in_milliseconds() -> None:
    hooks = settings()["hooks"]
    command = {"type": "command", "command": "'/state/review/bin/nbs-hook' Stop", "timeout": 10_000}
    assert hooks["Stop"] == [{"hooks": [command]}]
    assert "PreToolUse" not in hooks
    assert "PreToolUse" in settings(dialogs=Dialogs(question="deny"))["hooks"]


def test_hooks_of_the_team_file_run_beside_ours() -> None:
    theirs = {"hooks": [{"type": "command", "command": "mine"}]}
    hooks = settings(settings={"hooks": {"Stop": [theirs], "Own": [theirs]}})["hooks"]
    assert hooks["Stop"][1] == theirs
    assert hooks["Own"] == [theirs]


def test_a_key_in_the_environment_chooses_the_way_to_log_in() -> None:
    assert "security" not in settings()
    auth = settings(environ={"OPENAI_API_KEY": "x"})["security"]["auth"]
    assert auth == {"selectedType": "openai"}


def test_a_busy_client_is_reached_by_hooks_and_no_way_in_is_used_that_may_lose_a_message() -> None:
    assert Qwen().capabilities.stop_block
    assert Qwen().capabilities.context_after_tool
    assert Qwen().inbox(make_facts(driver="qwen"), SESSION) is None


def test_session_files_lie_in_a_folder_named_after_the_working_directory() -> None:
    here = Qwen().places(make_facts(driver="qwen", real_dir="/srv/my_proj.x"))
    assert here.transcript == f"/home/ana/.qwen/projects/-srv-my-proj-x/chats/{SESSION}.jsonl"
    there = Qwen().places(make_facts(driver="qwen", environ={"QWEN_HOME": "/srv/qwen"}))
    assert there.transcript == f"/srv/qwen/projects/-srv-project/chats/{SESSION}.jsonl"


def hook(**payload: Any) -> Any:
    """What the driver makes of a payload."""
    return Qwen().read_hook(json.dumps({"session_id": SESSION, "cwd": "/home/me/proj", **payload}))


def test_requests_are_told_apart_by_their_tools() -> None:
    shell = hook(hook_event_name="PermissionRequest", tool_name="run_shell_command", tool_input={"command": "ls"})
    assert (shell.reading.blocked, shell.reading.detail) == (BlockedKind.PERMISSION, "run_shell_command: ls")
    plan = hook(hook_event_name="PermissionRequest", tool_name="exit_plan_mode", tool_input={"plan": "# Do it"})
    assert (plan.reading.blocked, plan.request) == (BlockedKind.PLAN, "# Do it")


def test_a_tools_result_on_its_way_is_no_prompt() -> None:
    inner = hook(hook_event_name="UserPromptSubmit", prompt="")
    assert (inner.event, inner.prompt, inner.reading.state) == ("PostToolBatch", None, AgentState.BUSY)
    outer = hook(hook_event_name="UserPromptSubmit", prompt="[nbs:d-4] go on")
    assert (outer.event, outer.prompt) == ("UserPromptSubmit", "[nbs:d-4] go on")


def test_a_stop_and_the_notice_after_it_mean_idle() -> None:
    stop = hook(hook_event_name="Stop", stop_hook_active=True, last_assistant_message="done two")
    assert (stop.reading.state, stop.last_text) == (AgentState.IDLE, "done two")
    assert hook(hook_event_name="Notification", notification_type="idle_prompt").reading.state is AgentState.IDLE


def test_a_session_file_tells_prompts_turns_and_last_words() -> None:
    turns = Qwen().read_transcript(session_file(), session_file())
    assert (turns.prompts, turns.reading.state, turns.last_text) == (2, AgentState.IDLE, "went on")
    first = session_file().splitlines()[0]
    assert Qwen().read_transcript(first, "").reading.state is AgentState.BUSY


def tool_line(output: str, name: str = "run_shell_command") -> str:
    """One line of a session file with a tool's result, as measured."""
    response = {"id": "call_1", "name": name, "response": {"output": output}}
    return json.dumps({"uuid": "u", "type": "tool_result", "message": {"parts": [{"functionResponse": response}]}})


def test_only_what_reached_the_model_proves_a_message() -> None:
    assert Qwen().proofs(session_file()) == ("d-7",)
    result = "Command: x\nOutput: {}\nExit Code: 0\nSignal: 0\nProcess Group PGID: 3132"
    assert Qwen().proofs(tool_line(result.format("two") + "\n\n[nbs:d-2] post")) == ("d-2",)
    assert Qwen().proofs(tool_line(result.format("[nbs:d-9] of an archive"))) == ()
    assert Qwen().proofs(tool_line("[nbs:d-9] of an archive", name="read_file")) == ()


@pytest.mark.parametrize(
    ("code", "lines", "kind"),
    [
        (0, ("  To continue this session, run qwen --resume 3",), ExitKind.CLEAN),
        (1, ("No saved session found with ID 9. Run `qwen --resume`",), ExitKind.NO_CONVERSATION),
        (1, (f"Error: Session Id {SESSION} is already in use.",), ExitKind.SESSION_IN_USE),
        (1, ("Unknown argument: bogus",), ExitKind.REFUSED),
        (1, ("something else",), ExitKind.CRASH),
    ],
)
def test_an_end_is_told_by_status_and_words(code: int, lines: tuple[str, ...], kind: ExitKind) -> None:
    assert Qwen().read_exit(code, None, lines) is kind
