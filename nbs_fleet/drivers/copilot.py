"""The driver for GitHub Copilot CLI: hooks and skills by a plugin folder per start, messages by keys and hooks."""

from __future__ import annotations

import re
from posixpath import join
from typing import Any

from msgspec.structs import replace

from nbs_fleet.drivers import answers, copilot_hooks, copilot_screen, exits
from nbs_fleet.drivers.base import PROMPT, Capabilities, Dialog, Facts, HookNews, Places, Reading, Screen, Turns
from nbs_fleet.drivers.copilot_transcript import read_transcript, spoken
from nbs_fleet.drivers.dialect import Dialect
from nbs_fleet.drivers.plain import BYPASS, Plain
from nbs_fleet.model import AgentState, ExitKind


class Copilot(Plain):
    """The npm package `@github/copilot`; facts measured with 1.0.102."""

    name: str = "copilot"
    program: str = "copilot"
    capabilities: Capabilities = Capabilities(
        resume=True,
        session_id=True,
        hooks=True,
        skills=True,
        skill_calls=True,
        export=True,
        context_before_tool=True,
        context_after_tool=True,
        stop_block=True,
        permission_hook=True,
        queues_input=True,
        turn_hooks=True,
    )
    min_version: tuple[int, ...] | None = (1, 0, 13)
    """Older ones know no provider of one's own, by their change log."""
    dialect: Dialect | None = copilot_hooks.COPILOT
    version_pattern: str = r"GitHub Copilot CLI v?(\d{1,9}\.\d{1,9}\.\d{1,9})"
    auto_approve: tuple[str, ...] = ("--yolo",)
    yes: answers.Labels = copilot_screen.YES
    no: answers.Labels = copilot_screen.NO
    says: exits.Says = (
        ((1,), re.compile(r"Error: No session, task, or name matched"), ExitKind.NO_CONVERSATION),
        ((1,), re.compile(r"error: (unexpected|invalid|unknown|the argument)"), ExitKind.REFUSED),
    )
    flicker: str | None = (
        "#{history_size} #{cursor_x},#{cursor_y} #{window_activity} "
        "#{C:esc esc},#{C:/ commands},#{C:@ files},#{C:to navigate},#{C:enter accept}"
    )
    """The clock of `window_activity` ticks in seconds; the rows of the footer catch what falls into one second."""
    start_seconds: float = 20.0
    env_keys: tuple[str, ...] = ("COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "NODE_EXTRA_CA_CERTS")

    def session_argv(self, facts: Facts) -> tuple[str, ...]:
        """`--session-id` resumes a session that exists, too; `--resume` fails where there is none, and says so."""
        if facts.resume:
            return (f"--resume={facts.session_id}",)
        return ("--session-id", facts.session_id, "--name", facts.agent.handle)

    def hook_argv(self, facts: Facts) -> tuple[str, ...]:
        """The plugin folder, for this start alone. Where nobody answers questions, the agent has no tool to ask them."""
        asks = facts.agent.dialogs.question != "deny"
        return ("--plugin-dir", join(facts.agent_dir, copilot_hooks.FOLDER), *(() if asks else ("--no-ask-user",)))

    def prompt_argv(self, facts: Facts) -> tuple[str, ...]:
        return ("-i", PROMPT) if facts.has_prompt else ()

    def variables(self, facts: Facts) -> dict[str, str]:
        """COPILOT_ALLOW_ALL trusts the folder and approves every tool, so it needs the team file's word for both."""
        env = {"COPILOT_AUTO_UPDATE": "false"}
        if facts.agent.permission_mode == BYPASS and facts.agent.dialogs.trust == "accept":
            env["COPILOT_ALLOW_ALL"] = "true"
        return env

    def files(self, facts: Facts) -> dict[str, str]:
        return {**super().files(facts), **copilot_hooks.files(facts)}

    def one_shot(self, facts: Facts) -> tuple[str, ...] | None:
        model = self.model_argv(facts.agent.model) if facts.agent.model else ()
        return (*self.command(facts), *model, *self.auto_approve, *facts.agent.args, "-s", "-p", PROMPT)

    def places(self, facts: Facts) -> Places:
        """The session's own file below COPILOT_HOME, else `~/.copilot`."""
        named = facts.env.get("COPILOT_HOME")
        home = join(facts.real_dir, named) if named else join(facts.home, ".copilot")
        sessions = join(home, "session-state")
        return Places(transcript=join(sessions, facts.session_id, "events.jsonl"), sessions=sessions)

    def read_title(self, title: str) -> Reading:
        return copilot_screen.read_title(title)

    def read_screen(self, screen: Screen) -> Reading:
        return copilot_screen.read_screen(screen)

    def read_transcript(self, head: str, tail: str) -> Turns:
        return read_transcript(head, tail)

    def spoken(self, entry: dict[str, Any]) -> tuple[str, ...]:
        return spoken(entry)

    def read_hook(self, text: str, at: float | None = None) -> HookNews | None:
        """A request for a permission is told of even where none is needed; that a dialog opens, a notification says."""
        news = super().read_hook(text, at)
        if news is None or news.event != "PermissionRequest" or news.reading.state is not AgentState.BLOCKED:
            return news
        return replace(news, reading=Reading(AgentState.BUSY, detail=news.reading.detail))

    def pick(self, dialog: Dialog, index: int) -> tuple[str, ...] | None:
        return copilot_screen.pick(dialog, index)

    def skills_dir(self, facts: Facts) -> str | None:
        return join(facts.agent_dir, copilot_hooks.FOLDER, "skills")
