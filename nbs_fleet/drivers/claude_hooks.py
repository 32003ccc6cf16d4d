"""The hooks of a client of the Claude family: what its settings file says of them, and the policies they apply."""

from __future__ import annotations

from posixpath import join
from typing import Any, Literal

from nbs_fleet.drivers.base import Facts, numbers
from nbs_fleet.drivers.briefing import briefing_of
from nbs_fleet.drivers.dialect import BLOCK, REFUSE, Dialect, HookEvent, nested, nested_decision, policy_file, quoted
from nbs_fleet.drivers.recipes import TEXT
from nbs_fleet.spec.team import Agent

Kind = Literal["claude", "claudeless"]
Groups = dict[str, list[dict[str, Any]]]

EVENT_SECONDS = 10
"""Far more than a hook takes; a client waits for it."""
DRAIN_SECONDS = 30

_EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PermissionRequest", "Notification", "Stop", "StopFailure"),
    *("SubagentStop", "PreCompact", "SessionEnd"),
)
_TOOLS: dict[str, Literal["plan", "question"]] = {"ExitPlanMode": "plan", "AskUserQuestion": "question"}

CLAUDE = Dialect(
    name="claude",
    events=tuple(HookEvent(event, event) for event in (*_EVENTS, "PreToolUse", "PostToolUse")),
    context={event: nested() for event in ("PreToolUse", "PostToolUse", "UserPromptSubmit")},
    block=BLOCK,
    allow=nested_decision("allow"),
    deny=nested_decision("deny", message=True),
    refuse=REFUSE,
    tools=_TOOLS,
)
"""Claude Code 2.1.197, measured."""

CLAUDELESS = Dialect(
    name="claudeless",
    events=tuple(HookEvent(event, event) for event in ("SessionStart", "PreToolUse", "Stop", "Notification")),
    block={**BLOCK, "data": BLOCK},
    allow=nested_decision("allow"),
    deny=nested_decision("deny", message=True),
    refuse={"proceed": False, "error": TEXT},
    tools=_TOOLS,
    unit="ms",
)
"""claudeless 0.2.2 reads a held stop below `data`, and its own answer at PreToolUse (measured)."""

_SINCE: dict[str, tuple[int, ...]] = {"StopFailure": (2, 1, 78), "FileChanged": (2, 1, 83)}
"""The release that brought an event, by its change log. An unknown name opens a dialog at start (2.1.197, measured)."""

SUMMARY = "fleet mail"
MESSAGE = "Message from nbs-fleet:"

WAYS = 'a task notification named "fleet mail", or text that a hook adds'
"""In which shapes messages reach an agent of Claude Code."""

_APPENDS = ("--append-system-prompt", "--append-system-prompt-file")


def render(facts: Facts, *, dialect: Kind, with_tools: bool) -> Groups:
    """The `hooks` value of the settings file: ours, then those of the team file's `settings`.

    `with_tools` hooks the end of each tool call too, for handing messages over there (some ms per call).
    """
    ours = _claudeless(facts) if dialect == "claudeless" else _claude(facts, with_tools=with_tools)
    theirs = facts.agent.settings.get("hooks")
    return _joined(ours, theirs, one_entry=dialect == "claudeless") if isinstance(theirs, dict) else ours


def files(facts: Facts, dialect: Dialect) -> dict[str, str]:
    """The files that the hooks of one agent need: path -> text."""
    return policy_file(facts.agent, facts.agent_dir, dialect)


def briefing(agent: Agent, team: str) -> tuple[str, ...]:
    """The flag that tells an agent what fleet mail is; none where the team file brings a text of its own.

    Claude Code 2.1.197 takes only one of its two flags (read from its program).
    """
    if any(word.partition("=")[0] in _APPENDS for word in agent.args):
        return ()
    return ("--append-system-prompt", briefing_of(agent.handle, team, ways=WAYS))


def _claude(facts: Facts, *, with_tools: bool) -> Groups:
    hook = quoted(join(facts.run, "bin", "nbs-hook"))
    groups: Groups = {
        event: [{"hooks": [_command(f"{hook} {event}", EVENT_SECONDS)]}] for event in _EVENTS if _knows(facts, event)
    }
    if facts.agent.dialogs.question == "deny":
        entry = {"matcher": "AskUserQuestion", "hooks": [_command(f"{hook} PreToolUse", EVENT_SECONDS)]}
        groups["PreToolUse"] = [entry]
    if with_tools:
        groups["PostToolUse"] = [{"hooks": [_command(f"{hook} PostToolUse", EVENT_SECONDS)]}]
    if _knows(facts, "FileChanged"):
        # A matcher is a path to watch and, at once, must match the file's base name for its hooks to run: so one
        # group watches and runs nothing, the other runs for every watched file (2.1.197, measured).
        watch = {"matcher": join(facts.agent_dir, "mail"), "hooks": [{"type": "command", "command": "true"}]}
        groups["FileChanged"] = [watch, {"hooks": [_waking(f"{hook} drain")]}]
        groups["SessionStart"].append({"hooks": [_waking(f"{hook} sweep")]})
        groups["Notification"].append({"matcher": "idle_prompt", "hooks": [_waking(f"{hook} sweep")]})
    return groups


def _claudeless(facts: Facts) -> Groups:
    """One entry per event, no matcher, no timeout (it counts milliseconds); only these ever fire (0.2.2, measured)."""
    hook = quoted(join(facts.run, "bin", "nbs-hook"))
    events = ("SessionStart", "PreToolUse", "Stop", "Notification")
    return {event: [{"hooks": [{"type": "command", "command": f"{hook} {event}"}]}] for event in events}


def _command(command: str, seconds: int) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": seconds}


def _waking(command: str) -> dict[str, Any]:
    """A command in the background whose exit 2 starts a turn with what it wrote to stderr."""
    wake = {"asyncRewake": True, "rewakeMessage": MESSAGE, "rewakeSummary": SUMMARY}
    return {**_command(command, DRAIN_SECONDS), **wake}


def _knows(facts: Facts, event: str) -> bool:
    """Whether this version of the client has the event; one whose version is not known is taken for a current one."""
    since = _SINCE.get(event)
    if since is None or facts.version is None:
        return True
    return numbers(facts.version) >= since


def _joined(ours: Groups, theirs: dict[str, Any], *, one_entry: bool) -> Groups:
    """Both sets of hooks. `one_entry`: entries of one event and matcher become one, or the later replaces the other."""
    result: Groups = {event: list(groups) for event, groups in ours.items()}
    for event, groups in theirs.items():
        known = result.setdefault(event, [])
        for group in groups if isinstance(groups, list) else ():
            if not isinstance(group, dict):
                continue
            same = next((g for g in known if g.get("matcher") == group.get("matcher")), None) if one_entry else None
            if same is None:
                known.append(group)
            else:
                known[known.index(same)] = {**same, "hooks": [*same["hooks"], *group.get("hooks", [])]}
    return result
