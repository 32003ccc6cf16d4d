"""`nbs-fleet completion`: shell completion that knows commands, options, handles and teams."""

from __future__ import annotations

from typing import Annotated

from nbs_fleet.cli import output
from nbs_fleet.cli.params import Command, Field, arg

Shell = Annotated[str, arg("SHELL", "which shell", choices=("bash", "zsh", "fish"))]

SCRIPTS = {
    "bash": """\
_nbs_fleet() {
    local IFS=$'\\n'
    COMPREPLY=($(nbs-fleet __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _nbs_fleet nbs-fleet""",
    "zsh": """\
#compdef nbs-fleet
_nbs_fleet() {
    local -a found
    found=(${(f)"$(nbs-fleet __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ${#found} )); then compadd -- "${found[@]}"; else _files; fi
}
compdef _nbs_fleet nbs-fleet""",
    "fish": """\
function __nbs_fleet
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    nbs-fleet __complete $before[2..-1] "$last" 2>/dev/null
end
complete -c nbs-fleet -a '(__nbs_fleet)'""",
}
HINTS = {
    "bash": '# in ~/.bashrc: eval "$(nbs-fleet completion bash)"',
    "zsh": '# in ~/.zshrc, after compinit: eval "$(nbs-fleet completion zsh)"',
    "fish": "# once: nbs-fleet completion fish > ~/.config/fish/completions/nbs-fleet.fish",
}


def completion(shell: Shell) -> None:
    """Print the completion script of a shell; its first line says where it belongs.

    For example:
        nbs-fleet completion bash
    """
    lines = SCRIPTS[shell].split("\n")
    # zsh wants its #compdef mark on the first line.
    lines.insert(1 if lines[0].startswith("#compdef") else 0, HINTS[shell])
    output.say("\n".join(lines))


def complete(argv: list[str]) -> int:
    """Print what may stand in place of the last of these words, one per line; nothing: the shell offers files."""
    for word in candidates(argv or [""]):
        output.say(word)
    return 0


def candidates(words: list[str]) -> list[str]:
    """The words that fit where the last of `words` stands."""
    from nbs_fleet.cli.app import ALIASES, COMMANDS, load
    from nbs_fleet.cli.params import command

    *before, last = words
    line = " ".join(ALIASES.get(word, word) for word in before[:2])
    name = next((n for n in (line, line.partition(" ")[0]) if n in COMMANDS), None)
    if name is None:
        prefix = f"{line} " if line else ""
        names = {
            n[len(prefix) :].partition(" ")[0]
            for n, entry in COMMANDS.items()
            if entry.summary and n.startswith(prefix)
        }
        return sorted(n for n in names if n.startswith(last))
    if COMMANDS[name].raw:
        return []
    spec = command(name, load(COMMANDS[name]))
    return _for_command(spec, before[len(name.split()) :], last)


def _for_command(spec: Command, before: list[str], last: str) -> list[str]:
    flags = {flag: field for field in spec.fields for flag in field.param.flags}
    asked = flags.get(before[-1]) if before else None
    if asked is not None and asked.type is not bool:
        head, comma, last = last.rpartition(",") if asked.many else ("", "", last)
        return [head + comma + value for value in _values(asked) if value.startswith(last)]
    if last.startswith("-"):
        return sorted(flag for flag in [*flags, "--help"] if flag.startswith(last))
    given = sum(1 for word in before if not word.startswith("-"))
    places = [field for field in spec.fields if not field.param.flags]
    field = places[min(given, len(places) - 1)] if places and (given < len(places) or places[-1].many) else None
    return [value for value in _values(field) if value.startswith(last)] if field else []


def _values(field: Field) -> list[str]:
    if field.param.choices:
        return list(field.param.choices)
    from nbs_fleet.cli import lookup
    from nbs_fleet.errors import FleetError

    try:
        if field.param.complete == "handle":
            return list(lookup.handles_of(lookup.find_team()))
        if field.param.complete == "team":
            return sorted({found.team for found in lookup.teams()})
        if field.param.complete == "template":
            from nbs_fleet.cli.init import templates

            return list(templates())
    except FleetError:
        return []
    return []
