"""The text of an agent's launch.sh: builds its environment and becomes its client, without ever quoting a secret."""

from __future__ import annotations

import re
from posixpath import basename

from nbs_fleet.drivers.base import PROMPT, Launch

GONE = 78
"""Exit status of launch.sh when a file or folder that it needs is gone (EX_CONFIG of sysexits.h)."""

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""What a POSIX shell accepts as a variable's name."""

SCRUBBED = frozenset(
    {
        # The tmux or screen that the caller sits in.
        *("TMUX", "TMUX_PANE", "STY", "WINDOW", "ZELLIJ", "ZELLIJ_PANE_ID", "ZELLIJ_SESSION_NAME"),
        # The caller's terminal: tmux gives an agent its own, with its own size and abilities.
        *("TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "TERMCAP", "COLUMNS", "LINES"),
        *("WINDOWID", "VTE_VERSION", "WT_SESSION", "WT_PROFILE_ID", "ITERM_SESSION_ID", "ITERM_PROFILE"),
        *("KITTY_WINDOW_ID", "KITTY_PID", "KITTY_LISTEN_ON", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID"),
        *("KONSOLE_VERSION", "GHOSTTY_RESOURCES_DIR", "INSIDE_EMACS"),
        # The caller's shell: these describe that one process.
        *("PWD", "OLDPWD", "SHLVL", "_"),
        # A session of Claude Code that the caller runs in. With CLAUDE_CODE_CHILD_SESSION a client
        # writes neither transcript nor state file (Claude Code 2.1.197, measured).
        *("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT"),
        *("CLAUDE_CODE_SSE_PORT", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "CLAUDE_EFFORT", "AI_AGENT"),
        # A session of another client that the caller runs in.
        *("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "GEMINI_CLI", "GEMINI_SESSION_ID"),
        *("QWEN_CODE", "OPENCODE", "OPENCODE_PID", "CURSOR_AGENT", "CURSOR_TRACE_ID", "AUGMENT_AGENT", "CLINE_ACTIVE"),
    }
)
"""Variables of the caller that no agent inherits."""

SCRUBBED_PREFIX = "NBS_"
"""Ours and the nbs tools': an agent gets its own, never its caller's."""

_HEAD = """\
#!/bin/sh
# Starts agent {handle} of team {team}. `nbs-fleet up` writes this file; changes made here are lost.

# Nothing of tmux's environment may reach the agent, so begin with an empty one. (`env -i` would do it too, at twice
# the time that all the rest here takes.) A line inside of a value may look like a variable: no harm is done.
# bash hands on functions, and names that it can't unset, so it gets an empty one first.
if [ -n "${{BASH_VERSION-}}" ] && [ "${{1-}}" != clean ]; then
    exec env -i PATH="$PATH" TERM="${{TERM-screen}}" TMUX_PANE="${{TMUX_PANE-}}" /bin/sh "$0" clean
fi
NBS_PANE=${{TMUX_PANE-}}
nbs_all=$(export -p)
set -f
IFS='
'
for nbs_name in $nbs_all; do
    nbs_name=${{nbs_name%%=*}}
    nbs_name=${{nbs_name##* }}
    case $nbs_name in
    PATH | TERM | PWD) ;;
    *) command unset "$nbs_name" ;;
    esac
done 2>/dev/null
unset IFS nbs_all nbs_name
set +f
TERM=${{TERM-screen}}
export PATH TERM
umask {umask:03o}

refuse() {{
    printf '%s\\n' "nbs-fleet: $2" >&2
    # tmux loses the last words of a pane that dies among many starts, unless it had time to read them.
    command -p sleep 0.1
    exit "$1"
}}

cd {dir} 2>/dev/null || refuse {gone} {dir_gone}
"""

_PROMPT = """
# $(...) drops newlines at the end; the x keeps them. Read before the agent's locale is set: bytes are bytes here.
[ -r {path} ] || refuse {gone} {message}
nbs_prompt=$(cat {path} && printf x) || refuse {gone} {message}
nbs_prompt=${{nbs_prompt%x}}
"""

_VALUES = """
# The environment's values lie in a file of their own that only its owner can read.
[ -r {values} ] || refuse {gone} 'environment values are gone; run nbs-fleet up again'
. {values}
"""

_TAIL = """
# 127: there is no such program; 126: it is there, but can't be run. PATH decides, unless the name holds a slash.
try() {
    if [ -f "$1" ] && [ -x "$1" ]; then
        nbs_found=0
    elif [ -f "$1" ]; then
        nbs_found=126
    fi
}
nbs_found=127
case $1 in
*/*)
    if [ -e "$1" ]; then nbs_found=126; fi
    try "$1"
    ;;
*)
    set -f
    IFS=:
    for nbs_place in $PATH; do
        try "${nbs_place:-.}/$1"
        if [ "$nbs_found" = 0 ]; then break; fi
    done
    unset IFS nbs_place
    set +f
    ;;
esac
case $nbs_found in
127) refuse 127 "program not found: $1" ;;
126) refuse 126 "not executable: $1" ;;
esac
unset nbs_found
exec "$@"
"""


def quote(text: str) -> str:
    """`text` as one word of a POSIX shell, in single quotes, whatever it holds but NUL."""
    if "\0" in text:
        raise ValueError("a NUL can't be part of a shell word")
    return "'" + text.replace("'", "'\\''") + "'"


def launch_script(
    *,
    handle: str,
    team: str,
    root: str,
    launch: Launch,
    values_path: str,
    prompt_path: str | None,
    dir: str,  # noqa: A002  # the team file's own word
    run: str,
    bin: str,  # noqa: A002  # as RunPaths names it
    umask: int = 0o022,
) -> str:
    """Render launch.sh; write it 0700, encoded as UTF-8 with surrogateescape.

    It ends as the client itself (`exec`), or with 127 (`nbs-fleet: program not found: NAME`),
    126 (`nbs-fleet: not executable: NAME`) or GONE when the working directory, the values or the prompt is gone.
    ValueError: a NUL in a word, a variable's name that no shell takes, an empty argv, a prompt mark without prompt.
    """
    if not launch.argv or launch.argv[0] in ("", PROMPT):
        raise ValueError(f"{handle}: a launch needs a program")
    ours = {"NBS_HANDLE": handle, "NBS_ROOT": root, "NBS_TEAM": team, "NBS_FLEET_RUN": run}
    parts = [
        _HEAD.format(
            handle=_comment(handle),
            team=_comment(team),
            umask=umask,
            dir=quote(dir),
            gone=GONE,
            dir_gone=quote(f"working directory is gone: {dir}"),
        )
    ]
    if prompt_path is not None:
        message = quote(f"{basename(prompt_path)} is gone; run nbs-fleet up again")
        parts.append(_PROMPT.format(path=quote(prompt_path), gone=GONE, message=message))
    parts += [
        _argv(launch.argv, has_prompt=prompt_path is not None),
        _VALUES.format(values=quote(values_path), gone=GONE),
        "\n",
        *(f"export {_name(name)}={quote(value)}\n" for name, value in (launch.env | ours).items()),
        f'PATH={quote(bin)}"${{PATH:+:$PATH}}"\nexport NBS_PANE PATH\n',
        *(f"unset {_name(name)}\n" for name in ("OLDPWD", *launch.unset)),
        _TAIL,
    ]
    return "".join(parts)


def _argv(argv: tuple[str, ...], *, has_prompt: bool) -> str:
    """The lines that put the client's argv into the shell's own `$@`, where sourcing the values can't change it."""
    words = [_word(word, has_prompt=has_prompt) for word in argv]
    lines = "".join(f" \\\n    {word}" for word in words)
    return f"\nset --{lines}\n" + ("unset nbs_prompt\n" if has_prompt else "")


def _word(text: str, *, has_prompt: bool) -> str:
    """One word of argv, the prompt mark replaced by the variable that holds the prompt."""
    pieces = text.split(PROMPT)
    if len(pieces) > 1 and not has_prompt:
        raise ValueError("argv asks for a prompt and there is none")
    quoted = [quote(piece) if piece or len(pieces) == 1 else "" for piece in pieces]
    return '"$nbs_prompt"'.join(quoted)


def _name(text: str) -> str:
    if not IDENTIFIER.fullmatch(text):
        raise ValueError(f"{text!r} can't be a variable's name")
    return text


def _comment(text: str) -> str:
    """`text` on one line."""
    return " ".join(text.split())
