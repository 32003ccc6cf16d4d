"""The plugin for opencode, run by Node with a played client: what the hooks are told, and what comes of their answers."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.drivers import opencode_plugin

pytestmark = [pytest.mark.long, pytest.mark.real]
HOOK = """\
#!/bin/sh
if [ "$1" = drain ]; then
    if mv "$MAIL/x.msg" "$MAIL/../taken" 2>/dev/null; then cat "$MAIL/../taken" >&2; exit 2; fi
    exit 0
fi
cat >>"$MAIL/../told"
echo >>"$MAIL/../told"
cat "$MAIL/../answers/$1" 2>/dev/null
exit 0
"""
PLAY = """\
import { NbsFleet } from "./plugin.mjs"
const done = []
const client = {
  session: { promptAsync: async (what) => done.push(["prompt", what.path.id, what.body.parts[0].text]) },
  _client: { post: async (what) => done.push(["reply", what.path.requestID, what.body.reply]) },
}
const plugin = await NbsFleet({ client, directory: "/srv" })
const event = (type, properties) => plugin.event({ event: { type, properties } })
const until = async (holds) => { while (!holds()) await new Promise((r) => setTimeout(r, 20)) }
@STEPS@
console.log(JSON.stringify(done))
process.exit(0)
"""
PROMPT = """\
const said = { message: { id: "m1" }, parts: [{ id: "p1", type: "text", text: "hello", messageID: "m1", sessionID: "s" }] }
await plugin["chat.message"]({ sessionID: "s" }, said)
"""


def play(tmp_path: Path, steps: str, answers: dict[str, Any] | None = None) -> tuple[list[Any], list[dict[str, Any]]]:
    """What the plugin did to its client, and what it told the hooks; `answers` by event."""
    node = shutil.which("node")
    assert node, "there is no node on this machine"
    for folder in ("mail", "answers", "sessions"):
        (tmp_path / folder).mkdir()
    hook = tmp_path / "hook"
    hook.write_text(HOOK, encoding="utf-8")
    hook.chmod(0o700)
    for event, answer in (answers or {}).items():
        (tmp_path / "answers" / event).write_text(json.dumps(answer), encoding="utf-8")
    given = opencode_plugin.Given(
        str(hook), str(tmp_path / "mail"), str(tmp_path / "sessions"), "brief", refuses=("question",)
    )
    (tmp_path / "plugin.mjs").write_text(opencode_plugin.text(given), encoding="utf-8")
    (tmp_path / "play.mjs").write_text(PLAY.replace("@STEPS@", steps), encoding="utf-8")
    environment = {"MAIL": str(tmp_path / "mail"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [node, str(tmp_path / "play.mjs")], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    told = (tmp_path / "told").read_text(encoding="utf-8").splitlines() if (tmp_path / "told").exists() else []
    return json.loads(done.stdout), [json.loads(line) for line in told if line.strip()]


def added(event: str, text: str) -> dict[str, Any]:
    """A hook's answer that adds a text."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def test_a_prompt_is_told_written_down_and_may_get_a_text_beside_it(tmp_path: Path) -> None:
    steps = PROMPT + "done.push(said.parts.map((p) => [p.text, p.synthetic ?? false, p.id]))\n"
    done, told = play(tmp_path, steps, {"UserPromptSubmit": added("UserPromptSubmit", "more")})
    assert done == [[["hello", False, "p1"], ["more", True, "p1n"]]]
    assert [(t["hook_event_name"], t["session_id"], t["prompt"]) for t in told] == [("UserPromptSubmit", "s", "hello")]
    lines = [json.loads(line) for line in (tmp_path / "sessions" / "s.jsonl").read_text().splitlines()]
    assert lines == [{"type": "user", "text": "hello"}, {"type": "context", "text": "more"}]


def test_the_end_of_a_turn_has_the_agents_words_and_may_be_held_back(tmp_path: Path) -> None:
    part = '{ type: "text", sessionID: "s", messageID: "m2", text: "bye" }'
    steps = f'{PROMPT}await event("message.part.updated", {{ part: {part} }})\n'
    steps += 'await event("session.idle", { sessionID: "s" })\nawait until(() => done.length)\n'
    done, told = play(tmp_path, steps, {"Stop": {"decision": "block", "reason": "one more thing"}})
    assert done == [["prompt", "s", "one more thing"]]
    assert (told[-1]["hook_event_name"], told[-1]["last_assistant_message"]) == ("Stop", "bye")


def test_mail_is_taken_once_a_session_is_there(tmp_path: Path) -> None:
    steps = 'import("node:fs").then((fs) => fs.writeFileSync(process.env.MAIL + "/x.msg", "[nbs:d-1] hi"))\n'
    done, _ = play(tmp_path, steps + PROMPT + "await until(() => done.length)\n")
    assert done == [["prompt", "s", "[nbs:d-1] hi"]]


@pytest.mark.parametrize(("behavior", "reply"), [("allow", "once"), ("deny", "reject")])
def test_a_permission_is_answered_as_the_hook_says(tmp_path: Path, behavior: str, reply: str) -> None:
    decision = {"behavior": behavior, "message": "no"}
    asked = '{ id: "per_1", sessionID: "s", permission: "bash", patterns: ["rm x"], metadata: {} }'
    steps = f'await event("permission.asked", {asked})\nawait until(() => done.length)\n'
    done, told = play(tmp_path, steps, {"PermissionRequest": {"hookSpecificOutput": {"decision": decision}}})
    assert done == [["reply", "per_1", reply]]
    assert (told[0]["tool_name"], told[0]["tool_input"]) == ("bash", {"patterns": ["rm x"]})


def test_a_tools_result_gets_what_waits_and_a_forbidden_tool_is_refused(tmp_path: Path) -> None:
    steps = PROMPT + (
        'const result = { output: "files" }\n'
        'await plugin["tool.execute.after"]({ tool: "bash", sessionID: "s", callID: "c" }, result)\n'
        "done.push(result.output)\n"
        'const ask = { tool: "question", sessionID: "s", callID: "c" }\n'
        'await plugin["tool.execute.before"](ask, { args: {} }).catch((error) => done.push(error.message))\n'
    )
    refused = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "decide yourself"}}
    done, _ = play(tmp_path, steps, {"PostToolUse": added("PostToolUse", "look here"), "PreToolUse": refused})
    assert done == ["files\n\nlook here", "decide yourself"]


def test_a_subagents_session_is_nobodys_news(tmp_path: Path) -> None:
    steps = (
        'await event("session.created", { sessionID: "s", info: { id: "s", parentID: "p" } })\n'
        + PROMPT
        + 'const system = []\nawait plugin["experimental.chat.system.transform"]({ sessionID: "s" }, { system })\n'
        'await plugin["experimental.chat.system.transform"]({ sessionID: "p" }, { system })\ndone.push(system)\n'
    )
    assert play(tmp_path, steps) == ([["brief"]], [])
