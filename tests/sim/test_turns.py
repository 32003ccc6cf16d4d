"""Turns: what is said, done, queued, interrupted and recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.sim.conftest import Begin
    from tests.support.sim_client import SimClient

BYPASS = "--dangerously-skip-permissions"
ASK: dict[str, Any] = {
    "questions": [{"question": "Which?", "header": "Pick", "options": [{"label": "A"}, {"label": "B"}]}]
}


def kinds(client: SimClient) -> list[str]:
    """The lines of the transcript in short."""
    found = []
    for line in client.lines():
        content = (line.get("message") or {}).get("content")
        blocks = content if isinstance(content, list) else []
        part = blocks[0]["type"] if blocks else line.get("subtype") or (line.get("attachment") or {}).get("type") or ""
        found.append(f"{line['type']}/{part or line.get('operation', '')}".rstrip("/"))
    return found


def last_user(client: SimClient) -> str:
    message = [m for m in client.requests()[-1] if m["role"] == "user"][-1]
    return "".join(block.get("text", "") for block in message["content"])


def test_a_turn_is_recorded_line_by_line(begin: Begin) -> None:
    client = begin("--name", "ana", BYPASS)
    client.turn("[[bash echo hi]] [[saytool now || Read {}]] [[say done]]")
    assert kinds(client) == [
        "custom-title",
        "agent-name",
        "mode",
        "permission-mode",
        "user",
        "assistant/tool_use",
        "user/tool_result",
        "assistant/text",
        "assistant/tool_use",
        "user/tool_result",
        "assistant/text",
        "system/turn_duration",
    ]
    said = [line["message"] for line in client.lines() if line["type"] == "assistant"]
    assert [message["stop_reason"] for message in said] == ["tool_use", "tool_use", "tool_use", "end_turn"]
    user = next(line for line in client.lines() if line["type"] == "user")
    assert (user["promptSource"], user["origin"], user["permissionMode"]) == (
        "typed",
        {"kind": "human"},
        "bypassPermissions",
    )


def test_a_large_prompt_arrives_byte_for_byte(begin: Begin) -> None:
    text = "start 'quotes' \"double\" $HOME `ls` \\ back 日本 👩‍👩‍👧 é\n  indented;\n" + "x" * 20_000 + "\nend;"
    client = begin(BYPASS)
    client.turn(text)
    assert last_user(client) == text
    prompt = next(line for line in client.lines() if line["type"] == "user")
    assert prompt["message"]["content"] == text


def test_the_tools_really_work(begin: Begin, tmp_path: Path) -> None:
    client = begin(BYPASS)
    path = tmp_path / "deep/er/f.txt"
    write = json.dumps({"file_path": str(path), "content": "one\ntwo\n"})
    edit = json.dumps({"file_path": str(path), "old_string": "one", "new_string": "uno"})
    client.turn(f"[[tool Write {write}]] [[tool Edit {edit}]] [[bash cat {path}; exit 3]] [[tool Zzz {{}}]] [[say ok]]")
    assert path.read_text() == "uno\ntwo\n"
    assert "Exit code 3\\nuno\\ntwo" in client.heard()
    assert "No such tool available: Zzz" in client.heard()
    client.until_text("● Update(")
    client.until_text("Added 1 line, removed 1 line")


def test_the_working_directory_follows_a_cd(begin: Begin, tmp_path: Path) -> None:
    client = begin(BYPASS)
    client.turn(f"[[bash cd {tmp_path}]] [[bash pwd]] [[say ok]]")
    assert f'"content": "{tmp_path}"' in client.heard()


def test_plain_text_while_busy_joins_at_the_next_tool_boundary(begin: Begin) -> None:
    client = begin(BYPASS)
    client.say("[[bash sleep 0.6]] [[say over]]")
    client.until_text("Running…")
    client.say("by the way")
    client.until_text("  ❯ by the way")
    assert "❯\xa0Press up to edit queued messages" in client.text()
    client.until(lambda: client.ended() == 1)
    assert "The user sent a new message while you were working:\\nby the way" in client.heard()
    operations = [line["operation"] for line in client.lines() if line["type"] == "queue-operation"]
    assert operations == ["enqueue", "remove"]
    queued = next(line["attachment"] for line in client.lines() if line.get("attachment"))
    assert (queued["type"], queued["prompt"], queued["commandMode"]) == ("queued_command", "by the way", "prompt")


def test_what_is_still_queued_at_the_end_becomes_the_next_turn(begin: Begin) -> None:
    client = begin()
    client.say("[[wait 0.6 slow]]")
    client.until_status("busy")
    client.say("one")
    client.say("two")
    client.until(lambda: client.ended() == 2)
    assert client.text().count("● ok: one  two") >= 1
    users = [line for line in client.lines() if line["type"] == "user"]
    assert [(line["message"]["content"], line["promptSource"]) for line in users[1:]] == [
        ("one", "queued"),
        ("two", "queued"),
    ]


def test_up_brings_the_queue_back_into_the_box(begin: Begin) -> None:
    client = begin()
    client.say("[[wait 1 slow]]")
    client.until_status("busy")
    client.say("one")
    client.until_text("  ❯ one")
    client.send("\x1b[A")
    client.until(lambda: client.ended() == 1)
    assert client.lines()[-1]["subtype"] == "turn_duration"
    client.send("\r")
    client.until(lambda: client.ended() == 2)
    assert "popAll" in [line.get("operation") for line in client.lines()]


def test_escape_before_anything_came_takes_the_prompt_back(begin: Begin) -> None:
    client = begin()
    client.say("[[wait 30 never]]")
    client.until_status("busy")
    client.send("\x1b")
    client.until_status("idle")
    client.send("\x01X")
    client.until_text("X[[wait 30 never]]")
    assert client.ended() == 0


def test_escape_in_a_tool_kills_the_command_and_ends_the_turn(begin: Begin, tmp_path: Path) -> None:
    client = begin(BYPASS)
    client.say(f"[[bash echo $$ > {tmp_path}/pid; exec sleep 60]] [[say never]]")
    pid = client.until(lambda: int((tmp_path / "pid").read_text() or 0) if (tmp_path / "pid").exists() else 0)
    client.send("\x1b")
    client.until_status("idle")
    client.until(lambda: not Path(f"/proc/{pid}").exists())
    client.until_text("⎿ \xa0Interrupted · What should Claude do instead?")
    client.until(lambda: kinds(client)[-1:] == ["user/text"])
    assert client.lines()[-1]["message"]["content"][0]["text"] == "[Request interrupted by user for tool use]"
    assert client.ended() == 0


def test_an_interrupt_submits_what_is_queued_at_once(begin: Begin) -> None:
    client = begin(BYPASS)
    client.say("[[bash sleep 60]]")
    client.until_text("Running…")
    client.say("now this")
    client.until_text("  ❯ now this")
    client.send("\x1b")
    client.until(lambda: client.ended() == 1)
    client.until_text("● ok: [Request interrupted by user for tool use]")


def test_a_streamed_reply_can_be_cut_in_the_middle(begin: Begin) -> None:
    client = begin(settings={"prefersReducedMotion": False})
    client.say("[[slow 60 " + " ".join(["word"] * 3000) + "]]")
    client.until_text("● word word")
    client.send("\x03")
    client.until_status("idle")
    client.until(lambda: kinds(client)[-1:] == ["user/text"])
    assert client.lines()[-1]["message"]["content"][0]["text"] == "[Request interrupted by user]"


def test_a_long_unbracketed_read_swallows_its_enter(begin: Begin) -> None:
    client = begin()
    client.send("y" * 100 + "\r")
    client.until_text("y" * 90)
    assert client.state()["status"] == "idle"
    client.send("\r")
    client.until(lambda: client.ended() == 1)
    assert last_user(client) == "y" * 100


def test_a_stashed_draft_survives_a_prompt(begin: Begin) -> None:
    client = begin()
    client.send("half typed")
    client.send("\x13")
    client.until_text("› stashed")
    client.turn("injected")
    client.send("\r")
    client.until(lambda: client.ended() == 2)
    assert [line["message"]["content"] for line in client.lines() if line["type"] == "user"] == [
        "injected",
        "half typed",
    ]


# --- dialogs


def test_a_command_that_changes_things_asks_and_the_state_says_so(begin: Begin) -> None:
    client = begin()
    client.say("[[bash touch made]] [[say did]]")
    state = client.until_status("waiting")
    assert state["waitingFor"] == "permission prompt"
    client.until_text("Do you want to proceed?")
    assert client.titles()[-1][0] == "✳"
    client.send("1")
    client.until(lambda: client.ended() == 1)
    assert (client.project / "made").exists()


def test_no_ends_the_turn_without_the_tool(begin: Begin) -> None:
    client = begin()
    client.say("[[bash touch made]] [[say did]]")
    client.until_status("waiting")
    client.send("3")
    client.until_status("idle")
    client.until(lambda: kinds(client)[-2:] == ["user/tool_result", "user/text"])
    assert not (client.project / "made").exists()


def test_text_and_enter_into_an_open_dialog_accept_it(begin: Begin) -> None:
    client = begin()
    client.say("[[bash touch made]] [[say did]]")
    client.until_status("waiting")
    client.paste("a message for nobody")
    client.send("\r")
    client.until(lambda: client.ended() == 1)
    assert (client.project / "made").exists()
    assert "nobody" not in json.dumps(client.requests())


def test_settings_can_allow_and_deny(begin: Begin) -> None:
    client = begin(settings={"permissions": {"allow": ["Bash(touch:*)"], "deny": ["Bash(rm:*)"]}})
    client.turn("[[bash touch made]] [[bash rm made]] [[say did]]")
    assert (client.project / "made").exists()
    assert "Permission to use Bash with command rm made has been denied." in client.heard()


def test_allowing_all_edits_changes_the_mode(begin: Begin) -> None:
    client = begin()
    write = json.dumps({"file_path": "a.txt", "content": "x"})
    client.say(f"[[tool Write {write}]] [[tool Write {write}]] [[say did]]")
    client.until_status("waiting")
    client.until_text("Do you want to create a.txt?")
    client.send("2")
    client.until(lambda: client.ended() == 1)
    client.until_text("accept edits on")


def test_a_question_is_answered_by_a_digit(begin: Begin) -> None:
    client = begin(BYPASS)
    client.say(f"[[tool AskUserQuestion {json.dumps(ASK)}]] [[say thanks]]")
    client.until_status("waiting")
    client.send("2")
    client.until(lambda: client.ended() == 1)
    assert 'have been answered: \\"Which?\\"=\\"B\\"' in client.heard()
    client.until_text("·\xa0Which? → B".replace("\xa0", " "))


@pytest.mark.parametrize(("key", "mode"), [("1", "bypass permissions on"), ("2", "? for shortcuts")])
def test_a_plan_is_approved_in_bypass_mode_too(begin: Begin, key: str, mode: str) -> None:
    client = begin(BYPASS)
    client.say("[[tool EnterPlanMode {}]] [[plan]] [[tool ExitPlanMode {}]] [[say go]]")
    client.until_text("1. Yes, and bypass permissions")
    client.until_status("waiting")
    seen = len(client.text())
    client.send(key)
    client.until(lambda: client.ended() == 1)
    client.until(lambda: mode in client.text()[seen:])
    assert "User has approved your plan" in client.heard()


def test_feedback_on_a_plan_goes_to_the_model_and_the_mode_stays(begin: Begin) -> None:
    client = begin(BYPASS)
    client.say("[[tool EnterPlanMode {}]] [[plan]] [[tool ExitPlanMode {}]] [[say again]]")
    client.until_status("waiting")
    client.send("3")
    client.until_text("❯ 3. Tell Claude")
    client.send("more tests")
    client.until_text("❯ 3. more tests")
    client.send("\r")
    client.until(lambda: client.ended() == 1)
    assert "the user said:\\nmore tests" in client.heard()
    client.until_text("plan mode on")


def test_a_settings_dialog_is_told_as_an_open_dialog(begin: Begin) -> None:
    client = begin()
    client.send("/config\r")
    client.until(lambda: client.state().get("waitingFor") == "dialog open")
    client.send("\x1b")
    client.until_status("idle")


# --- errors, commands, background


def test_an_api_error_is_shown_and_recorded_and_leaves_the_client_idle(begin: Begin) -> None:
    client = begin()
    client.turn("[[err 429 9]]")
    client.until_text("● API Error: Request rejected (429)")
    line = next(line for line in client.lines() if line.get("isApiErrorMessage"))
    assert (line["error"], line["apiErrorStatus"], line["message"]["model"]) == ("rate_limit", 429, "<synthetic>")
    assert line["message"]["stop_reason"] == "stop_sequence"


def test_failed_requests_are_tried_again(begin: Begin) -> None:
    client = begin(env={"CLAUDE_CODE_MAX_RETRIES": "2"})
    client.turn("[[err 500 1]]")
    client.until_text("Retrying in 1s · attempt 1/2")
    client.until_text("● recovered after 1 errors")


def test_an_error_in_mid_stream_keeps_what_came(begin: Begin) -> None:
    client = begin()
    client.turn("[[streamerr overloaded_error]]")
    client.until_text("● partial text before the error")
    client.until_text("● API Error: scripted overloaded_error")


def test_unknown_commands_stay_here(begin: Begin) -> None:
    client = begin()
    client.send("/nosuch these args\r")
    client.until_text("● Unknown command: /nosuch")
    client.until_text("● Args from unknown skill: these args")
    client.until(lambda: [line.get("content") for line in client.lines() if line.get("level") == "warning"])
    assert client.requests() == []


def test_a_skill_is_expanded_for_the_model(begin: Begin, tmp_path: Path) -> None:
    folder = tmp_path / "project/.claude/skills/greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\ndescription: x\n---\n\nGreet $ARGUMENTS now. [[say greeted]]")
    client = begin()
    client.turn("/greet the crew")
    assert "Greet the crew now." in last_user(client)
    client.until_text("❯ /greet the crew")
    client.until_text("● greeted")


def test_a_shell_command_runs_without_asking_and_the_model_hears_of_it(begin: Begin) -> None:
    client = begin()
    client.send("!")
    client.until_text("! for shell mode")
    client.send("echo $((40+2)); touch made")
    client.send("\r")
    client.until(lambda: client.ended() == 1)
    assert "<bash-stdout>42</bash-stdout>" in client.heard()
    assert (client.project / "made").exists()


def test_clear_begins_another_session_in_the_same_process(begin: Begin) -> None:
    client = begin()
    client.turn("[[say remembered]]")
    before = client.state()["sessionId"]
    client.send("/clear\r")
    client.until(lambda: client.state()["sessionId"] != before)
    client.until_status("idle")
    client.turn("[[say fresh]]")
    assert "remembered" not in client.heard()


def test_a_reply_waits_for_a_file(begin: Begin) -> None:
    client = begin()
    client.say("[[until go here it comes]]")
    client.until_status("busy")
    assert client.ended() == 0
    (client.project / "go").write_text("", encoding="utf-8")
    client.until_text("● here it comes")
    client.until(lambda: client.ended() == 1)


def test_the_pid_of_a_command_s_parent_is_the_client(begin: Begin, tmp_path: Path) -> None:
    """Scripted crashes kill $PPID."""
    client = begin(BYPASS)
    client.turn(f"[[bash echo $PPID > {tmp_path}/ppid]] [[say ok]]")
    assert int((tmp_path / "ppid").read_text()) == client.pid
    client.say("[[bash kill -9 $PPID]]")
    assert client.wait() == 137
    assert client.state()
