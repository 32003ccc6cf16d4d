"""The driver for Gemini CLI, a thin one: its title and screen tell the state, messages go in by keys.

It has hooks, but takes them for one start only from a settings file that belongs to root, in folders that do
(0.61.0, measured and read from its program); anything else would be a change of the person's own settings.
"""

from __future__ import annotations

import re
from posixpath import join
from typing import Any

from nbs_fleet.drivers import answers, exits, gemini_screen
from nbs_fleet.drivers.base import PROMPT, Capabilities, Facts, Places, Reading, Screen, Turns
from nbs_fleet.drivers.plain import Plain
from nbs_fleet.drivers.recipes import Submit
from nbs_fleet.jsontext import load_object
from nbs_fleet.model import AgentState, ExitKind


class Gemini(Plain):
    """The npm package `@google/gemini-cli`; facts measured with 0.61.0."""

    name: str = "gemini"
    program: str = "gemini"
    capabilities: Capabilities = Capabilities(
        resume=True,
        skills=True,
        shared_skills=True,
        session_id=True,
        title=True,
        export=True,
        queues_input=True,
    )
    min_version: tuple[int, ...] | None = (0, 61, 0)
    """Older ones were never seen."""
    submit: Submit = Submit(gap=0.3)
    version_pattern: str = r"^(\d{1,9}\.\d{1,9}\.\d{1,9})"
    auto_approve: tuple[str, ...] = ("--approval-mode", "yolo")
    modes: dict[str, tuple[str, ...]] = {  # noqa: RUF012  # data of the class
        "default": ("--approval-mode", "default"),
        "plan": ("--approval-mode", "plan"),
        "acceptEdits": ("--approval-mode", "auto_edit"),
    }
    yes: answers.Labels = gemini_screen.YES
    no: answers.Labels = gemini_screen.NO
    says: exits.Says = (
        ((1, 42), re.compile(r"Error resuming session: (Invalid|No)"), ExitKind.NO_CONVERSATION),
        ((1, 42), re.compile(r"Unknown argument"), ExitKind.REFUSED),
    )
    flicker: str | None = "#{pane_title} #{cursor_x},#{cursor_y} #{history_size} #{C:esc to ca}"
    """The title moves with the state; the cursor with what a person types."""
    start_seconds: float = 20.0
    env_keys: tuple[str, ...] = ("GEMINI_*", "GOOGLE_*", "NODE_EXTRA_CA_CERTS")

    def session_argv(self, facts: Facts) -> tuple[str, ...]:
        """A used `--session-id` is refused, an unknown `--resume` too."""
        return ("--resume" if facts.resume else "--session-id", facts.session_id)

    def model_argv(self, model: str) -> tuple[str, ...]:
        return ("-m", model)

    def prompt_argv(self, facts: Facts) -> tuple[str, ...]:
        return ("-i", PROMPT) if facts.has_prompt else ()

    def variables(self, facts: Facts) -> dict[str, str]:
        """Without a second process of itself it is smaller, and its pid is the one that was started."""
        env = {"GEMINI_CLI_NO_RELAUNCH": "true"}
        if facts.agent.dialogs.trust == "accept":
            env["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
        return env

    def one_shot(self, facts: Facts) -> tuple[str, ...] | None:
        model = self.model_argv(facts.agent.model) if facts.agent.model else ()
        return (*self.command(facts), *model, *self.auto_approve, *facts.agent.args, "-p", PROMPT)

    def places(self, facts: Facts) -> Places:
        """A session's file is named after its begin and the first part of its id, below a folder named by the client."""
        named = facts.env.get("GEMINI_CLI_HOME")
        folders = join(facts.real_dir, named or facts.home, ".gemini", "tmp")
        first = facts.session_id.partition("-")[0]
        return Places(pattern=f"{folders}/*/chats/session-*-{first}.jsonl", sessions=folders)

    def read_title(self, title: str) -> Reading:
        return gemini_screen.read_title(title)

    def read_screen(self, screen: Screen) -> Reading:
        return gemini_screen.read_screen(screen)

    def read_transcript(self, head: str, tail: str) -> Turns:
        """Whole lines from the start and the end of a session's file; an answer that calls no tool ends a turn."""
        prompts = finished = 0
        reading, last_text = Reading(AgentState.UNKNOWN), None
        seen: set[str] = set()
        for line in (*head.split("\n"), *tail.split("\n")):
            entry = load_object(line)
            ident, kind = entry.get("id"), entry.get("type")
            if not isinstance(ident, str) or (kind == "user" and ident in seen):
                continue
            if kind == "user":
                prompts += 1
                reading = Reading(AgentState.BUSY)
            elif kind == "gemini":
                calls = bool(entry.get("toolCalls"))
                content = entry.get("content")
                last_text = content if isinstance(content, str) and content else last_text
                finished += not calls and ident not in seen
                reading = Reading(AgentState.BUSY if calls else AgentState.IDLE)
            seen.add(ident)
        return Turns(prompts=prompts, finished=finished, reading=reading, last_text=last_text)

    def spoken(self, entry: dict[str, Any]) -> tuple[str, ...]:
        """The texts of a user's line."""
        content = entry.get("content")
        if entry.get("type") != "user" or not isinstance(content, list):
            return ()
        return tuple(p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str))
