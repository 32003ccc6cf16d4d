"""The driver for opencode: a plugin of ours per start, by which events come out and messages go in; no port is opened."""

from __future__ import annotations

import json
import re
from posixpath import join
from typing import Any

from nbs_fleet.drivers import answers, claude_settings, exits, opencode_plugin, opencode_screen
from nbs_fleet.drivers.base import PROMPT, Capabilities, Facts, Launch, Places, Reading, Screen, Turns
from nbs_fleet.drivers.briefing import briefing_of
from nbs_fleet.drivers.dialect import BLOCK, REFUSE, Dialect, HookEvent, nested, nested_decision
from nbs_fleet.drivers.plain import BYPASS, Plain
from nbs_fleet.drivers.recipes import Inbox, MailFolder
from nbs_fleet.jsontext import load_object
from nbs_fleet.model import AgentState, ExitKind
from nbs_fleet.spec.team import Agent

CONFIG = "OPENCODE_CONFIG_CONTENT"
_EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "Stop", "StopFailure")

DIALECT = Dialect(
    name="opencode",
    events=tuple(HookEvent(event, event) for event in _EVENTS),
    context={event: nested() for event in ("UserPromptSubmit", "PostToolUse")},
    block=BLOCK,
    allow=nested_decision("allow"),
    deny=nested_decision("deny", message=True),
    refuse=REFUSE,
    tools={"question": "question"},
)
"""Spoken by our own plugin, which translates. It can add nothing before a tool call (1.18.33, measured)."""


class Opencode(Plain):
    """The npm package `opencode-ai`; facts measured with 1.18.33."""

    name: str = "opencode"
    program: str = "opencode"
    capabilities: Capabilities = Capabilities(
        resume=True,
        hooks=True,
        skills=True,
        context_after_tool=True,
        stop_block=True,
        mail=True,
        native_inbox=True,
        permission_hook=True,
        queues_input=True,
        turn_hooks=True,
        whole_turns=True,
        resume_prompt=False,
    )
    min_version: tuple[int, ...] | None = (1, 18, 0)
    """Older ones were never seen."""
    dialect: Dialect | None = DIALECT
    version_pattern: str = r"^(\d{1,9}\.\d{1,9}\.\d{1,9})"
    auto_approve: tuple[str, ...] = ("--auto",)
    modes: dict[str, tuple[str, ...]] = {"default": (), "plan": ("--agent", "plan")}  # noqa: RUF012  # data of the class
    yes: answers.Labels = opencode_screen.YES
    no: answers.Labels = opencode_screen.NO
    says: exits.Says = (((1,), re.compile(r"(Error: )?Session not found"), ExitKind.NO_CONVERSATION),)
    flicker: str | None = (
        "#{history_size} #{cursor_x},#{cursor_y} #{window_activity} #{C:esc interrupt},#{C:Permission required}"
    )
    start_seconds: float = 45.0
    """It may fetch what plugins are made with before it draws anything."""
    env_keys: tuple[str, ...] = ("OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GOOGLE_*", "AWS_*", "NODE_EXTRA_CA_CERTS")

    def objections(self, agent: Agent) -> tuple[str, ...]:
        """Without a model it would choose a hosted one by itself, and send the project's text there (measured)."""
        named = agent.model or "model" in agent.settings or {"-m", "--model"} & set(agent.args)
        return (
            () if named else ("opencode needs a model, or it takes one of its vendor's; write model: PROVIDER/MODEL",)
        )

    def launch(self, facts: Facts) -> Launch:
        """As any client; a configuration in the environment that is no JSON gives way to ours, and is named."""
        base = super().launch(facts)
        theirs = facts.env.get(CONFIG)
        if not theirs or CONFIG in facts.agent.env or load_object(theirs):
            return base
        return Launch(base.argv, base.env, base.unset, base.files, (*base.dropped, CONFIG))

    def session_argv(self, facts: Facts) -> tuple[str, ...]:
        """A fresh session's id is the client's own choice, which the plugin tells."""
        return ("-s", facts.session_id) if facts.resume else ()

    def model_argv(self, model: str) -> tuple[str, ...]:
        return ("-m", model)

    def prompt_argv(self, facts: Facts) -> tuple[str, ...]:
        return ("--prompt", PROMPT) if facts.has_prompt else ()

    def variables(self, facts: Facts) -> dict[str, str]:
        """All of its configuration that is ours, for this start: above the person's and the project's own."""
        ours: dict[str, Any] = {"autoupdate": False, "share": "disabled"}
        if facts.agent.permission_mode == BYPASS:
            ours["permission"] = "allow"
        theirs = claude_settings.merge(load_object(facts.env.get(CONFIG, "")), facts.agent.settings)
        given = claude_settings.merge(ours, theirs)
        plugins = given.get("plugin")
        given["plugin"] = [*(plugins if isinstance(plugins, list) else ()), f"file://{self._plugin(facts)}"]
        if facts.skills:
            skills = given.get("skills")
            skills = skills if isinstance(skills, dict) else {}
            paths = skills.get("paths")
            given["skills"] = {**skills, "paths": [*(paths if isinstance(paths, list) else ()), self.skills_dir(facts)]}
        return {CONFIG: json.dumps(given, ensure_ascii=False)}

    def files(self, facts: Facts) -> dict[str, str]:
        given = opencode_plugin.Given(
            hook=join(facts.run, "bin", "nbs-hook"),
            mail=join(facts.agent_dir, "mail"),
            sessions=self._sessions(facts),
            briefing=briefing_of(facts.agent.handle, facts.team),
            session=facts.session_id if facts.resume else None,
            refuses=("question",) if facts.agent.dialogs.question == "deny" else (),
        )
        return {**super().files(facts), self._plugin(facts): opencode_plugin.text(given)}

    def skills_dir(self, facts: Facts) -> str | None:
        return join(facts.agent_dir, "skills")

    def places(self, facts: Facts) -> Places:
        """What the plugin writes down of a session; the client's own store is a database."""
        sessions = self._sessions(facts)
        return Places(transcript=join(sessions, f"{facts.session_id}.jsonl"), sessions=sessions)

    def inbox(self, facts: Facts, session_id: str | None) -> Inbox | None:
        """The plugin watches the agent's `mail/`."""
        del facts, session_id
        return MailFolder()

    def read_title(self, title: str) -> Reading:
        return opencode_screen.read_title(title)

    def read_screen(self, screen: Screen) -> Reading:
        return opencode_screen.read_screen(screen)

    def read_transcript(self, head: str, tail: str) -> Turns:
        """Lines `{"type": "user" | "context" | "assistant", "text"}` of the plugin; an assistant's line ends a turn."""
        lines = [*head.split("\n"), *(tail.split("\n") if tail != head else ())]
        prompts = finished = 0
        reading, last = Reading(AgentState.UNKNOWN), None
        for entry in map(load_object, lines):
            if entry.get("type") == "user":
                prompts, reading = prompts + 1, Reading(AgentState.BUSY)
            elif entry.get("type") == "assistant":
                finished, reading = finished + 1, Reading(AgentState.IDLE)
                last = str(entry.get("text") or "") or last
        return Turns(prompts=prompts, finished=finished, reading=reading, last_text=last)

    def spoken(self, entry: dict[str, Any]) -> tuple[str, ...]:
        text = entry.get("text")
        return (text,) if entry.get("type") in ("user", "context") and isinstance(text, str) else ()

    def _plugin(self, facts: Facts) -> str:
        return join(facts.agent_dir, "plugin", "nbs-fleet.js")

    def _sessions(self, facts: Facts) -> str:
        return join(facts.agent_dir, "sessions")
