"""The driver for Codex: everything of a start in its flags, so that no file of the person is touched."""

from __future__ import annotations

import re
from posixpath import join
from typing import Any

from msgspec.structs import replace

from nbs_fleet.drivers import answers, codex_screen, codex_transcript, exits
from nbs_fleet.drivers.base import PROMPT, Capabilities, Facts, HookNews, Places, Reading, Screen, Turns, numbers
from nbs_fleet.drivers.dialect import BLOCK, Dialect, HookEvent, nested, nested_decision
from nbs_fleet.drivers.plain import Plain
from nbs_fleet.drivers.recipes import TEXT, Command, Inbox, Submit
from nbs_fleet.drivers.toml_text import inline, overrides
from nbs_fleet.model import AgentState, BlockedKind, ExitKind

DIALECT = Dialect(
    name="codex",
    events=(
        *(HookEvent(name, name) for name in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse")),
        *(HookEvent(name, name) for name in ("PermissionRequest", "Stop", "PreCompact", "PostCompact")),
        HookEvent("SubagentStop", "SubagentStop"),
        HookEvent("SessionEnd", "SessionEnd", seconds=3),
    ),
    context={event: nested() for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse")},
    block=BLOCK,
    allow=nested_decision("allow"),
    deny=nested_decision("deny", message=True),
    strict=True,
)
"""Claude Code's words, read strictly: one key too many and the output is refused (0.171.0, measured)."""

QUEUE_SINCE = (0, 171)
"""`codex queue` and `--no-daemon` were seen in this version."""

_GAVE_UP = (1, 2, None)


class Codex(Plain):
    """The npm package `@openai/codex`; facts measured with 0.171.0."""

    name: str = "codex"
    program: str = "codex"
    capabilities: Capabilities = Capabilities(
        resume=True,
        skills=True,
        shared_skills=True,
        hooks=True,
        title=True,
        export=True,
        context_before_tool=True,
        context_after_tool=True,
        stop_block=True,
        native_inbox=True,
        permission_hook=True,
    )
    min_version: tuple[int, ...] | None = (0, 129, 0)
    """Older ones refuse a context at PreToolUse, by their change log."""
    since: dict[str, tuple[int, ...]] = {"native_inbox": QUEUE_SINCE}  # noqa: RUF012  # data of the class
    dialect: Dialect | None = DIALECT
    submit: Submit = Submit(gap=0.3, placeholder=r"\[Pasted Content \d+ chars\]")
    flicker: str | None = "#{=1:pane_title} #{window_activity} #{cursor_x},#{cursor_y} #{history_size}"
    """The title begins with a spinner while a turn runs; a turn may begin and end between two looks of tmux, which are
    a second apart, and then only the activity tells."""
    env_keys: tuple[str, ...] = ("CODEX_*", "OPENAI_*", "AZURE_OPENAI_*", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
    version_pattern: str = r"codex-cli (\d{1,9}\.\d{1,9}\.\d{1,9}\S{0,40})"
    auto_approve: tuple[str, ...] = ("--dangerously-bypass-approvals-and-sandbox",)
    modes: dict[str, tuple[str, ...]] = {  # noqa: RUF012  # data of the class
        "default": (),
        "acceptEdits": ("--sandbox", "workspace-write", "--ask-for-approval", "on-request"),
        "dontAsk": ("--sandbox", "workspace-write", "--ask-for-approval", "never"),
    }
    yes: answers.Labels = {  # noqa: RUF012  # data of the class
        BlockedKind.TRUST: (r"^Trust and continue",),
        BlockedKind.PERMISSION: (r"^Yes, proceed",),
    }
    no: answers.Labels = {BlockedKind.TRUST: (r"^(No\b|Back to )",), BlockedKind.PERMISSION: (r"^No\b",)}  # noqa: RUF012
    says: exits.Says = (
        (_GAVE_UP, re.compile(r"(ERROR|Error): No saved session found"), ExitKind.NO_CONVERSATION),
        (_GAVE_UP, re.compile(r"error: (unexpected|invalid|the argument|a value)"), ExitKind.REFUSED),
        (_GAVE_UP, re.compile(r"Error loading config"), ExitKind.REFUSED),
    )
    session_marks: tuple[str, ...] = ("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED")

    def session_argv(self, facts: Facts) -> tuple[str, ...]:
        """A fresh session's id is the client's own choice, which its first hook tells."""
        return ("resume", facts.session_id) if facts.resume else ()

    def model_argv(self, model: str) -> tuple[str, ...]:
        return ("-m", model)

    def hook_argv(self, facts: Facts) -> tuple[str, ...]:
        """Hooks, trust and settings as overrides for this start.

        Without `--no-daemon` a process of Codex outlives the pane and runs the hooks with another environment
        (measured). The project, and hooks that nobody has reviewed, are only trusted where the team file says so.
        A login shell reads the machine's profile, which on Debian sets PATH anew: `nbs-fleet` would not be found by
        the commands that the agent runs (measured).
        """
        flags = [] if self._lacks(facts, QUEUE_SINCE) else ["--no-daemon"]
        trusts = facts.agent.dialogs.trust == "accept"
        if trusts:
            flags.append("--dangerously-bypass-hook-trust")
        values = ["check_for_update_on_startup=false", "allow_login_shell=false"]
        if trusts:
            values.append("projects=" + inline({facts.real_dir: {"trust_level": "trusted"}}))
        values += [f"hooks.{event}={inline(groups)}" for event, groups in DIALECT.groups(facts.run).items()]
        values += overrides(facts.agent.settings)
        return (*flags, *(word for value in values for word in ("-c", value)))

    def prompt_argv(self, facts: Facts) -> tuple[str, ...]:
        """`--` lets a prompt through that begins with `-`."""
        if not facts.has_prompt:
            return ()
        return (PROMPT,) if "--" in facts.agent.args else ("--", PROMPT)

    def one_shot(self, facts: Facts) -> tuple[str, ...] | None:
        model = self.model_argv(facts.agent.model) if facts.agent.model else ()
        mode, _ = self.mode_argv(facts)
        values = [word for value in overrides(facts.agent.settings) for word in ("-c", value)]
        return (*self.command(facts), "exec", "--skip-git-repo-check", *model, *mode, *values, "--", PROMPT)

    def home(self, facts: Facts) -> str:
        """CODEX_HOME, else `~/.codex`."""
        named = facts.env.get("CODEX_HOME")
        return join(facts.real_dir, named) if named else join(facts.home, ".codex")

    def places(self, facts: Facts) -> Places:
        """A session's file lies in a folder of the day it began, with that time in its name."""
        sessions = join(self.home(facts), "sessions")
        return Places(pattern=f"{sessions}/*/*/*/rollout-*-{facts.session_id}.jsonl", sessions=sessions)

    def inbox(self, facts: Facts, session_id: str | None) -> Inbox | None:
        """`codex queue`: an idle session takes it within seconds, a busy one at its turn's end (measured).

        The queue outlives the client: one that resumes the session takes it still (measured).
        A session exists once its first prompt was sent; until then there is nothing to queue for.
        """
        if session_id is None or self._lacks(facts, QUEUE_SINCE):
            return None
        return Command((*self.command(facts), "queue", "--thread", session_id, "--message", TEXT), keeps=session_id)

    def read_title(self, title: str) -> Reading:
        return codex_screen.read_title(title)

    def read_screen(self, screen: Screen) -> Reading:
        return codex_screen.read_screen(screen)

    def read_transcript(self, head: str, tail: str) -> Turns:
        return codex_transcript.read_transcript(head, tail)

    def spoken(self, entry: dict[str, Any]) -> tuple[str, ...]:
        return codex_transcript.spoken(entry)

    def read_hook(self, text: str, at: float | None = None) -> HookNews | None:
        """A Stop is no end yet: another hook may hold it back, and the title says when the turn is over (measured)."""
        news = super().read_hook(text, at)
        if news is not None and news.reading.state is AgentState.IDLE:
            return replace(news, reading=Reading(AgentState.UNKNOWN))
        return news

    def _lacks(self, facts: Facts, since: tuple[int, ...]) -> bool:
        """Whether this version is older; one that is not known is taken for a current one."""
        if facts.version is None:
            return False
        return numbers(facts.version) < since
