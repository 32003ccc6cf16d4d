"""The driver for claudeless, a simulator by others: a dialect of Claude Code with fewer flags, sources and keys.

Its hooks differ too (0.2.2): one entry per event and no `matcher` (a later entry replaces an earlier one), no
`timeout` (milliseconds there), only SessionStart, Stop, PreToolUse, PostToolUse and Notification ever fire.
"""

from __future__ import annotations

import re
from posixpath import join
from typing import Any

from nbs_fleet.drivers import (
    answers,
    claude_answers,
    claude_exit,
    claude_hook_news,
    claude_hooks,
    claude_settings,
    claude_transcript,
    claude_usage,
    claudeless_screen,
    proofs,
)
from nbs_fleet.drivers.base import (
    Capabilities,
    Dialog,
    Facts,
    HookNews,
    Launch,
    Places,
    Reading,
    Screen,
    StateFile,
    Turns,
)
from nbs_fleet.drivers.claude import SESSION_MARKS, prompt_argv
from nbs_fleet.drivers.claude_places import plain_slug
from nbs_fleet.drivers.dialect import Dialect
from nbs_fleet.drivers.plain import Plain
from nbs_fleet.drivers.recipes import Submit
from nbs_fleet.drivers.usage import Tally
from nbs_fleet.model import AgentState, BlockedKind, ExitKind
from nbs_fleet.spec.team import Dialogs

FLAGS = frozenset(
    {
        "--add-dir",
        "--agent",
        "--agents",
        "--allow-dangerously-skip-permissions",
        "--allowed-tools",
        "--allowedTools",
        "--append-system-prompt",
        "--betas",
        "--chrome",
        "--claude-version",
        "--continue",
        "--cwd",
        "--dangerously-skip-permissions",
        "--debug",
        "--debug-file",
        "--disable-slash-commands",
        "--disallowedTools",
        "--fallback-model",
        "--file",
        "--fork-session",
        "--from-pr",
        "--ide",
        "--input-file",
        "--json-schema",
        "--max-budget-usd",
        "--mcp-config",
        "--mcp-debug",
        "--model",
        "--no-chrome",
        "--permission-mode",
        "--plugin-dir",
        "--resume",
        "--scenario",
        "--session-id",
        "--setting-sources",
        "--settings",
        "--strict-mcp-config",
        "--system-prompt",
        "--tools",
        "--verbose",
        "-c",
        "-d",
        "-r",
    }
)
"""What claudeless 0.2.2 takes in a pane; with any other it ends with status 2."""

MODES = {
    "default": "default",
    "plan": "plan",
    "delegate": "delegate",
    "acceptEdits": "accept-edits",
    "bypassPermissions": "bypass-permissions",
    "dontAsk": "dont-ask",
}
"""Claude Code's permission modes in the spelling of claudeless; it has no `auto`."""


CONFIG_KEYS = ("CLAUDELESS_CONFIG_DIR", "CLAUDELESS_STATE_DIR", "CLAUDE_CONFIG_DIR")
"""Where it looks for its configuration folder, first come first served."""


class Claudeless(Plain):
    """claudeless 0.2.2 (measured). No state file, no title; its configuration folder is always private."""

    name: str = "claudeless"
    program: str = "claudeless"
    capabilities: Capabilities = Capabilities(
        resume=True, session_id=True, hooks=True, export=True, stop_block=True, paste=False
    )
    min_version: tuple[int, ...] | None = (0, 2, 0)
    dialect: Dialect | None = claude_hooks.CLAUDELESS
    submit: Submit = Submit(gap=0.0, ascii=True)
    stop_signals: tuple[str, ...] = ("TERM",)
    start_seconds: float = 5.0
    flicker: str | None = (
        "#{history_size} #{cursor_x},#{cursor_y} #{window_activity} "
        "#{C:for shortcuts},#{C:shift+tab},#{C:Esc to},#{C:Enter to}"
    )
    """The clock of `window_activity` ticks in seconds; the rows of the hints catch what falls into one second."""
    env_keys: tuple[str, ...] = ("CLAUDELESS_*",)

    def proofs(self, lines: str) -> tuple[str, ...]:
        return proofs.in_transcript(lines)

    def parse_version(self, output: str) -> str | None:
        """`0.2.2` of `claudeless 0.2.2`."""
        found = re.search(r"^[ \t]*claudeless[ \t]+v?(\d{1,9}\.\d{1,9}\.\d{1,9}\S{0,40})", output, re.MULTILINE)
        return found[1] if found else None

    def launch(self, facts: Facts) -> Launch:
        """Only flags it knows; `Launch.dropped` names what the team file asked for and it can't do."""
        agent = facts.agent
        argv = [*(agent.command or (self.program,)), "--resume" if facts.resume else "--session-id", facts.session_id]
        argv += ["--settings", facts.settings_path]
        dropped: list[str] = []
        if agent.model:
            argv += ["--model", agent.model]
        if agent.permission_mode:
            mode = MODES.get(agent.permission_mode, agent.permission_mode)
            if mode in MODES.values():
                argv += ["--permission-mode", mode]
            else:
                dropped.append(f"--permission-mode {agent.permission_mode}")
        if agent.skills:
            dropped.append("skills")
        args, ours = claude_settings.without_settings(agent.args)
        known, unknown = known_args(args)
        config = self.config_dir(facts)
        own = {} if _names_config(facts) else {"CLAUDELESS_CONFIG_DIR": config, "CLAUDE_CONFIG_DIR": config}
        return Launch(
            argv=(*argv, *known, *prompt_argv(facts)),
            env=own,
            unset=tuple(key for key in (*SESSION_MARKS, *CONFIG_KEYS) if key not in agent.env and key not in own),
            files=claude_hooks.files(facts, claude_hooks.CLAUDELESS),
            dropped=(*dropped, *ours, *unknown),
        )

    def config_dir(self, facts: Facts) -> str:
        """The folder the team file names, else one of this agent's own."""
        named = next((facts.agent.env[key] for key in CONFIG_KEYS if facts.agent.env.get(key)), None)
        return join(facts.real_dir, named) if named else join(facts.agent_dir, "client")

    def places(self, facts: Facts) -> Places:
        """It resumes only sessions with a finished turn; its transcript exists from the start on."""
        folder = join(self.config_dir(facts), "projects", plain_slug(facts.real_dir))
        return Places(transcript=join(folder, f"{facts.session_id}.jsonl"))

    def read_state_file(self, text: str) -> StateFile | None:
        """It has none."""
        del text
        return None

    def read_title(self, title: str) -> Reading:
        """It sets none."""
        del title
        return Reading(AgentState.UNKNOWN)

    def read_screen(self, screen: Screen) -> Reading:
        return claudeless_screen.read_screen(screen)

    def read_transcript(self, head: str, tail: str) -> Turns:
        """Counts only: a turn is written when it is over, so the file never tells whether one runs (measured)."""
        return claude_transcript.read_finished(head, tail)

    def count_usage(self, tally: Tally, lines: str) -> Tally:
        return claude_usage.count(tally, lines)

    def answer(self, dialog: Dialog, policy: Dialogs) -> tuple[str, ...] | None:
        """Digits do nothing in its trust and bypass dialogs: `y`/`n` in the first, arrows and Enter in the other (measured)."""
        if dialog.kind not in (BlockedKind.TRUST, BlockedKind.BYPASS):
            return claude_answers.answer(dialog, policy)
        index = claude_answers.choose(dialog, policy)
        return None if index is None else self.pick(dialog, index)

    def pick(self, dialog: Dialog, index: int) -> tuple[str, ...] | None:
        if dialog.kind not in (BlockedKind.TRUST, BlockedKind.BYPASS):
            return answers.pick(dialog, index)
        if dialog.kind is BlockedKind.TRUST:
            return ("y",) if dialog.options[index].label.startswith("Yes") else ("n",)
        return answers.walk(dialog, index)

    def read_exit(self, code: int | None, signal: int | None, lines: tuple[str, ...]) -> ExitKind:
        """130 is two Ctrl-C: a person ended it."""
        return ExitKind.CLEAN if code == 130 and not signal else claude_exit.read(code, signal, lines)

    def read_hook(self, text: str, at: float | None = None) -> HookNews | None:
        return claude_hook_news.read(text, at)

    def skills_dir(self, facts: Facts) -> str | None:
        """It knows no commands but its own (measured)."""
        del facts
        return None

    def settings(self, facts: Facts) -> dict[str, Any]:
        hooks = claude_hooks.render(facts, dialect="claudeless", with_tools=False)
        return {**claude_settings.render(facts.agent), "hooks": hooks}


def known_args(args: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The team file's arguments, split into what claudeless takes and what it would end over, values included."""
    known: list[str] = []
    unknown: list[str] = []
    into = known
    for word in args:
        if word.startswith("-"):
            into = known if word.partition("=")[0] in FLAGS else unknown
        into.append(word)
    return tuple(known), tuple(unknown)


def _names_config(facts: Facts) -> bool:
    return any(facts.agent.env.get(key) for key in CONFIG_KEYS)
