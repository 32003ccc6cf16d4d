"""The client's own files: where they are, and what is in them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nbs_fleet.sim import place, skills, statefile, tools
from nbs_fleet.sim.context import Context


def test_the_config_is_inside_its_directory_only_if_that_is_given() -> None:
    assert place.config_file({"HOME": "/h"}) == "/h/.claude.json"
    assert place.config_file({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}) == "/c/.claude.json"
    assert place.config_dir({"HOME": "/h"}) == "/h/.claude"


def test_a_project_s_folder_is_its_path_with_dashes_and_a_long_one_is_hashed() -> None:
    assert place.slug("/home/me/my_pro.ject é") == "-home-me-my-pro-ject--"
    long = place.slug("/" + "x" * 250)
    assert long.startswith("-" + "x" * 199 + "-")
    assert long != place.slug("/" + "x" * 251)


def test_trust_is_kept_at_the_git_root(tmp_path: Path) -> None:
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/a/b").mkdir(parents=True)
    assert place.project_root(str(tmp_path / "repo/a/b")) == str(tmp_path / "repo")


def test_a_state_file_names_process_session_and_status(tmp_path: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    state = statefile.StateFile(env, "/p/proj", "U", None, version="2.1.197")
    state.show("waiting", "permission prompt")
    found = json.loads((tmp_path / "sessions" / f"{os.getpid()}.json").read_text())
    assert found["pid"] == os.getpid()
    assert found["procStart"] == place.process_start(os.getpid())
    assert (found["status"], found["waitingFor"], found["nameSource"]) == ("waiting", "permission prompt", "derived")
    assert statefile.live_session(env, "U")
    assert not statefile.live_session(env, "V")
    state.show("idle")
    assert "waitingFor" not in json.loads((tmp_path / "sessions" / f"{os.getpid()}.json").read_text())
    state.remove()
    assert not statefile.live_session(env, "U")


def test_a_state_file_of_a_dead_process_keeps_no_session(tmp_path: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    (tmp_path / "sessions").mkdir()
    stale = {"pid": os.getpid(), "procStart": "1", "sessionId": "U"}
    (tmp_path / "sessions/1.json").write_text(json.dumps(stale))
    assert not statefile.live_session(env, "U")


def test_a_client_born_in_another_one_s_tool_keeps_no_state(tmp_path: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path), "CLAUDE_CODE_CHILD_SESSION": "1"}
    statefile.StateFile(env, "/p", "U", None, version="1").show("idle")
    assert not (tmp_path / "sessions").exists()
    forced = {**env, "CLAUDE_CODE_FORCE_SESSION_PERSISTENCE": "1"}
    statefile.StateFile(forced, "/p", "U", None, version="1").show("idle")
    assert (tmp_path / "sessions").exists()


def test_skills_are_found_where_the_real_client_looks(tmp_path: Path) -> None:
    def put(path: str, text: str = "body") -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    put("proj/.claude/skills/one/SKILL.md")
    put("proj/.claude/commands/two.md", "do $ARGUMENTS now")
    put("conf/skills/three/SKILL.md")
    put("add/.claude/skills/four/SKILL.md")
    put("plug/.claude-plugin/plugin.json", '{"name": "nbs"}')
    put("plug/skills/five/SKILL.md", "---\nname: five\ndescription: x\n---\n\nthe body")
    put("plug/skills/six/SKILL.md")
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "conf")}
    plugins = (str(tmp_path / "plug"),)
    found = skills.known(env, str(tmp_path / "proj"), (str(tmp_path / "add"),), plugins)
    assert set(found) == {"one", "two", "three", "four", "nbs:five", "five", "nbs:six"}
    assert skills.body(found["two"], "it") == "do it now"
    assert skills.body(found["five"], "x") == "the body\n\nARGUMENTS: x"
    assert skills.source(found["five"], env, plugins) == "plugin"
    assert skills.source(found["three"], env, plugins) == "userSettings"


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("ls -l | head", True),
        ("sleep 3; echo done", True),
        ("touch x", False),
        ("ls > x", False),
        ("echo $(rm x)", False),
    ],
)
def test_only_commands_that_read_run_without_asking(command: str, wanted: bool) -> None:
    assert tools.read_only(command) is wanted


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("Bash", True),
        ("Bash(*)", True),
        ("Bash(git:*)", True),
        ("Bash(git status)", True),
        ("Bash(ls)", False),
        ("Edit", False),
    ],
)
def test_permission_rules_name_a_tool_and_what_it_may(rule: str, wanted: bool) -> None:
    assert tools.allowed_by((rule,), "Bash", {"command": "git status"}) is wanted


def test_a_rule_for_edits_covers_writing(tmp_path: Path) -> None:
    assert tools.allowed_by(("Edit(/a/**)",), "Write", {"file_path": "/a/b/c"})
    assert not tools.allowed_by(("Edit(/a/**)",), "Write", {"file_path": "/b"})


def test_an_edit_must_hit_exactly_one_place(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\none\ntwo\n")
    given = {"file_path": str(path), "old_string": "one", "new_string": "1"}
    with pytest.raises(tools.ToolError, match="Found 2 matches"):
        tools.edit(given, "/")
    with pytest.raises(tools.ToolError, match="not found"):
        tools.edit({**given, "old_string": "three"}, "/")
    assert tools.edit({**given, "replace_all": True}, "/").shown.splitlines()[0] == "Added 2 lines, removed 2 lines"
    assert path.read_text() == "1\n1\ntwo\n"


def test_a_diff_is_shown_as_captured() -> None:
    assert tools.difference("one\ntwo\nthree\n", "one\nTWO\nthree\n").split("\n") == [
        "Added 1 line, removed 1 line",
        " 1  one",
        " 2 -two",
        " 2 +TWO",
        " 3  three",
    ]


def test_a_resumed_conversation_drops_the_call_that_was_cut_off() -> None:
    context = Context(None)
    context.restore(
        [
            {"type": "user", "message": {"content": "go"}},
            {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", "name": "Bash"}]}},
            {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}},
            {"type": "assistant", "isApiErrorMessage": True, "message": {"content": [{"type": "text", "text": "E"}]}},
            {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t2", "name": "Bash"}]}},
            {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "late", "commandMode": "prompt"}},
        ]
    )
    assert [m["role"] for m in context.messages] == ["user", "assistant", "user", "system"]
    assert "late" in context.messages[-1]["content"][0]["text"]
