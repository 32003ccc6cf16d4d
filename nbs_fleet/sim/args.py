"""The command line of the client: flags, their values, and the errors it gives for others (Claude Code 2.1.197)."""

from __future__ import annotations

from typing import NamedTuple

VERSION = "2.1.197"
MODES = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")

_SWITCHES = {
    "--dangerously-skip-permissions": "skip",
    "--allow-dangerously-skip-permissions": "allow_skip",
    "--fork-session": "fork",
    "--continue": "cont",
    "-c": "cont",
    "--version": "version",
    "-v": "version",
    "--help": "help",
    "-h": "help",
    "--print": "headless",
    "-p": "headless",
}
_VALUES = {
    "--session-id": "session_id",
    "--permission-mode": "permission_mode",
    "--model": "model",
    "--name": "name",
    "-n": "name",
    "--append-system-prompt": "system",
    "--scenario": "scenario",
}
_LISTS = {"--settings": "settings", "--plugin-dir": "plugin_dirs"}
_MANY = {"--add-dir": "add_dirs"}
_PLACEHOLDER = {
    "--session-id": "uuid",
    "--permission-mode": "mode",
    "--append-system-prompt": "prompt",
    "--settings": "file-or-json",
    "--plugin-dir": "path",
    "--add-dir": "directories...",
    "--scenario": "file",
    "-n": "name",
}
_LONG = {"-n": "-n, --name", "--name": "-n, --name"}
# Known to the real client and of no consequence here.
_IDLE_SWITCHES = {
    "--ax-screen-reader",
    "--brief",
    "--chrome",
    "--disable-slash-commands",
    "--ide",
    "--no-chrome",
    "--strict-mcp-config",
    "--verbose",
}
_IDLE_VALUES = {
    "--agent",
    "--agents",
    "--debug-file",
    "--effort",
    "--fallback-model",
    "--plugin-url",
    "--setting-sources",
    "--system-prompt",
}
_IDLE_MANY = {
    "--allowedTools",
    "--allowed-tools",
    "--betas",
    "--disallowedTools",
    "--disallowed-tools",
    "--file",
    "--mcp-config",
    "--tools",
}
_IDLE_OPTIONAL = {"--debug", "-d"}

HELP = """\
Usage: nbs-fleet sim [options] [prompt]

A scripted stand-in for Claude Code 2.1.197: the same screens, files, hooks and keys, no account, no network.

Options:
  --scenario <file>                     what it answers (TOML or JSON; also from CLAUDELESS_SCENARIO)
  --session-id <uuid>                   use this session ID
  -r, --resume [value]                  resume a conversation by session ID
  -c, --continue                        resume the most recent conversation of this directory
  --settings <file-or-json>             additional settings (repeatable)
  --permission-mode <mode>              acceptEdits, auto, bypassPermissions, default, dontAsk, plan
  --dangerously-skip-permissions        bypass all permission checks
  --allow-dangerously-skip-permissions  make bypassing available
  --model <model>, -n, --name <name>, --append-system-prompt <prompt>,
  --plugin-dir <path>, --add-dir <directories...>, --fork-session
  -v, --version, -h, --help

With no rule for a prompt, directives in the prompt script the reply: [[say X]] [[slow SECS TEXT]] [[wait SECS TEXT]]
[[bash CMD]] [[bg CMD]] [[tool NAME JSON]] [[saytool TEXT || NAME JSON]] [[plan TEXT]] [[err STATUS N]] [[usage N]]
[[streamerr TYPE]] [[stop REASON TEXT]]; one directive per reply. NBS_SIM_LOG=FILE keeps each request as a JSON line.
A scenario may also set nbs_fleet.startup = ["trust", "apikey", "mcp"]: dialogs shown unless the config answers them.
"""


class ArgsError(Exception):
    """What is wrong with the command line, as the client prints it; exit code 1."""


class Args(NamedTuple):
    """One start of the client. `resume` is "" for a bare --resume; `prompt` is the positional one."""

    prompt: str | None = None
    session_id: str | None = None
    resume: str | None = None
    cont: bool = False
    fork: bool = False
    settings: tuple[str, ...] = ()
    permission_mode: str | None = None
    skip: bool = False
    allow_skip: bool = False
    model: str | None = None
    name: str | None = None
    system: str | None = None
    plugin_dirs: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    scenario: str | None = None
    version: bool = False
    help: bool = False
    headless: bool = False


class _Reader:
    def __init__(self, argv: list[str]) -> None:
        self.rest = list(argv)
        self.found: dict[str, str | bool] = {}
        self.lists: dict[str, list[str]] = {}
        self.words: list[str] = []

    def value(self, flag: str, given: str | None) -> str:
        if given is not None:
            return given
        if not self.rest:
            name = _PLACEHOLDER.get(flag, flag.lstrip("-"))
            raise ArgsError(f"error: option '{_LONG.get(flag, flag)} <{name}>' argument missing")
        return self.rest.pop(0)

    def many(self, flag: str, given: str | None) -> list[str]:
        values = [self.value(flag, given)]
        while given is None and self.rest and not self.rest[0].startswith("-"):
            values.append(self.rest.pop(0))
        return values

    def optional(self, given: str | None) -> str:
        if given is not None:
            return given
        return self.rest.pop(0) if self.rest and not self.rest[0].startswith("-") else ""

    def flag(self, word: str) -> None:
        flag, equals, text = word.partition("=")
        given = text if equals else None
        if flag in _SWITCHES and given is None:
            self.found[_SWITCHES[flag]] = True
        elif flag in _VALUES:
            self.found[_VALUES[flag]] = self.value(flag, given)
        elif flag in _LISTS:
            self.lists.setdefault(_LISTS[flag], []).append(self.value(flag, given))
        elif flag in _MANY:
            self.lists.setdefault(_MANY[flag], []).extend(self.many(flag, given))
        elif flag in {"--resume", "-r"}:
            self.found["resume"] = self.optional(given)
        else:
            self.idle(flag, given, word)

    def idle(self, flag: str, given: str | None, word: str) -> None:
        if flag in _IDLE_VALUES:
            self.value(flag, given)
        elif flag in _IDLE_MANY:
            self.many(flag, given)
        elif flag in _IDLE_OPTIONAL:
            self.optional(given)
        elif flag not in _IDLE_SWITCHES or given is not None:
            raise ArgsError(f"error: unknown option '{word}'")


def parse(argv: list[str]) -> Args:
    """Read the command line (without the program's name). Raises ArgsError with the client's own wording."""
    reader = _Reader(argv)
    while reader.rest:
        word = reader.rest.pop(0)
        if word == "--":
            reader.words += reader.rest
            break
        if word.startswith("-") and word != "-":
            reader.flag(word)
        else:
            reader.words.append(word)
    mode = reader.found.get("permission_mode")
    if mode is not None and mode not in MODES:
        allowed = ", ".join(MODES)
        raise ArgsError(
            f"error: option '--permission-mode <mode>' argument '{mode}' is invalid. Allowed choices are {allowed}."
        )
    lists = {key: tuple(values) for key, values in reader.lists.items()}
    prompt = reader.words[0] if reader.words else None
    return Args(prompt=prompt, **reader.found, **lists)  # type: ignore[arg-type]
