"""What a driver is unless it says otherwise: a base class that keeps each driver small."""

from __future__ import annotations

import json
import re
from posixpath import join
from typing import Any

from nbs_fleet.drivers import answers, claude_hook_news, exits, proofs
from nbs_fleet.drivers.base import (
    PROMPT,
    Capabilities,
    Dialog,
    Driver,
    Facts,
    HookNews,
    Launch,
    Places,
    Reading,
    Screen,
    StateFile,
    Turns,
)
from nbs_fleet.drivers.briefing import briefing_of
from nbs_fleet.drivers.deployment import Deployment, Link
from nbs_fleet.drivers.dialect import Dialect, policy_file
from nbs_fleet.drivers.recipes import Inbox, Submit
from nbs_fleet.drivers.usage import Tally
from nbs_fleet.jsontext import load_object
from nbs_fleet.model import AgentState, ExitKind
from nbs_fleet.spec.team import Agent, Dialogs

BYPASS = "bypassPermissions"
"""The permission mode of the team file that lets a client do everything without asking, whatever its own word."""


SHARED_SKILLS = (".agents", "skills")
"""The one folder that Codex, Copilot, Gemini, opencode and Qwen Code all look into (measured)."""


class Plain:
    """Defaults for a driver: no hooks, no sessions, no files, a screen that says nothing, one TERM to end it.

    A subclass sets the data that differs and overrides what it needs. Argv is put together as: the command, what
    `session_argv`, `model_argv`, `mode_argv` and `hook_argv` give, the team file's `args`, the prompt.
    """

    name: str = ""
    program: str = ""
    capabilities: Capabilities = Capabilities()
    min_version: tuple[int, ...] | None = None
    since: dict[str, tuple[int, ...]] = {}  # noqa: RUF012  # data of the class, never changed
    dialect: Dialect | None = None
    submit: Submit = Submit()
    stop_signals: tuple[str, ...] = ("TERM",)
    start_seconds: float = 10.0
    flicker: str | None = None
    env_keys: tuple[str, ...] = ()
    version_pattern: str = r"(\d{1,9}\.\d{1,9}\.\d{1,9})"
    """The version in the output of `--version`: its first group. Only stdout is looked at."""
    auto_approve: tuple[str, ...] = ()
    """The flags that make it do everything without asking; none: it can't be told by a flag."""
    modes: dict[str, tuple[str, ...]] = {}  # noqa: RUF012
    """Other permission modes of the team file -> flags."""
    yes: answers.Labels = {}  # noqa: RUF012
    """Labels of dialogs that carry out `accept` and `approve`; never one that allows more than was asked."""
    no: answers.Labels = {}  # noqa: RUF012
    """Labels that carry out `deny`."""
    says: exits.Says = ()
    """What it prints when it ends before it has drawn anything."""
    session_marks: tuple[str, ...] = ()
    """Variables by which this client tells that it runs inside another one of its kind."""

    def fitted(self, agent: Agent) -> Driver:
        del agent
        return self

    def objections(self, agent: Agent) -> tuple[str, ...]:
        del agent
        return ()

    def parse_version(self, output: str) -> str | None:
        found = re.search(self.version_pattern, output)
        return found[1] if found else None

    def launch(self, facts: Facts) -> Launch:
        """Argv in a fixed order; variables that the team file sets itself are left to it."""
        agent = facts.agent
        mode, dropped = self.mode_argv(facts)
        if agent.permissions:
            dropped = (*dropped, "permissions")
        if agent.skills and not self.capabilities.skills:
            dropped = (*dropped, "skills")
        argv = (
            *self.command(facts),
            *self.session_argv(facts),
            *(self.model_argv(agent.model) if agent.model else ()),
            *mode,
            *self.hook_argv(facts),
            *agent.args,
            *self.prompt_argv(facts),
        )
        env = {key: value for key, value in self.variables(facts).items() if key not in agent.env}
        unset = tuple(key for key in self.session_marks if key not in agent.env and key not in env)
        return Launch(argv=argv, env=env, unset=unset, files=self.files(facts), dropped=dropped)

    def command(self, facts: Facts) -> tuple[str, ...]:
        """The program, or the team file's command."""
        return facts.agent.command or (self.program,)

    def session_argv(self, facts: Facts) -> tuple[str, ...]:
        """What begins or resumes a session."""
        del facts
        return ()

    def model_argv(self, model: str) -> tuple[str, ...]:
        """What names the model."""
        return ("--model", model)

    def mode_argv(self, facts: Facts) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The flags of the permission mode, and what of it this client doesn't know."""
        mode = facts.agent.permission_mode
        if mode is None:
            return (), ()
        flags = self.auto_approve if mode == BYPASS else self.modes.get(mode, ())
        return flags, () if flags or mode in self.modes else (f"permission_mode {mode}",)

    def hook_argv(self, facts: Facts) -> tuple[str, ...]:
        """Flags that bring hooks, settings and trust for this one start."""
        del facts
        return ()

    def prompt_argv(self, facts: Facts) -> tuple[str, ...]:
        """The prompt's mark, where there is a prompt."""
        return (PROMPT,) if facts.has_prompt else ()

    def variables(self, facts: Facts) -> dict[str, str]:
        """Variables that this start adds."""
        del facts
        return {}

    def files(self, facts: Facts) -> dict[str, str]:
        """Files below the agent's own folder; with hooks, what the hook program reads."""
        if self.dialect is None:
            return {}
        briefing = briefing_of(facts.agent.handle, facts.team)
        return policy_file(facts.agent, facts.agent_dir, self.dialect, briefing)

    def one_shot(self, facts: Facts) -> tuple[str, ...] | None:
        del facts
        return None

    def places(self, facts: Facts) -> Places:
        del facts
        return Places()

    def inbox(self, facts: Facts, session_id: str | None) -> Inbox | None:
        del facts, session_id
        return None

    def deploy(self, facts: Facts) -> tuple[Deployment, ...]:
        """Links to skills, where a client finds them only in its working directory."""
        if not self.capabilities.shared_skills:
            return ()
        place = join(facts.real_dir, *SHARED_SKILLS)
        return tuple(Link(join(place, name), join(facts.shared_dir, name)) for name in facts.skills)

    def read_state_file(self, text: str) -> StateFile | None:
        del text
        return None

    def read_title(self, title: str) -> Reading:
        del title
        return Reading(AgentState.UNKNOWN)

    def read_screen(self, screen: Screen) -> Reading:
        del screen
        return Reading(AgentState.UNKNOWN)

    def read_transcript(self, head: str, tail: str) -> Turns:
        del head, tail
        return Turns()

    def count_usage(self, tally: Tally, lines: str) -> Tally:
        del lines
        return tally

    def proofs(self, lines: str) -> tuple[str, ...]:
        """Ids in lines that are a person's, or a hook's, words to the model: see `spoken`."""
        found: dict[str, None] = {}
        for line in lines.split("\n"):
            entry = load_object(line) if "[nbs:" in line else {}
            for text in self.spoken(entry):
                found.update(dict.fromkeys(proofs.in_prompt(text)))
        return tuple(found)

    def spoken(self, entry: dict[str, Any]) -> tuple[str, ...]:
        """The texts of one transcript line that reached the model as input; never its own words or a tool's output."""
        del entry
        return ()

    def answer(self, dialog: Dialog, policy: Dialogs) -> tuple[str, ...] | None:
        index = answers.choose(dialog, policy, self.yes, self.no)
        return None if index is None else self.pick(dialog, index)

    def pick(self, dialog: Dialog, index: int) -> tuple[str, ...] | None:
        return answers.pick(dialog, index)

    def read_exit(self, code: int | None, signal: int | None, lines: tuple[str, ...]) -> ExitKind:
        return exits.read_exit(code, signal, lines, self.says)

    def read_hook(self, text: str, at: float | None = None) -> HookNews | None:
        """A payload in this client's dialect, read as Claude Code's."""
        data = load_object(text) if self.dialect else {}
        if not data or self.dialect is None:
            return None
        return claude_hook_news.read(json.dumps(self.dialect.normal(data)), at)

    def skills_dir(self, facts: Facts) -> str | None:
        return join(facts.real_dir, *SHARED_SKILLS) if self.capabilities.shared_skills else None

    def settings(self, facts: Facts) -> dict[str, Any]:
        return dict(facts.agent.settings)
