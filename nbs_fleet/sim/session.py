"""One session of the client: who it is, its files, its settings and what its hooks are told."""

from __future__ import annotations

import os
from typing import Any

from nbs_fleet.sim import place, settings, statefile
from nbs_fleet.sim.args import VERSION, Args
from nbs_fleet.sim.context import Context
from nbs_fleet.sim.hooks import Hooks, Verdict, success
from nbs_fleet.sim.kernel import Loop
from nbs_fleet.sim.scenario import Scenario
from nbs_fleet.sim.script import Model
from nbs_fleet.sim.transcript import Transcript, new_uuid

Json = dict[str, Any]

MODELS = {
    "default": ("claude-opus-4-8[1m]", "Opus 4.8 (1M context)"),
    "opus": ("claude-opus-4-8", "Opus 4.8"),
    "sonnet": ("claude-sonnet-4-6", "Sonnet 4.6"),
    "haiku": ("claude-haiku-4-5", "Haiku 4.5"),
}
_WITH_MODE = {
    "UserPromptSubmit",
    "UserPromptExpansion",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "Stop",
    "SubagentStop",
}
_WITH_EFFORT = {
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "Stop",
    "StopFailure",
    "SubagentStop",
}


def model_names(given: str | None) -> tuple[str, str]:
    """The model's id and how the welcome box calls it."""
    if given is None or given in MODELS:
        return MODELS[given or "default"]
    words = given.split("-")
    if len(words) >= 4 and words[0] == "claude":
        return given, f"{words[1].capitalize()} {words[2]}.{words[3]}"
    return given, given


class Session:
    """State that outlives a turn. `mode` is the permission mode; `before_plan` the one to go back to."""

    def __init__(self, loop: Loop, args: Args, env: dict[str, str], scenario: Scenario, session_id: str) -> None:
        self.loop = loop
        self.args = args
        self.env = env
        self.scenario = scenario
        self.id = session_id
        self.cwd = os.getcwd()
        self.project = self.cwd
        self.name = args.name
        self.sources = settings.sources(env, self.cwd, args.settings)
        self.mark = settings.fingerprint(self.sources)
        self.settings = settings.load(self.sources)
        self.model_id, self.model_label = model_names(args.model or scenario.model)
        self.can_bypass = args.skip or args.allow_skip or self._wanted_mode() == "bypassPermissions"
        self.mode = "bypassPermissions" if args.skip else self._wanted_mode()
        self.before_plan = "default"
        self.prompt_id: str | None = None
        self.allowed: set[str] = set()
        self.size = (80, 24)
        self.late: list[tuple[str, Json | None]] = []
        """What the model is told before the next request, and the transcript's attachment about it."""
        self.opening: list[Json] = []
        """Attachments that stand before the next prompt."""
        self.context = Context(env.get("NBS_SIM_LOG"))
        self.script = Model(scenario)
        self.hooks = Hooks(loop, lambda: self.settings, self.hook_env, self.base)
        self.hooks.late = self._late
        self.off = bool(env.get("CLAUDE_CODE_CHILD_SESSION")) and not env.get("CLAUDE_CODE_FORCE_SESSION_PERSISTENCE")
        self.folder = place.transcripts(env, self.cwd)
        self.transcript = self._transcript()
        self.state = statefile.StateFile(env, self.cwd, session_id, self.name, version=VERSION)
        self.headed = False
        self.agent: Json = {}
        """Of a subagent: its id and type, for hooks."""

    def _wanted_mode(self) -> str:
        asked = self.args.permission_mode or self.scenario.permission_mode or self.settings.values.get("defaultMode")
        return str(asked or "default")

    def _transcript(self) -> Transcript:
        path = os.path.join(self.folder, f"{self.id}.jsonl")
        return Transcript(self.loop, path, self.id, self.cwd, off=self.off)

    @property
    def plan_path(self) -> str:
        """Where this session's plan is kept. The name is of letters: the real client makes it of words."""
        word = "".join(chr(ord("a") + ord(char) % 26) for char in self.id[:8])
        return os.path.join(place.config_dir(self.env), "plans", f"quiet-plan-{word}.md")

    def flag(self, name: str) -> bool:
        """A boolean setting."""
        return self.settings.values.get(name) is True

    def reload(self) -> None:
        """Take changed settings files; a file that went bad leaves the last good state in force."""
        mark = settings.fingerprint(self.sources)
        if mark == self.mark:
            return
        self.mark = mark
        fresh = settings.load(self.sources)
        if not any(fault.fatal for fault in fresh.faults):
            self.settings = fresh

    def base(self, event: str) -> Json:
        """The fields that every hook payload carries, in the order of the real client."""
        fields: Json = {"session_id": self.id, "transcript_path": self.transcript.path, "cwd": self.cwd}
        if self.prompt_id is not None:
            fields["prompt_id"] = self.prompt_id
        if event in _WITH_MODE:
            fields["permission_mode"] = self.mode
        fields |= self.agent
        if event in _WITH_EFFORT:
            fields["effort"] = {"level": "high"}
        fields["hook_event_name"] = event
        return fields

    def hook_env(self, event: str) -> dict[str, str]:
        """The environment of hooks: the client's own plus what it tells them."""
        return {
            **self.tool_env(),
            **({"CLAUDE_EFFORT": "high"} if event in _WITH_EFFORT else {}),
            "CLAUDE_PROJECT_DIR": self.project,
            "COLUMNS": str(self.size[0]),
            "LINES": str(self.size[1]),
        }

    def tool_env(self) -> dict[str, str]:
        """The environment of commands."""
        return {
            **self.env,
            "CLAUDECODE": "1",
            "CLAUDE_CODE_CHILD_SESSION": "1",
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "CLAUDE_CODE_SESSION_ID": self.id,
            "AI_AGENT": f"claude-code_{VERSION.replace('.', '-')}_harness",
        }

    def head(self) -> None:
        """Write the head lines once per process, before the first line of the conversation."""
        if not self.headed:
            self.headed = True
            self.transcript.header(self.name, self.mode)

    def _late(self, event: str, name: str, verdict: Verdict) -> None:
        if not verdict.context:
            return
        said = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": verdict.context}}
        attachment = {
            "type": "async_hook_response",
            "processId": f"async_hook_{os.getpid()}",
            "hookName": name,
            "hookEvent": event,
            "response": said,
            "stdout": verdict.out,
            "stderr": verdict.err,
            "exitCode": verdict.code,
        }
        self.late.append((verdict.context, attachment))

    def begin_anew(self) -> None:
        """/clear: another session id, an empty conversation, a new transcript."""
        self.transcript.flush()
        self.id = new_uuid()
        self.context.clear()
        self.transcript = self._transcript()
        self.headed = False
        self.state.session(self.id)

    async def run_hooks(self, event: str, fields: Json, value: str | None = None) -> list[Verdict]:
        """Run the hooks of an event."""
        return await self.hooks.run(event, fields, value)

    async def start_hooks(self, source: str) -> None:
        """SessionStart; what the hooks say goes to the model as system messages before the next request."""
        fields: Json = {"source": source}
        if source in {"startup", "compact"}:
            fields["model"] = self.model_id
        if self.name is not None and source != "compact":
            fields["session_title"] = self.name
        verdicts = await self.run_hooks("SessionStart", fields, source)
        for verdict in verdicts:
            printed = success("SessionStart", f"SessionStart:{source}", new_uuid(), verdict)
            self.opening += [printed] if printed is not None else []
        notes = [text for v in verdicts if (text := v.context or v.text)]
        if not notes:
            return
        about = {"hookName": "SessionStart", "toolUseID": "SessionStart", "hookEvent": "SessionStart"}
        self.opening.append({"type": "hook_additional_context", "content": notes, **about})
        self.late.append(("SessionStart hook additional context: " + "\n".join(notes), None))

    async def end_hooks(self, reason: str) -> None:
        """SessionEnd."""
        await self.run_hooks("SessionEnd", {"reason": reason}, reason)
