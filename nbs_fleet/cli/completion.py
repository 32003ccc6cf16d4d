"""`nbs-fleet completion`: shell completion that knows commands, options, handles and teams."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from nbs_fleet.cli import output

Shell = Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish")]

HINTS = {
    "bash": '# in ~/.bashrc: eval "$(nbs-fleet completion bash)"',
    "zsh": '# in ~/.zshrc, after compinit: eval "$(nbs-fleet completion zsh)"',
    "fish": "# once: nbs-fleet completion fish > ~/.config/fish/completions/nbs-fleet.fish",
}


def completion(shell: Shell) -> None:
    """Print the completion script of a shell; its last line says where it belongs.

    For example:
        nbs-fleet completion bash
    """
    from nbs_fleet.cli.parsing import script

    output.say(script(shell))
    output.say(HINTS[shell])
