"""`nbs-fleet send`: a directive for an agent, into its queue; with --wait until its client acknowledged it."""

from __future__ import annotations

import re
import secrets
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer
from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.cli import output
from nbs_fleet.cli.guard import require_person, speaker
from nbs_fleet.cli.lookup import Found, find_handles, find_team
from nbs_fleet.cli.params import MINUTE, Handle, Json, TeamName, span, worded
from nbs_fleet.errors import UsageError
from nbs_fleet.launch.locks import holder
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.model import Delivered, Message, MessageKind, Outcome, Priority
from nbs_fleet.sidecar import wording
from nbs_fleet.spec.units import duration
from nbs_fleet.supervisor.store import read_record

POLL = 30.0
"""Seconds after which a look is taken anyway: some network file systems tell nothing of changes."""
PLACES = {
    "queue": "queued",
    "mail": "in its mail",
    "inbox": "in its inbox",
    "claimed": "taken by its client, not yet used",
}
"""Where a message lies, as people read it."""
_TYPE = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def _type(text: str) -> str:
    if not _TYPE.fullmatch(text):
        raise ValueError("is no type; write a word of small letters, digits and -")
    return text


Text = Annotated[
    list[str] | None,
    typer.Argument(metavar="TEXT...", help="what to say; - reads it from stdin, -- ends the options"),
]
Type = Annotated[str, typer.Option("--type", metavar="WORD", parser=worded(_type), help="what kind of directive it is")]
Urgency = Annotated[Priority, typer.Option("--priority", help="how much it matters")]
Wait = Annotated[bool, typer.Option("--wait", help="wait until the agent's client acknowledged it")]
Timeout = Annotated[float, typer.Option("--timeout", metavar="TIME", parser=span, help="how long --wait waits")]
Interrupt = Annotated[bool, typer.Option("--interrupt", help="break off what the agent is doing (a person's)")]
AsCommand = Annotated[bool, typer.Option("--command", help="type it as it is, like /compact (a person's)")]
Stdin = Annotated[bool, typer.Option("--stdin", help="read the text from stdin")]


class _Sent(Struct):
    """One message on its way, and how it ended."""

    message: Message
    box: Mailbox
    ended: Delivered | None = None


def send(
    handle: Handle,
    text: Text = None,
    *,
    type: Type = "message",  # noqa: A002  # the option's name
    priority: Urgency = Priority.NORMAL,
    wait: Wait = False,
    timeout: Timeout = MINUTE,
    interrupt: Interrupt = False,
    command: AsCommand = False,
    stdin: Stdin = False,
    json: Json = False,
    team: TeamName = None,
) -> int:
    """Send a directive to an agent; the handle of several copies stands for all of them.

    It is written to the agent's queue, also while the supervisor or the agent is down, and stays there until the
    agent's client acknowledged it. With --wait: exit 0 delivered, 1 failed, 124 not yet (it stays queued).

    For example:
        nbs-fleet send ana please review the last commit
        nbs-fleet send bo --type task --priority high --wait -- run the tests with -x
        nbs-fleet send ana --stdin
        nbs-fleet send ana --command /compact
    """
    found = find_team(team)
    handles = find_handles(found, [handle])
    if interrupt or command:
        require_person(found)
    said, remarks = wording.clean(_text(tuple(text or ()), stdin=stdin))
    said = said.rstrip("\n")
    _check(said, command=command, type=type)
    sender = speaker(found)
    kind = MessageKind.COMMAND if command else MessageKind.DIRECTIVE
    pattern = Message(
        "", "", sender, said, 0.0, kind=kind, type=type, priority=priority, interrupt=interrupt, remarks=remarks
    )
    sent: list[_Sent] = []
    # A message to all copies of an agent is for the others, if one of them sends it.
    for to in [h for h in handles if h != sender] or list(handles):
        message = _addressed(pattern, to)
        box = Mailbox(found.paths.agent(to))
        box.accept(message)
        sent.append(_Sent(message, box))
        if not json:
            output.say("queued ", message.id, f"  {to}" if len(handles) > 1 else "")
            sys.stdout.flush()
    for remark in remarks:
        output.note(remark)
    if holder(found.paths.lock) is None:
        output.note("the supervisor is not running; it is delivered when it runs again (nbs-fleet up FILE)")
    code = _wait(found, sent, timeout, json=json) if wait else 0
    if json:
        output.json({"team": found.team, "messages": [_facts(s) for s in sent]})
    return code


def _addressed(pattern: Message, to: str) -> Message:
    """The message for one agent, under an id of its own."""
    now = time.time()
    return replace(pattern, id=new_id(pattern.kind, now, secrets.randbits(64)), to=to, created=now)


def _text(words: tuple[str, ...], *, stdin: bool) -> str:
    if stdin and words and words != ("-",):
        raise UsageError("the text comes from stdin or from the command line, not from both")
    if not stdin and words != ("-",):
        return " ".join(words)
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError("there is no stdin to read the text from")
    # Longer than any message may be, so that what is too long is seen to be.
    return sys.stdin.buffer.read(wording.LIMIT * 2).decode("utf-8", "surrogateescape")


def _check(text: str, *, command: bool, type: str) -> None:  # noqa: A002
    if not text.strip():
        raise UsageError("there is no text to send", hint="nbs-fleet send HANDLE TEXT..., or --stdin")
    wording.check_size(text)
    if command:
        wording.check_command(text)
        if type != "message":
            raise UsageError("a command is typed as it is: it has no --type")


def _wait(found: Found, sent: list[_Sent], timeout: float, *, json: bool) -> int:
    """Wait for the end of each message; the exit code."""
    import asyncio

    began = time.monotonic()

    def look() -> bool:
        for one in sent:
            if one.ended is None and isinstance(ended := one.box.find(one.message.id), Delivered):
                one.ended = ended
                if not json:
                    _tell(one, time.monotonic() - began)
        return all(one.ended for one in sent)

    asyncio.run(_until(look, [one.box.paths.archive for one in sent], timeout))
    late = [one for one in sent if one.ended is None]
    for one in late:
        parcel = one.box.find(one.message.id)
        where = "gone" if parcel is None or isinstance(parcel, Delivered) else PLACES[parcel.place]
        record = read_record(found.paths, one.message.to)
        state = f"; {one.message.to} is {record.state}" if record else ""
        output.note(f"{one.message.id} not acknowledged after {duration(timeout)}: {where}{state}; it is kept")
    if any(one.ended and one.ended.outcome is not Outcome.DELIVERED for one in sent):
        return 1
    return 124 if late else 0


async def _until(look: Callable[[], bool], folders: list[str], timeout: float) -> None:
    """Call `look` at each change in the folders until it is satisfied, or the time is over."""
    import asyncio
    from contextlib import suppress

    from nbs_fleet.launch.watch import Watcher

    changed = asyncio.Event()
    watcher = Watcher()
    end = time.monotonic() + timeout
    try:
        for folder in set(folders):
            watcher.add(folder, lambda _: changed.set())
        while not look() and (left := end - time.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, POLL)):
                    await changed.wait()
            changed.clear()
    finally:
        watcher.close()


def _tell(one: _Sent, took: float) -> None:
    ended = one.ended
    if ended is None:
        return
    if ended.outcome is Outcome.DELIVERED:
        output.say(
            output.Span("delivered", "green"), f" {one.message.id}  {one.message.to}, {ended.rung}, {took:.1f} s"
        )
    else:
        output.say(output.Span(str(ended.outcome), "red"), f" {one.message.id}  {one.message.to}: {ended.proof}")
    sys.stdout.flush()


def _facts(one: _Sent) -> dict[str, Any]:
    ended = one.ended
    return {
        "id": one.message.id,
        "to": one.message.to,
        "from": one.message.sender,
        "state": str(ended.outcome) if ended else "queued",
        "rung": ended.rung if ended else None,
        "proof": ended.proof if ended else None,
    }
