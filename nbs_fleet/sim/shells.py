"""Commands in the background: what they print goes to a file, and the model is told of their end."""

from __future__ import annotations

import contextlib
import os
import shlex
from typing import TYPE_CHECKING, Any

from nbs_fleet.sim.front import Prompt, Shell
from nbs_fleet.sim.kernel import start
from nbs_fleet.sim.process import Child
from nbs_fleet.sim.tools import Result
from nbs_fleet.sim.turn import Turn

if TYPE_CHECKING:
    from nbs_fleet.sim.app import App
    from nbs_fleet.sim.session import Session

Json = dict[str, Any]


def run(turn: Turn, use_id: str, given: Json) -> Result:
    """The tool Bash with `run_in_background`: it answers at once."""
    name = "b" + os.urandom(4).hex()
    output = os.path.join(folder(turn.session), f"{name}.output")
    shell = Shell(name, use_id, str(given.get("description", "")), str(given.get("command", "")), output)
    turn.front.started_shell(shell)
    text = (
        f"Command running in background with ID: {name}. Output is being written to: {output}. You will be notified "
        "when it completes. To check interim output, use Read on that file path."
    )
    data = {
        "stdout": "",
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
        "backgroundTaskId": name,
    }
    return Result(text, "Running in the background (↓ to manage)", data)


def folder(session: Session) -> str:
    """Where the client keeps what background commands print (Claude Code 2.1.197)."""
    top = session.env.get("CLAUDE_CODE_TMPDIR") or "/tmp"  # noqa: S108 - the real client's own place
    return os.path.join(top, f"claude-{os.getuid()}", os.path.basename(session.folder), session.id, "tasks")


def begin(app: App, shell: Shell) -> None:
    """Start it, and tell the model when it has ended."""
    os.makedirs(os.path.dirname(shell.output), mode=0o700, exist_ok=True)
    script = f"exec > {shlex.quote(shell.output)} 2>&1; eval {shlex.quote(shell.command)}"
    child = Child(app.loop, ["/bin/bash", "-c", script], app.session.tool_env())
    app.outputs.append(shell.output)
    app.shells[shell.id] = {
        "id": shell.id,
        "type": "shell",
        "status": "running",
        "description": shell.description,
        "command": shell.command,
    }
    app.refresh()

    async def wait() -> None:
        code = await child.exit
        app.shells.pop(shell.id, None)
        if app.leaving:
            return
        app.refresh()
        summary, status = _ended(shell, code)
        text = (
            f"<task-notification>\n<task-id>{shell.id}</task-id>\n<tool-use-id>{shell.use_id}</tool-use-id>\n"
            f"<output-file>{shell.output}</output-file>\n<status>{status}</status>\n<summary>{summary}</summary>\n"
            "</task-notification>"
        )
        app.give(Prompt(text, kind="mail", shown=summary))

    start(wait())


def tidy(app: App) -> None:
    """Take the files away at the end; the real client leaves them."""
    for path in app.outputs:
        with contextlib.suppress(OSError):
            os.unlink(path)
            os.removedirs(os.path.dirname(path))


def _ended(shell: Shell, code: int) -> tuple[str, str]:
    head = f'Background command "{shell.description}"'
    return (
        (f"{head} completed (exit code 0)", "completed")
        if code == 0
        else (f"{head} failed with exit code {code}", "failed")
    )
