"""The entry point: a table of commands, each imported only when it is run, and one door for errors."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from nbs_fleet import __version__
from nbs_fleet.cli import output
from nbs_fleet.errors import FleetError, UsageError

INTERRUPTED = 130
GARBAGE = 50_000
"""New objects after which Python looks for garbage. A short command makes next to none, and to look through all that it
imports, each 700 of them, takes a twentieth of its time."""
PROGRAM = "nbs-fleet"
COMPLETE = "_NBS_FLEET_COMPLETE"
"""The variable in which the shell's completion script asks for words, as typer's scripts do it."""


class Entry(NamedTuple):
    """One command: where its function is, what it does in a line; `raw`: it parses itself."""

    target: str
    summary: str
    raw: bool = False


COMMANDS: dict[str, Entry] = {
    "up": Entry("nbs_fleet.cli.up:up", "make it so: start, restart and stop agents as the file says"),
    "cleanup": Entry("nbs_fleet.cli.cleanup:cleanup", "take out of your files what a team has left there"),
    "deploy": Entry("nbs_fleet.cli.deploy:deploy", "put what the clients need into your files, ahead of up"),
    "down": Entry("nbs_fleet.cli.down:down", "stop the team and leave nothing behind"),
    "ps": Entry("nbs_fleet.cli.ps:ps", "one row per agent: state, since when, what waits"),
    "top": Entry("nbs_fleet.top.command:top", "all of it on one screen, here or in a browser"),
    "attach": Entry("nbs_fleet.cli.attach:attach", "go to an agent's pane"),
    "logs": Entry("nbs_fleet.cli.logs:logs", "what happened, for people"),
    "peek": Entry("nbs_fleet.cli.peek:peek", "an agent's screen, or its last capture"),
    "why": Entry("nbs_fleet.cli.why:why", "why an agent is in its state: the evidence"),
    "queue": Entry("nbs_fleet.cli.queue:queue", "what waits for a person, the longest first"),
    "next": Entry("nbs_fleet.cli.next:next_", "go to the agent that has waited the longest"),
    "back": Entry("nbs_fleet.cli.next:back", "go back to where you were"),
    "skip": Entry("nbs_fleet.cli.queue:skip", "put an item of the queue behind all others"),
    "snooze": Entry("nbs_fleet.cli.queue:snooze", "do not show an item for a while"),
    "answer": Entry("nbs_fleet.cli.queue:answer", "answer a dialog by one of its options"),
    "approve": Entry("nbs_fleet.cli.queue:approve", "say yes to a dialog, this once"),
    "deny": Entry("nbs_fleet.cli.queue:deny", "say no to a dialog"),
    "restart": Entry("nbs_fleet.cli.control:restart", "restart agents; clears failed"),
    "stop": Entry("nbs_fleet.cli.control:stop", "stop agents until they are started again"),
    "start": Entry("nbs_fleet.cli.control:start", "start stopped agents"),
    "pause": Entry("nbs_fleet.cli.pause:pause", "leave agents in peace: no messages, notices or nudges"),
    "resume": Entry("nbs_fleet.cli.pause:resume", "end a pause"),
    "send": Entry("nbs_fleet.cli.send:send", "a directive for an agent; --wait until it is acknowledged"),
    "inbox list": Entry("nbs_fleet.cli.inbox:list_", "the messages that wait for an agent"),
    "inbox show": Entry("nbs_fleet.cli.inbox:show", "one message, whole"),
    "inbox archive": Entry("nbs_fleet.cli.inbox:archive", "mark messages as done"),
    "chat read": Entry("nbs_fleet.cli.chat:read", "print a chat: all, what is unread, the last ones"),
    "chat send": Entry("nbs_fleet.cli.chat:send", "post to a chat; @handle calls somebody"),
    "chat list": Entry("nbs_fleet.cli.chat:list_", "the chats, and how many messages are unread"),
    "chat create": Entry("nbs_fleet.cli.chat:create", "make an empty chat"),
    "chat participants": Entry("nbs_fleet.cli.chat:participants", "who has posted, and how often"),
    "chat search": Entry("nbs_fleet.cli.chat:search", "find messages, in archives too"),
    "chat count": Entry("nbs_fleet.cli.chat:count", "how many messages there are"),
    "bus check": Entry("nbs_fleet.cli.bus:check", "the pending events, most urgent first"),
    "bus read": Entry("nbs_fleet.cli.bus:read", "one event, as it is"),
    "bus publish": Entry("nbs_fleet.cli.bus:publish", "publish an event"),
    "bus ack": Entry("nbs_fleet.cli.bus:ack", "acknowledge events"),
    "bus status": Entry("nbs_fleet.cli.bus:status", "how many events are pending and processed"),
    "bus prune": Entry("nbs_fleet.cli.bus:prune", "remove the oldest processed events"),
    "control": Entry("nbs_fleet.cli.registry:control", "what a sidecar watches for its agent: list it, change it"),
    "signal": Entry("nbs_fleet.cli.signal:signal", "for agents: complete, escalate or continue"),
    "metrics": Entry("nbs_fleet.cli.metrics:metrics", "the team in numbers, as Prometheus reads them"),
    "ls": Entry("nbs_fleet.cli.ls:ls", "all of your teams, wherever they are"),
    "validate": Entry("nbs_fleet.cli.validate:validate", "check a team file; starts nothing"),
    "plan": Entry("nbs_fleet.cli.plan:plan", "what up would do; does nothing"),
    "config": Entry("nbs_fleet.cli.config:config", "the effective team file, each value with its origin"),
    "schema": Entry("nbs_fleet.cli.schema:schema", "the JSON schema of the team file, or of the test file"),
    "test": Entry("nbs_fleet.cli.test:play", "play test files: scripted teams with expectations, for CI"),
    "init": Entry("nbs_fleet.cli.init:init", "write a first team.yaml"),
    "replay": Entry("nbs_fleet.cli.replay:replay", "decide on a recorded story once more, and compare"),
    "doctor": Entry("nbs_fleet.cli.doctor:doctor", "what is missing on this machine, and how to mend it"),
    "completion": Entry("nbs_fleet.cli.completion:completion", "shell completion for bash, zsh or fish"),
    "solo": Entry("nbs_fleet.cli.solo:solo", "one agent with a sidecar in this terminal, without a team file"),
    "sim": Entry("nbs_fleet.sim:main", "the scripted client that stands in for a real one", raw=True),
}
ALIASES = {"status": "ps"}
QUICK: dict[tuple[str, ...], str] = {("ps", "--json"): "nbs_fleet.cli.rows:print_json"}
"""Whole command lines that programs run again and again, and the functions that answer them without a parser."""
PLAIN = {"up": "nbs_fleet.cli.bringing:plain"}
"""Commands whose plain lines a function of their own reads; it answers None to a line that needs the parser."""
GROUPS = {
    "inbox": "an agent's messages: list, show, archive",
    "chat": "the nbs tools' chats: read, send, list, search, ...",
    "bus": "the nbs tools' event bus: check, publish, ack, ...",
}
"""What the commands of two words that begin alike have in common."""
NBS_USAGE = 4
"""The exit code of a wrong command line in `chat` and `bus`, which keep the codes of the nbs tools."""


def main() -> None:
    """Run the command line of this process and exit with its code."""
    gc.set_threshold(GARBAGE)
    code = run(sys.argv[1:])
    # What is left ends with the process: Python would look through all of it once more for garbage.
    gc.freeze()
    sys.exit(code)


def run(argv: list[str]) -> int:
    """Run one command line; every error ends here. Returns the exit code."""
    if COMPLETE in os.environ:
        return _complete()
    try:
        code = dispatch(argv)
        sys.stdout.flush()
    except FleetError as error:
        output.error(error.message, error.hint)
        return NBS_USAGE if isinstance(error, UsageError) and argv[0] in ("chat", "bus") else error.exit_code
    except KeyboardInterrupt:
        output.error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`| head`); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        from nbs_fleet.cli.crash import report

        report(error, argv)
        return 1
    return code


def dispatch(argv: list[str]) -> int:
    """Find the command and run it. Raises what the command raises. Without typer, where no parser is needed."""
    if argv[:1] in (["--version"], ["-V"]):
        output.say(f"{PROGRAM} {__version__}")
        return 0
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    if (quick := QUICK.get(tuple(argv))) is not None:
        return load(quick)() or 0
    if argv and argv[0] in PLAIN and (code := load(PLAIN[argv[0]])(argv[1:])) is not None:
        return code
    entry = COMMANDS.get(argv[0]) if argv else None
    if entry is not None and entry.raw:
        return load(entry.target)(argv[1:]) or 0
    from nbs_fleet.cli.parsing import execute

    return execute(argv or ["--help"])


def load(target: str) -> Callable[..., int | None]:
    """Import the module of one command and return its function."""
    from importlib import import_module

    module, _, name = target.partition(":")
    function: Callable[..., int | None] = getattr(import_module(module), name)
    return function


def _complete() -> int:
    """A shell asks for words: it gets them, or nothing; never a message in the middle of a person's line."""
    try:
        from nbs_fleet.cli.parsing import complete

        return complete()
    except (Exception, KeyboardInterrupt):
        return 1
