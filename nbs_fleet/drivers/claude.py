"""The driver for Claude Code: how it starts, where its files are, what its sources say, how its dialogs are answered."""

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
    claude_places,
    claude_screen,
    claude_settings,
    claude_state,
    claude_transcript,
    claude_usage,
    proofs,
)
from nbs_fleet.drivers.base import (
    PROMPT,
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
from nbs_fleet.drivers.dialect import Dialect
from nbs_fleet.drivers.plain import Plain
from nbs_fleet.drivers.recipes import Inbox, MailFolder, Submit
from nbs_fleet.drivers.usage import Tally
from nbs_fleet.model import ExitKind
from nbs_fleet.spec.team import Dialogs

SKILLS = "skills"
"""The folder of an agent's own that is added to its client's, for what lies in its `.claude`."""

SESSION_MARKS: tuple[str, ...] = (
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
    "AI_AGENT",
)
"""What a Claude puts into its children. With CHILD_SESSION a client keeps no transcript and no state file."""


class Claude(Plain):
    """Claude Code, the npm package's `claude`; facts measured with 2.1.197."""

    name: str = "claude"
    program: str = "claude"
    capabilities: Capabilities = Capabilities(
        resume=True,
        session_id=True,
        hooks=True,
        skills=True,
        skill_calls=True,
        state_file=True,
        title=True,
        export=True,
        context_before_tool=True,
        context_after_tool=True,
        stop_block=True,
        mail=True,
        native_inbox=True,
        permission_hook=True,
        queues_input=True,
        stash=True,
    )
    min_version: tuple[int, ...] | None = (2, 1, 0)
    """Older ones were never seen: screens, state file and hooks are known from 2.1 on."""
    dialect: Dialect | None = claude_hooks.CLAUDE
    submit: Submit = Submit(gap=0.0, placeholder=r"\[Pasted text #\d+(?: \+\d+ lines)?\]")
    auto_approve: tuple[str, ...] = ("--permission-mode", "bypassPermissions")
    stop_signals: tuple[str, ...] = ("TERM",)
    start_seconds: float = 10.0
    flicker: str | None = None
    env_keys: tuple[str, ...] = (
        "ANTHROPIC_*",
        "CLAUDE_*",
        "AWS_*",
        "GOOGLE_*",
        "CLOUD_ML_REGION",
        "DISABLE_*",
        "IS_SANDBOX",
        "NODE_EXTRA_CA_CERTS",
    )

    def parse_version(self, output: str) -> str | None:
        """`2.1.197` of `2.1.197 (Claude Code)`."""
        found = re.search(r"^[ \t]*v?(\d{1,9}\.\d{1,9}\.\d{1,9}\S{0,40})[ \t]+\(Claude Code\)", output, re.MULTILINE)
        return found[1] if found else None

    def launch(self, facts: Facts) -> Launch:
        """A fresh start takes `--session-id`, a later one `--resume`, never both; the prompt stands last.

        `--` before the prompt lets one that begins with `-` through (measured). Variables that the team file
        sets itself are left to it.
        """
        env = {"DISABLE_AUTOUPDATER": "1"}
        if facts.agent.dialogs.trust == "accept":
            # Skips the trust dialog and nothing else, without a write to the person's own files (measured).
            env["CLAUDE_CODE_SANDBOXED"] = "1"
        given = facts.agent.env
        args, dropped = claude_settings.without_settings(facts.agent.args)
        return Launch(
            argv=(*self.command(facts), *self.flags(facts), *args, *prompt_argv(facts)),
            env={key: value for key, value in env.items() if key not in given},
            unset=tuple(key for key in SESSION_MARKS if key not in given),
            files=claude_hooks.files(facts, claude_hooks.CLAUDE),
            dropped=dropped,
        )

    def command(self, facts: Facts) -> tuple[str, ...]:
        """The program and what the team file puts in front of our flags."""
        return facts.agent.command or (self.program,)

    def flags(self, facts: Facts) -> tuple[str, ...]:
        """Our own flags, in a fixed order."""
        agent = facts.agent
        flags = ["--resume" if facts.resume else "--session-id", facts.session_id]
        flags += ["--settings", facts.settings_path, "--name", agent.handle]
        if agent.model:
            flags += ["--model", agent.model]
        if agent.permission_mode:
            flags += ["--permission-mode", agent.permission_mode]
        if facts.skills:
            # It takes all words up to the next flag, so one always follows.
            flags[4:4] = ["--add-dir", join(facts.agent_dir, SKILLS)]
        return (*flags, *claude_hooks.briefing(agent, facts.team))

    def config_dir(self, facts: Facts) -> str:
        """The client's configuration folder as this start will see it."""
        return claude_places.config_dir(facts)

    def places(self, facts: Facts) -> Places:
        return claude_places.places(facts, self.config_dir(facts))

    def one_shot(self, facts: Facts) -> tuple[str, ...] | None:
        model = ("--model", facts.agent.model) if facts.agent.model else ()
        return (*self.command(facts), *model, *facts.agent.args, "-p", "--", PROMPT)

    def inbox(self, facts: Facts, session_id: str | None) -> Inbox | None:
        del facts, session_id
        return MailFolder()

    def read_state_file(self, text: str) -> StateFile | None:
        return claude_state.read_state_file(text)

    def read_title(self, title: str) -> Reading:
        return claude_state.read_title(title)

    def read_screen(self, screen: Screen) -> Reading:
        return claude_screen.read_screen(screen)

    def read_transcript(self, head: str, tail: str) -> Turns:
        return claude_transcript.read_transcript(head, tail)

    def count_usage(self, tally: Tally, lines: str) -> Tally:
        return claude_usage.count(tally, lines)

    def proofs(self, lines: str) -> tuple[str, ...]:
        return proofs.in_transcript(lines)

    def answer(self, dialog: Dialog, policy: Dialogs) -> tuple[str, ...] | None:
        return claude_answers.answer(dialog, policy)

    def pick(self, dialog: Dialog, index: int) -> tuple[str, ...] | None:
        return answers.pick(dialog, index)

    def read_exit(self, code: int | None, signal: int | None, lines: tuple[str, ...]) -> ExitKind:
        return claude_exit.read(code, signal, lines)

    def read_hook(self, text: str, at: float | None = None) -> HookNews | None:
        return claude_hook_news.read(text, at)

    def skills_dir(self, facts: Facts) -> str | None:
        """Skills of an added directory have their bare names, whatever their text says of it (2.1.197, measured)."""
        return join(facts.agent_dir, SKILLS, ".claude", "skills")

    def settings(self, facts: Facts) -> dict[str, Any]:
        hooks = claude_hooks.render(facts, dialect="claude", with_tools=facts.hand_over)
        return {**claude_settings.render(facts.agent), "hooks": hooks}


def prompt_argv(facts: Facts) -> tuple[str, ...]:
    """The prompt's mark as the last argument; a resumed session takes a prompt too, as its next message (measured)."""
    if not facts.has_prompt:
        return ()
    return (PROMPT,) if "--" in facts.agent.args else ("--", PROMPT)
