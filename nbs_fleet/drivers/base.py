"""The driver contract: what one agent CLI looks like. Pure: text and facts in, data out."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.drivers.deployment import Deployment
from nbs_fleet.drivers.dialect import Dialect
from nbs_fleet.drivers.recipes import Inbox, Submit
from nbs_fleet.drivers.usage import Tally
from nbs_fleet.model import AgentState, BlockedKind, ErrorKind, ExitKind
from nbs_fleet.spec.team import Agent, Dialogs

PROMPT = "\0prompt"
"""Stands in an argv for the text of prompt.md; launch.sh puts it in, byte for byte."""


_NUMBER = re.compile(r"[0-9]{1,9}")
_DRAWN = frozenset(" \n\t\xa0─╌✔☐☒[]")
"""What a pane's width or a tick changes in one and the same dialog."""


class Capabilities(Struct, frozen=True):
    """What a client can do; what it can't, the fleet does another way or says so."""

    resume: bool = False
    session_id: bool = False
    """The launcher may choose the session id of a fresh start."""
    hooks: bool = False
    skills: bool = False
    skill_calls: bool = False
    """`/NAME` in its input box calls a skill."""
    shared_skills: bool = False
    """It finds skills only in its working directory, so agents that share one share those."""
    state_file: bool = False
    title: bool = False
    """Its pane title says whether it works; `read_screen` sees it as `Screen.title`."""
    export: bool = False
    """Its transcript is a file of its own, with all of a session in it, that may be copied."""
    context_before_tool: bool = False
    """A hook before a tool call can hand text to the model."""
    context_after_tool: bool = False
    """A hook after a tool call can."""
    stop_block: bool = False
    """A hook can make a stopping client go on with a text."""
    mail: bool = False
    """Its inbox is the agent's `mail/`, which a hook of the client watches."""
    native_inbox: bool = False
    """It has a way in of its own, without keys: `Driver.inbox` says which."""
    permission_hook: bool = False
    """A hook can answer a dialog about a permission before it opens."""
    queues_input: bool = False
    """Text submitted while busy is queued by the client."""
    turn_hooks: bool = False
    """Its hooks tell of each turn's begin and end, and sooner than its screen does."""
    whole_turns: bool = False
    """They tell of an interrupted turn's end as well, so they are believed for longer than a screen that differs."""
    paste: bool = True
    """It knows bracketed paste; else one line at a time is typed."""
    prompt: bool = True
    """It takes its first prompt with its start; else it is typed like a message."""
    resume_prompt: bool = True
    """It takes one with a resumed start, too."""
    stash: bool = False
    """Ctrl+S puts a draft aside, and the client gives it back after the next submit."""


class Facts(Struct, frozen=True):
    """What a driver may know about one start of one agent. All paths absolute."""

    agent: Agent
    team: str
    run: str
    agent_dir: str
    settings_path: str
    session_id: str
    resume: bool
    has_prompt: bool
    home: str
    """HOME as the agent will see it."""
    env: dict[str, str]
    """The agent's environment as far as a driver needs it (never logged)."""
    real_dir: str
    """The working directory with symbolic links resolved."""
    hand_over: bool = False
    """Mail is not armed: messages are handed over at tool boundaries, so those are hooked too."""
    version: str | None = None
    is_root: bool = False
    skills: tuple[str, ...] = ()
    """Names of the skills that are deployed for it."""
    shared_dir: str = ""
    """The folder that holds NAME/SKILL.md of each, for all agents of this working directory."""


class Launch(Struct, frozen=True):
    """How to start a client: argv (with PROMPT as a mark), variables to add and drop, files to write (path -> text).

    `dropped` names what the team file asked for and this client doesn't know, or what would displace the fleet's own,
    for a remark to the person.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    files: dict[str, str] = {}
    dropped: tuple[str, ...] = ()


class Places(Struct, frozen=True):
    """Where a client's own files lie; None where it has no such file.

    `state_dir` holds one state file per client process; `transcript` is the session's own file. Where only the client
    knows its whole name, `pattern` is a shell pattern (with `**`) that the newest such file of the session matches.
    `sessions` is the folder below which all sessions of this client lie.
    """

    state_dir: str | None = None
    transcript: str | None = None
    pattern: str | None = None
    sessions: str | None = None


class Screen(Struct, frozen=True):
    """The visible text of a pane, one string per row, without trailing blanks; plus the pane's title."""

    rows: tuple[str, ...]
    width: int
    height: int
    title: str = ""


class Option(Struct, frozen=True):
    """One line a dialog offers: the `key` that picks it at once (a digit), or None, and its label."""

    label: str
    key: str | None = None


class Dialog(Struct, frozen=True):
    """A dialog as read from the screen. `cursor` is the index of the highlighted option."""

    kind: BlockedKind
    text: str
    options: tuple[Option, ...] = ()
    cursor: int | None = None

    def keyed(self) -> tuple[tuple[str, str], ...]:
        """The options as (key, label); one without a key of its own has its number."""
        return tuple((option.key or str(n), option.label) for n, option in enumerate(self.options, 1))

    @property
    def mark(self) -> str:
        """Tells this dialog from another one, however wide the pane is and whatever is ticked in it."""
        # An option of a question may hold what a person has typed so far.
        labels = () if self.kind is BlockedKind.QUESTION else tuple(option.label for option in self.options)
        said = "\n".join((self.kind, self.text, *labels))
        return hashlib.sha256("".join(c for c in said if c not in _DRAWN).encode()).hexdigest()[:16]


class Reading(Struct, frozen=True):
    """What one look at one source says. UNKNOWN is a legal answer; `dialog` only with BLOCKED."""

    state: AgentState
    detail: str = ""
    blocked: BlockedKind | None = None
    dialog: Dialog | None = None
    draft: str | None = None
    """Text in the input box that a person typed and did not send."""
    until: float | None = None
    title: str | None = None


class StateFile(Struct, frozen=True):
    """A client's own state file: whose it is, and what it says."""

    pid: int
    start: int | None
    session_id: str | None
    reading: Reading
    at: float | None = None
    """Wall seconds of its last change, as the client wrote it."""


class HookNews(Struct, frozen=True):
    """One hook event of a client, read. `event` is the client's own name for it.

    `reading` is what it says of the state (UNKNOWN: nothing). `prompt` is the text of a submitted prompt,
    `tool` a tool's name, `subagent` the id of a subagent it is about (then it says nothing of the agent),
    `error` why a turn failed, `last_text` the client's last words, `stop_active` that a stop was blocked before.
    """

    event: str
    reading: Reading
    session_id: str | None = None
    transcript: str | None = None
    prompt: str | None = None
    tool: str | None = None
    subagent: str | None = None
    error: ErrorKind | None = None
    last_text: str | None = None
    stop_active: bool = False
    cause: str | None = None
    """`startup`, `resume`, `clear` or `compact` of a session's start; the reason of its end; a notification's type."""
    answer: str | None = None
    """What our own hook told the client: `allow`, `deny`, `block` (a stop held back), `context` (messages handed over)."""
    handed: tuple[str, ...] = ()
    """The ids of the messages that this hook handed over."""
    request: str = ""
    """What a dialog asks for, in full: a tool and its input, a plan, questions with their options."""


class Turns(Struct, frozen=True):
    """What the head and tail of a transcript say."""

    prompts: int = 0
    """User prompts seen."""
    finished: int = 0
    """Turns that ended."""
    reading: Reading = Reading(AgentState.UNKNOWN)
    last_text: str | None = None
    refused: str | None = None
    """The last command that the client did not know, without its slash, and when that was (wall seconds)."""
    refused_at: float = 0.0


class Driver(Protocol):
    """One agent CLI. An instance is stateless; its module does no I/O.

    Registered under the entry-point group `nbs_fleet.drivers` (name -> class without arguments).
    """

    name: str
    program: str
    """The command when the team file names none."""
    capabilities: Capabilities
    min_version: tuple[int, ...] | None
    since: dict[str, tuple[int, ...]]
    """Capabilities that came with a later version than `min_version`: name -> that version. See `able`."""
    dialect: Dialect | None
    """Its hooks; None: it has none that we use."""
    submit: Submit
    """How it is typed to."""
    stop_signals: tuple[str, ...]
    """The kill recipe: signal names tried in turn for a polite end, e.g. ("TERM",).

    Each goes to the client; what is left of its whole tree after that gets TERM, then KILL, and is looked for again.
    """
    start_seconds: float
    """How long a slow start may take before it is worth a remark; never a reason to kill."""
    flicker: str | None
    """A tmux format whose change means "look at the screen", for clients without state file; else None."""
    env_keys: tuple[str, ...]
    """Variables (or PREFIX_*) of the caller that this client needs even in a clean environment."""

    def fitted(self, agent: Agent) -> Driver:
        """The driver as it is for this agent: itself, unless the team file describes the client."""
        ...

    def objections(self, agent: Agent) -> tuple[str, ...]:
        """Why this agent must not be started as the team file has it, one sentence each, with what would be right."""
        ...

    def parse_version(self, output: str) -> str | None:
        """The version in the output of `program --version`, or None."""
        ...

    def launch(self, facts: Facts) -> Launch:
        """Argv, environment and files of one start, fresh or resumed."""
        ...

    def one_shot(self, facts: Facts) -> tuple[str, ...] | None:
        """The argv of one turn without a terminal, PROMPT in it; None: the client can't. Status 0 proves no work done."""
        ...

    def places(self, facts: Facts) -> Places:
        """Where this session's files will be."""
        ...

    def inbox(self, facts: Facts, session_id: str | None) -> Inbox | None:
        """The client's own way in for a message, now; None: there is none, or none before the session is known.

        `session_id` is the one that the client itself has told of, None until then.
        """
        ...

    def deploy(self, facts: Facts) -> tuple[Deployment, ...]:
        """What this start needs in files of the person or the project; best nothing. `down` takes it out again."""
        ...

    def read_state_file(self, text: str) -> StateFile | None:
        """Parse one state file; None if it is not one (half written, other version)."""
        ...

    def read_title(self, title: str) -> Reading:
        """What the pane title says."""
        ...

    def read_screen(self, screen: Screen) -> Reading:
        """What the screen says: bottom-anchored, dialogs by their shape, never one substring anywhere."""
        ...

    def read_transcript(self, head: str, tail: str) -> Turns:
        """What the first and last bytes (whole lines) of the transcript say."""
        ...

    def count_usage(self, tally: Tally, lines: str) -> Tally:
        """The count of a session's tokens after more whole lines of its file; as it was, where files tell nothing."""
        ...

    def answer(self, dialog: Dialog, policy: Dialogs) -> tuple[str, ...] | None:
        """The tmux key names that answer this dialog as the policy says; None: a person must."""
        ...

    def pick(self, dialog: Dialog, index: int) -> tuple[str, ...] | None:
        """The tmux key names that choose the option with this index; None: it can't be told how."""
        ...

    def read_exit(self, code: int | None, signal: int | None, lines: tuple[str, ...]) -> ExitKind:
        """Why the client ended, from its status and last screen lines (STOPPED is decided by the caller)."""
        ...

    def read_hook(self, text: str, at: float | None = None) -> HookNews | None:
        """Parse the payload of one hook event; None if it is not one. `at`: when it was written (wall seconds)."""
        ...

    def proofs(self, lines: str) -> tuple[str, ...]:
        """Ids of our messages that these transcript lines prove to have reached the model."""
        ...

    def skills_dir(self, facts: Facts) -> str | None:
        """The folder in which this client finds NAME/SKILL.md; None: it knows no skills.

        It lies below the agent's own folder; with `shared_skills` in the working directory, where `deploy` puts links.
        """
        ...

    def settings(self, facts: Facts) -> dict[str, Any]:
        """The client settings rendered for this agent (the content of settings.json)."""
        ...


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, without those after a dash, to be compared with others."""
    return tuple(int(part) for part in _NUMBER.findall(version.partition("-")[0]))


def able(driver: Driver, version: str | None) -> Capabilities:
    """What the client can do in this version; one whose version is not known is taken for a current one."""
    if version is None or not driver.since:
        return driver.capabilities
    missing = {name: False for name, first in driver.since.items() if numbers(version) < first}
    return replace(driver.capabilities, **missing)
