"""What a person does from the dashboard: the commands of the command line, run as programs of their own."""

from __future__ import annotations

import asyncio
import os
import sys

from msgspec import Struct

from nbs_fleet.cli.lookup import Found


class Act(Struct, frozen=True):
    """One command: its words, what it reads on stdin, and what is said while it runs."""

    words: tuple[str, ...]
    said: str
    given: str | None = None


class Done(Struct, frozen=True):
    """How it ended: the exit code, and what it said in the end."""

    code: int
    said: str


def answer(item: str, choice: str, text: str) -> Act:
    """Answer an item of the queue by an option's key, with a text or without."""
    more = ("-m", text) if text else ()
    return Act(("answer", *more, "--", item, choice), f"answering {item}")


def skip(item: str) -> Act:
    """Put an item behind all others."""
    return Act(("skip", "--", item), f"skipping {item}")


def send(handle: str, text: str) -> Act:
    """Send a directive; its text travels on stdin."""
    return Act(("send", "--stdin", "--", handle), f"sending to {handle}", given=text)


def restart(handle: str) -> Act:
    """Restart an agent in the session it has."""
    return Act(("restart", "--", handle), f"restarting {handle}")


def pause(handle: str, *, paused: bool) -> Act:
    """Leave an agent in peace, or (`paused`: it is already) end that."""
    return Act(("resume" if paused else "pause", "--", handle), f"{'resuming' if paused else 'pausing'} {handle}")


def attach(handle: str) -> Act:
    """Go to an agent's pane."""
    return Act(("attach", "--", handle), f"attaching to {handle}")


def argv(found: Found, act: Act) -> list[str]:
    """The command line of an act: this very program, for this team."""
    verb, *rest = act.words
    file = found.file
    team = file if file and os.path.exists(file) else found.team
    return [sys.executable, "-I", "-m", "nbs_fleet", verb, "--team", team, *rest]


async def perform(found: Found, act: Act) -> Done:
    """Run it beside the dashboard; the commands bound their own time."""
    program = await asyncio.create_subprocess_exec(
        *argv(found, act),
        stdin=asyncio.subprocess.DEVNULL if act.given is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "NO_COLOR": "1"},
    )
    out, _ = await program.communicate(None if act.given is None else act.given.encode("utf-8", "surrogateescape"))
    lines = [line.strip() for line in out.decode("utf-8", "replace").splitlines() if line.strip()]
    return Done(program.returncode or 0, "\n".join(lines[-3:]))
