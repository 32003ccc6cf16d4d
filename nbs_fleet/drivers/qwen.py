"""The driver for Qwen Code: hooks by a settings file per start, messages by keys and hooks.

Its `--input-file` is left alone: a line that comes while a turn runs, or while it ends, is lost without a word
(0.15.10, measured), and a message that may be lost is not delivered.
"""

from __future__ import annotations

import json
import re
from posixpath import join
from typing import Any

from nbs_fleet.drivers import answers, claude_settings, exits, qwen_screen, qwen_transcript
from nbs_fleet.drivers.base import PROMPT, Capabilities, Facts, HookNews, Places, Reading, Screen, Turns
from nbs_fleet.drivers.briefing import briefing_of
from nbs_fleet.drivers.dialect import BLOCK, REFUSE, Dialect, HookEvent, nested, nested_decision
from nbs_fleet.drivers.plain import Plain
from nbs_fleet.jsontext import load_object
from nbs_fleet.model import ExitKind

_EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PermissionRequest", "Notification", "Stop", "StopFailure"),
    *("SubagentStop", "PreCompact", "PostCompact", "SessionEnd", "PostToolUse", "PreToolUse"),
)
_TOOLS = {"exit_plan_mode": "ExitPlanMode", "ask_user_question": "AskUserQuestion"}
"""What it calls the tools whose dialogs are about a plan or a question."""

DIALECT = Dialect(
    name="qwen",
    events=tuple(HookEvent(event, event) for event in _EVENTS),
    context={event: nested() for event in ("UserPromptSubmit", "PostToolUse")},
    block=BLOCK,
    allow=nested_decision("allow"),
    deny=nested_decision("deny", message=True),
    refuse=REFUSE,
    unit="ms",
    tools={"exit_plan_mode": "plan", "ask_user_question": "question"},
)
"""Claude Code's words (0.15.10, measured). A context before a tool call is dropped, one after it arrives; one beside the
empty prompt that carries a tool's result reaches the model, not the transcript (the hook program adds none there)."""


class Qwen(Plain):
    """The npm package `@qwen-code/qwen-code`; facts measured with 0.15.10, the newest that runs on Node 20."""

    name: str = "qwen"
    program: str = "qwen"
    capabilities: Capabilities = Capabilities(
        resume=True,
        skills=True,
        shared_skills=True,
        session_id=True,
        hooks=True,
        export=True,
        context_after_tool=True,
        stop_block=True,
        permission_hook=True,
        queues_input=True,
        turn_hooks=True,
    )
    min_version: tuple[int, ...] | None = (0, 15, 10)
    """Older ones were never seen."""
    dialect: Dialect | None = DIALECT
    version_pattern: str = r"^(\d{1,9}\.\d{1,9}\.\d{1,9})"
    auto_approve: tuple[str, ...] = ("--approval-mode", "yolo")
    modes: dict[str, tuple[str, ...]] = {  # noqa: RUF012  # data of the class
        "default": ("--approval-mode", "default"),
        "plan": ("--approval-mode", "plan"),
        "acceptEdits": ("--approval-mode", "auto-edit"),
    }
    yes: answers.Labels = qwen_screen.YES
    no: answers.Labels = qwen_screen.NO
    says: exits.Says = (
        ((1,), re.compile(r"No saved session found with ID"), ExitKind.NO_CONVERSATION),
        ((1,), re.compile(r"Error: Session Id \S+ is already in use"), ExitKind.SESSION_IN_USE),
        ((1,), re.compile(r"(Unknown argument|Invalid values|Not enough arguments)"), ExitKind.REFUSED),
    )
    flicker: str | None = (
        "#{history_size} #{cursor_x},#{cursor_y} #{window_activity} "
        "#{C:esc to cancel},#{C:Initializing},#{C:user confirmation},#{C:for shortcuts}"
    )
    """The clock of `window_activity` ticks in seconds; the rows of these words catch what falls into one second."""
    start_seconds: float = 20.0
    env_keys: tuple[str, ...] = ("QWEN_*", "OPENAI_*", "DASHSCOPE_*", "GEMINI_*", "GOOGLE_*", "NODE_EXTRA_CA_CERTS")

    def session_argv(self, facts: Facts) -> tuple[str, ...]:
        """A used `--session-id` is refused, an unknown `-r` too (both exit 1)."""
        return ("-r" if facts.resume else "--session-id", facts.session_id)

    def model_argv(self, model: str) -> tuple[str, ...]:
        return ("-m", model)

    def hook_argv(self, facts: Facts) -> tuple[str, ...]:
        """What tells the agent of fleet mail."""
        told = ("--append-system-prompt", briefing_of(facts.agent.handle, facts.team))
        has_own = any(word.partition("=")[0] == told[0] for word in facts.agent.args)
        return () if has_own else told

    def prompt_argv(self, facts: Facts) -> tuple[str, ...]:
        return ("-i", PROMPT) if facts.has_prompt else ()

    def variables(self, facts: Facts) -> dict[str, str]:
        """Our settings are the lowest of all, so that a person's own win; where the team file has some, the highest.

        Hooks of all settings run side by side (0.15.10, measured; a person's and a project's own both at once hide
        those of other files).
        """
        scope = "SETTINGS" if facts.agent.settings else "DEFAULTS"
        return {f"QWEN_CODE_SYSTEM_{scope}_PATH": facts.settings_path}

    def one_shot(self, facts: Facts) -> tuple[str, ...] | None:
        model = self.model_argv(facts.agent.model) if facts.agent.model else ()
        return (*self.command(facts), *model, *self.auto_approve, *facts.agent.args, "-p", PROMPT)

    def places(self, facts: Facts) -> Places:
        """The session's own file below QWEN_HOME, else `~/.qwen`, in a folder named after the working directory."""
        named = facts.env.get("QWEN_HOME")
        home = join(facts.real_dir, named) if named else join(facts.home, ".qwen")
        projects = join(home, "projects")
        slug = re.sub(r"[^a-zA-Z0-9]", "-", facts.real_dir)
        return Places(transcript=join(projects, slug, "chats", f"{facts.session_id}.jsonl"), sessions=projects)

    def read_title(self, title: str) -> Reading:
        return qwen_screen.read_title(title)

    def read_screen(self, screen: Screen) -> Reading:
        return qwen_screen.read_screen(screen)

    def read_transcript(self, head: str, tail: str) -> Turns:
        return qwen_transcript.read_transcript(head, tail)

    def spoken(self, entry: dict[str, Any]) -> tuple[str, ...]:
        return qwen_transcript.spoken(entry)

    def read_hook(self, text: str, at: float | None = None) -> HookNews | None:
        """As Claude Code's, with two tools in its words; an empty prompt is a tool's result on its way to the model."""
        data = load_object(text)
        tool = data.get("tool_name")
        if isinstance(tool, str) and tool in _TOOLS:
            data = {**data, "tool_name": _TOOLS[tool]}
        if data.get("hook_event_name") == "UserPromptSubmit" and data.get("prompt") == "":
            data = {**data, "hook_event_name": "PostToolBatch"}
        return super().read_hook(json.dumps(data), at)

    def settings(self, facts: Facts) -> dict[str, Any]:
        """What keeps it quiet, the way to log in where the environment has one, our hooks, then the team file's own."""
        ours: dict[str, Any] = {"general": {"disableAutoUpdate": True, "enableAutoUpdate": False}}
        if facts.env.get("OPENAI_API_KEY"):
            ours["security"] = {"auth": {"selectedType": "openai"}}
        hooks = DIALECT.groups(facts.run)
        if facts.agent.dialogs.question != "deny":
            del hooks["PreToolUse"]
        theirs = facts.agent.settings.get("hooks")
        for event, groups in theirs.items() if isinstance(theirs, dict) else ():
            hooks[event] = [*hooks.get(event, ()), *groups]
        return {**claude_settings.merge(ours, facts.agent.settings), "hooks": hooks}
