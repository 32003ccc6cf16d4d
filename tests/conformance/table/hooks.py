"""What hooks can do to a turn, and how they can fail."""

from __future__ import annotations

import json
import shlex
from typing import Any

from tests.conformance.stage import Setting
from tests.conformance.table.entry import play

SECTION = "Hooks"
BYPASS = Setting(args=("--dangerously-skip-permissions",))
PLAN = Setting(args=("--permission-mode", "plan"))
ECHO = "say [[bash echo hi]] [[say done]]"
PLANNED = "say [[plan # Plan\\n\\n1. step one]] [[tool ExitPlanMode {}]] [[say on it]]"
QUESTION = {
    "question": "Which library?",
    "header": "Library",
    "multiSelect": False,
    "options": [{"label": "aiohttp", "description": "one"}, {"label": "httpx", "description": "two"}],
}
ASK = f"say [[tool AskUserQuestion {json.dumps({'questions': [QUESTION]})}]] [[say thanks]]"


def says(event: str, **output: Any) -> str:
    """The step that lets an event's hook print this as JSON."""
    return f"effect {event} echo {shlex.quote(json.dumps(output))}"


def specific(event: str, **output: Any) -> str:
    """The step that lets an event's hook print this as its own kind of output."""
    return says(event, hookSpecificOutput={"hookEventName": event, **output})


TABLE = (
    play("hook-context-pre", "PreToolUse: additionalContext reaches the model", f"""
        until idle
        {specific("PreToolUse", additionalContext="from before")}
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-context-post", "PostToolUse: additionalContext reaches the model", f"""
        until idle
        {specific("PostToolUse", additionalContext="from after")}
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-context-batch", "PostToolBatch: additionalContext reaches the model", f"""
        until idle
        {specific("PostToolBatch", additionalContext="from the batch")}
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-context-failure", "PostToolUseFailure: additionalContext reaches the model", f"""
        until idle
        {specific("PostToolUseFailure", additionalContext="from the failure")}
        say [[bash exit 4]] [[say done]]
        until idle
    """, BYPASS),
    play("hook-context-prompt", "UserPromptSubmit: additionalContext reaches the model", f"""
        until idle
        {specific("UserPromptSubmit", additionalContext="from the prompt")}
        say [[say hi]]
        until idle
    """),
    play("hook-text-prompt", "UserPromptSubmit: plain text reaches the model", """
        until idle
        effect UserPromptSubmit echo plain words
        say [[say hi]]
        until idle
    """),
    play("hook-text-pre", "PreToolUse: plain text does not", f"""
        until idle
        effect PreToolUse echo plain words
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-context-start", "SessionStart: additionalContext reaches the model", """
        until idle
        say [[say hi]]
        until idle
    """, Setting(hooks={"SessionStart": [{"hooks": [{"type": "command", "command":
        "echo " + shlex.quote(json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "from the start"}}))}]}]})),
    play("hook-deny", "PreToolUse: deny", f"""
        until idle
        {specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="not today")}
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-pre-exit-2", "PreToolUse: exit 2", f"""
        until idle
        effect PreToolUse echo not today >&2; exit 2
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-allow", "PreToolUse: allow, where a permission would be asked", f"""
        until idle
        {specific("PreToolUse", permissionDecision="allow", permissionDecisionReason="fine")}
        say [[bash touch made]] [[say did]]
        until idle
    """),
    play("hook-ask", "PreToolUse: ask, where no permission would be asked", f"""
        until idle
        {specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="better ask")}
        say [[bash touch made]] [[say did]]
        until permission
        keys 1
        until idle
    """, BYPASS, aside="-rows"),
    play("hook-updated-input", "PreToolUse: another input", f"""
        until idle
        {specific("PreToolUse", permissionDecision="allow", updatedInput={"command": "echo changed"})}
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-answer", "PreToolUse: answers a question", f"""
        until idle
        {specific("PreToolUse", permissionDecision="allow", updatedInput={"questions": [QUESTION], "answers": {"Which library?": "httpx"}})}
        {ASK}
        until idle
    """),
    play("hook-prompt-block", "UserPromptSubmit: block", f"""
        until idle
        {says("UserPromptSubmit", decision="block", reason="not now")}
        say [[say hi]]
        until idle
    """),
    play("hook-prompt-exit-2", "UserPromptSubmit: exit 2", """
        until idle
        effect UserPromptSubmit echo not now >&2; exit 2
        say [[say hi]]
        until idle
    """),
    play("hook-prompt-continue", "UserPromptSubmit: continue false", f"""
        until idle
        {says("UserPromptSubmit", **{"continue": False, "stopReason": "no more"})}
        say [[say hi]]
        until idle
    """),
    play("hook-stop-block", "Stop: block once", f"""
        until idle
        effect Stop test -e {{base}}/once || {{{{ touch {{base}}/once; echo '{json.dumps({"decision": "block", "reason": "[[say one more thing]]"})}'; }}}}
        say [[say hi]]
        until idle
    """.replace("{{", "{").replace("}}", "}")),
    play("hook-stop-exit-2", "Stop: exit 2 once", """
        until idle
        effect Stop test -e {base}/once && exit 0; touch {base}/once; echo '[[say one more thing]]' >&2; exit 2
        say [[say hi]]
        until idle
    """),
    play("hook-stop-cap", "Stop: blocked again and again", f"""
        until idle
        {says("Stop", decision="block", reason="go on")}
        say [[say hi]]
        until idle
    """, Setting(env={"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "3"})),
    play("hook-stop-context", "Stop: additionalContext once", f"""
        until idle
        effect Stop test -e {{base}}/once && exit 0; touch {{base}}/once; echo {shlex.quote(json.dumps({"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "[[say noted]]"}}))}
        say [[say hi]]
        until idle
    """),
    play("hook-stop-continue", "Stop: continue false", f"""
        until idle
        {says("Stop", **{"continue": False, "stopReason": "enough"})}
        say [[say hi]]
        until idle
    """, aside="transcript"),
    play("hook-post-block", "PostToolUse: block", f"""
        until idle
        {says("PostToolUse", decision="block", reason="look again")}
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-post-stop", "PostToolUse: continue false ends the turn without Stop", f"""
        until idle
        {says("PostToolUse", **{"continue": False, "stopReason": "enough"})}
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-permission-allow", "PermissionRequest: allow", f"""
        until idle
        {specific("PermissionRequest", decision={"behavior": "allow"})}
        say [[bash touch made]] [[say did]]
        until idle
    """),
    play("hook-permission-deny", "PermissionRequest: deny", f"""
        until idle
        {specific("PermissionRequest", decision={"behavior": "deny", "message": "not today"})}
        say [[bash touch made]] [[say did]]
        until idle
    """),
    play("hook-plan-allow", "PermissionRequest: allow a plan", f"""
        until idle
        {specific("PermissionRequest", decision={"behavior": "allow"})}
        {PLANNED}
        until idle
    """, PLAN),
    play("hook-plan-allow-bypass", "PermissionRequest: allow a plan of an agent that bypasses", f"""
        until idle
        {specific("PermissionRequest", decision={"behavior": "allow"})}
        say [[tool EnterPlanMode {{}}]] [[plan # Plan]] [[tool ExitPlanMode {{}}]] [[say on it]]
        until idle
    """, BYPASS),
    play("hook-plan-deny", "PermissionRequest: deny a plan", f"""
        until idle
        {specific("PermissionRequest", decision={"behavior": "deny", "message": "shorter"})}
        {PLANNED}
        until idle
    """, PLAN),
    play("hook-question-deny", "PermissionRequest: deny a question", f"""
        until idle
        {specific("PermissionRequest", decision={"behavior": "deny", "message": "decide yourself"})}
        {ASK}
        until idle
    """),
    play("hook-fails", "a Stop hook that fails", """
        until idle
        effect Stop echo broken >&2; exit 1
        say [[say hi]]
        until idle
    """),
    play("hook-fails-pre", "a PreToolUse hook that fails", f"""
        until idle
        effect PreToolUse echo broken >&2; exit 1
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-broken-json", "a hook that prints broken JSON", f"""
        until idle
        effect PreToolUse echo '{{"decision":'
        {ECHO}
        until idle
    """, BYPASS),
    play("hook-bad-schema", "a hook that prints JSON of another shape", f"""
        until idle
        {says("PreToolUse", hookSpecificOutput={"additionalContext": "lost"})}
        {ECHO}
        until idle
    """, BYPASS, aside="-transcript"),
    play("hook-timeout", "a hook that takes too long is cut, in silence", """
        until idle
        effect Stop sleep 20
        say [[say hi]]
        until idle
    """, Setting(timeouts={"Stop": 1})),
    play("hook-timeout-pre", "a PreToolUse hook that takes too long is cut, and the tool runs", f"""
        until idle
        effect PreToolUse sleep 20
        {ECHO}
        until idle
    """, Setting(args=BYPASS.args, timeouts={"PreToolUse": 1})),
    play("hook-matcher", "a matcher picks tools", f"""
        until idle
        {ECHO}
        until idle
    """, Setting(args=BYPASS.args, hooks={
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo bash >> matched"}]},
            {"matcher": "Write|Edit", "hooks": [{"type": "command", "command": "echo edit >> matched2"}]},
        ]
    })),
    play("hook-exec-form", "a hook with arguments runs without a shell", """
        until idle
        say [[say hi]]
        until idle
    """, Setting(hooks={"Stop": [{"hooks": [{"type": "command", "command": "/usr/bin/touch", "args": ["with $blank"]}]}]})),
    play("hook-environment", "what hooks find in their environment", """
        until idle
        effect UserPromptSubmit echo "[$CLAUDECODE] [$CLAUDE_CODE_ENTRYPOINT] [$CLAUDE_PROJECT_DIR] [$AI_AGENT] [$CLAUDE_EFFORT] [$COLUMNS] [$LINES] [$CLAUDE_CODE_CHILD_SESSION] [$PWD]"
        say [[say hi]]
        until idle
    """),
    play("hook-async", "an asynchronous hook's context comes with a later request", """
        until idle
        say [[bash echo hi]] [[bash sleep 2]] [[say done]]
        until idle
    """, Setting(args=BYPASS.args, hooks={"PostToolUse": [{"hooks": [{"type": "command", "async": True, "command":
        "test -e {base}/once && exit 0; touch {base}/once; echo "
        + shlex.quote(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "late news"}}))}]}]})),
    play("hook-idle", "an idle client says so after a while", """
        until idle
        say [[say hi]]
        until idle
        hook Notification 1
        look
    """, Setting(config={"messageIdleNotifThresholdMs": 2000})),
    play("hook-idle-interrupted", "an interrupted client does not", """
        until idle
        say [[bash sleep 30]] [[say over]]
        shows Running…
        keys Escape
        until idle
        pass 4
        look
    """, Setting(args=BYPASS.args, config={"messageIdleNotifThresholdMs": 2000})),
    play("hook-disabled", "disableAllHooks", """
        until idle
        say [[say hi]]
        until idle
    """, Setting(settings={"disableAllHooks": True})),
)  # fmt: skip
