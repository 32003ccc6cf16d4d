"""`nbs-fleet solo`: one agent with a sidecar in this terminal, without a team file."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from nbs_fleet.cli import output
from nbs_fleet.plan.solo import wish
from nbs_fleet.supervisor.solo import run

Words = Annotated[list[str], typer.Argument(metavar="-- CLIENT ARGS...", help="the client's command line")]
HandleName = Annotated[
    str | None, typer.Option("--handle", metavar="HANDLE", help="its handle; default: $NBS_HANDLE, else claude")
]
Root = Annotated[
    str | None, typer.Option("--root", metavar="DIR", help="the project; default: $NBS_ROOT, else this folder")
]
DriverName = Annotated[
    str | None, typer.Option("--driver", metavar="NAME", help="the client's driver; default: by the command's name")
]


def solo(words: Words, *, handle: HandleName = None, root: Root = None, driver: DriverName = None) -> int:
    """Run one client with a sidecar, here, and exit with the client's own exit code.

    It runs in a private tmux that this terminal (or tmux pane) shows. It watches the chats and the bus of the root,
    can be sent messages, and is not restarted. When it ends, or you detach, or the terminal closes, nothing is left.

    The variables of nbs-claude are honoured: NBS_HANDLE, NBS_ROOT, NBS_MODEL, NBS_CONTINUE_SESSION,
    NBS_INITIAL_PROMPT, NBS_POLL_DISABLE, and those of the sidecar. No permission is skipped unless you say so.

    For example:
        nbs-fleet solo -- claude
        nbs-fleet solo --handle ana -- claude --model opus
        nbs-fleet solo -- nbs-fleet sim
    """
    wished = wish(tuple(words), os.environ, handle=handle, root=root, driver=driver)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not terminal:
        output.note(
            f"no terminal to show it in; from another one: nbs-fleet attach {wished.handle} --team {wished.team}"
        )
    sys.stdout.flush()
    outcome = run(wished, os.environ, terminal=terminal)
    if outcome.code and outcome.end is not None:
        output.note(f"{wished.handle}: {outcome.end.explain()}")
    return outcome.code
