"""Startup dialogs: which appear, what the keys do, and what is remembered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.sim.conftest import Begin

BYPASS = "--dangerously-skip-permissions"
ASKING = {"skipDangerousModePermissionPrompt": False}


def scenario(tmp_path: Path, **keys: Any) -> list[str]:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(keys))
    return ["--scenario", str(path)]


def test_without_a_scenario_it_comes_straight_up(begin: Begin) -> None:
    assert begin().titles() == ["✳ Claude Code"]


def test_while_a_dialog_is_up_there_is_no_state_no_title_and_no_hook(begin: Begin, tmp_path: Path) -> None:
    hooks = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {tmp_path}/ran"}]}]}}
    client = begin(*scenario(tmp_path, trusted=False), ready=False, settings=hooks)
    client.until_text("❯ 1. Yes, I trust this folder")
    assert not client.state()
    assert client.titles() == []
    client.send("1")
    client.until_status("idle")
    client.until((tmp_path / "ran").exists)
    config = json.loads((client.config / ".claude.json").read_text())
    assert config["projects"][str(client.project)]["hasTrustDialogAccepted"] is True


@pytest.mark.parametrize("keys", ["2", "\x1b", "\x1b[B\r"])
def test_no_trust_ends_the_client_with_1(begin: Begin, tmp_path: Path, keys: str) -> None:
    client = begin(*scenario(tmp_path, trusted=False), ready=False)
    client.until_text("❯ 1. Yes, I trust this folder")
    client.send(keys)
    assert client.wait() == 1


def test_trust_can_follow_the_config_as_the_real_client_does(begin: Begin, tmp_path: Path) -> None:
    args = scenario(tmp_path, nbs_fleet={"startup": ["trust"]})
    first = begin(*args, ready=False)
    first.until_text("❯ 1. Yes, I trust this folder")
    first.send("\r")
    first.until_status("idle")
    begin(*args)
    begin(*args, ready=False, env={"CLAUDE_CONFIG_DIR": str(tmp_path / "other")}).until_text("Accessing workspace:")


@pytest.mark.parametrize("name", ["CLAUDE_CODE_SANDBOXED", "CLAUBBIT"])
def test_a_sandbox_needs_no_trust(begin: Begin, tmp_path: Path, name: str) -> None:
    begin(*scenario(tmp_path, trusted=False), env={name: "1"})


def test_the_bypass_warning_is_asked_once_and_kept_in_the_user_s_settings(begin: Begin) -> None:
    client = begin(BYPASS, ready=False, settings=ASKING)
    client.until_text("❯ 1. No, exit")
    client.send("2")
    client.until_status("idle")
    assert json.loads((client.config / "settings.json").read_text()) == {"skipDangerousModePermissionPrompt": True}
    client.close()
    begin(BYPASS, settings=ASKING)


def test_enter_at_the_bypass_warning_exits(begin: Begin) -> None:
    client = begin(BYPASS, ready=False, settings=ASKING)
    client.until_text("❯ 1. No, exit")
    client.send("\r")
    assert client.wait() == 1


def test_a_first_run_goes_through_theme_login_and_notes(begin: Begin, tmp_path: Path) -> None:
    client = begin(*scenario(tmp_path, logged_in=False), ready=False)
    client.until_text("Choose the text style that looks best with your terminal")
    client.send("\r")
    client.until_text("Select login method:")
    client.send("2")
    client.until_text("Press Enter to continue…")
    client.send("\r")
    client.until_status("idle")


def test_key_and_server_dialogs_can_be_scripted(begin: Begin, tmp_path: Path) -> None:
    args = scenario(tmp_path, nbs_fleet={"startup": ["apikey", "mcp"]})
    client = begin(*args, ready=False, env={"ANTHROPIC_API_KEY": "sk-ant-something-0123456789"})
    client.until_text("Detected a custom API key in your environment")
    client.send("1")
    client.until_text("New MCP server found in this project: scripted")
    client.send("3")
    client.until_status("idle")


def test_faulty_settings_are_shown_before_anything_else(begin: Begin, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("{")
    client = begin("--settings", str(path), ready=False)
    client.until_text("Settings Error")
    client.until_text("└ Invalid or malformed JSON")
    client.send("3")
    client.until_status("idle")
    client.close()
    path.write_text('{"hooks": {"Nope": []}}')
    client = begin("--settings", str(path), ready=False)
    client.until_text("Settings Warning")
    client.send("\r")
    client.until_status("idle")


def test_a_dialog_at_the_start_takes_the_prompt_s_enter_not_its_text(begin: Begin, tmp_path: Path) -> None:
    client = begin(*scenario(tmp_path, trusted=False), ready=False)
    client.until_text("❯ 1. Yes, I trust this folder")
    client.paste("hello there")
    client.send("\r")
    client.until_status("idle")
    assert "❯ hello there" not in client.text()
    client.turn("[[say x]]")


# --- scenarios of claudeless


WORKER = """
name = "worker"
[tool_execution]
mode = "live"
[tool_execution.tools.Bash]
auto_approve = true

[[responses]]
pattern = { type = "contains", text = "You are" }
response = "Ready."

[[responses]]
pattern = { type = "contains", text = "[nbs] unread" }
max_matches = 1
[responses.response]
text = "Reading the chat."
[[responses.response.tool_calls]]
tool = "Bash"
input = { command = "touch \\"$NBS_HANDLE\\"" }

[default_response]
text = "Nothing to do."
"""


def test_a_worker_scenario_plays_its_rules(begin: Begin, tmp_path: Path) -> None:
    path = tmp_path / "worker.toml"
    path.write_text(WORKER)
    client = begin("--scenario", str(path), "--", "You are ana", env={"NBS_HANDLE": "ana"})
    client.until(lambda: client.ended() == 1)
    client.until_text("● Ready.")
    client.turn("[nbs] unread: 1")
    client.until_text("● Reading the chat.")
    assert (client.project / "ana").exists()
    client.turn("[nbs] unread: 2")
    client.until_text("● Nothing to do.")


def test_failures_of_a_scenario_come_at_once(begin: Begin, tmp_path: Path) -> None:
    kinds = {
        "network_unreachable": "Unable to connect to API (ConnectionRefused)",
        "auth_error": "Invalid API key · Fix external API key",
        "rate_limit": "Request rejected (429)",
        "out_of_credits": "Credit balance is too low",
        "partial_response": "half an",
        "malformed_json": "Unexpected end of JSON input",
        "connection_timeout": "Request timed out",
    }
    fields: dict[str, dict[str, Any]] = {
        "auth_error": {"message": "expired"},
        "rate_limit": {"retry_after": 9},
        "partial_response": {"partial_text": "half an"},
        "connection_timeout": {"after_ms": 10},
    }
    rules = [
        {"pattern": {"type": "exact", "text": kind}, "failure": {"type": kind, **fields.get(kind, {})}}
        for kind in kinds
    ]
    client = begin(*scenario(tmp_path, responses=rules), env={"CLAUDE_CODE_MAX_RETRIES": "10"})
    for kind, shown in kinds.items():
        client.turn(kind)
        client.until_text(shown)


def test_a_blocked_scenario_asks_and_hears_the_answer(begin: Begin, tmp_path: Path) -> None:
    options = [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]
    question = {"question": "Which?", "header": "Pick", "multiSelect": False, "options": options}
    ask = {"tool": "AskUserQuestion", "input": {"questions": [question]}}
    rules = [
        {"pattern": {"type": "contains", "text": '"answers"'}, "response": "Thanks."},
        {"pattern": {"type": "contains", "text": "ask"}, "response": {"text": "One question.", "tool_calls": [ask]}},
    ]
    client = begin(*scenario(tmp_path, responses=rules))
    client.say("ask me")
    client.until_status("waiting")
    client.send("2")
    client.until_text("● Thanks.")


def test_tools_can_be_mocked_denied_and_answered_by_the_scenario(begin: Begin, tmp_path: Path) -> None:
    bash = {"tool": "Bash", "input": {"command": "touch made"}, "result": "as if"}
    edit = {"tool": "Edit", "input": {}}
    question = {"question": "Which?", "header": "P", "options": []}
    asked = {"tool": "AskUserQuestion", "input": {"questions": [question]}}
    response = {"text": "x", "tool_calls": [bash, edit, asked]}
    tools = {
        "Bash": {"auto_approve": True},
        "Edit": {"error": "no edits"},
        "AskUserQuestion": {"answers": {"Which?": "A"}},
    }
    client = begin(
        *scenario(
            tmp_path,
            responses=[
                {
                    "pattern": {"type": "any"},
                    "response": response,
                    "turns": [{"expect": {"type": "any"}, "response": "ok"}],
                }
            ],
            tool_execution={"mode": "mock", "tools": tools},
        )
    )
    client.turn("go")
    assert not (client.project / "made").exists()
    for text in ('"content": "as if"', '"content": "no edits"', '\\"Which?\\"=\\"A\\"'):
        assert text in client.heard()
