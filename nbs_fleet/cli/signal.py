"""`nbs-fleet signal`: an agent says of itself that it is done, needs a person, or goes on."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

import msgspec
import typer

from nbs_fleet import jsontext
from nbs_fleet.cli import output
from nbs_fleet.cli.guard import speaker
from nbs_fleet.cli.lookup import find_handle, find_team
from nbs_fleet.cli.params import TeamName
from nbs_fleet.errors import FleetError, UsageError
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.model import PERSON
from nbs_fleet.sidecar import wording

KINDS = ("complete", "escalate", "continue")
RIGHT = (
    "right are: nbs-fleet signal complete, nbs-fleet signal escalate MESSAGE, nbs-fleet signal continue, "
    'or nbs-fleet signal \'{"kind": "complete", "message": "..."}\''
)

Kind = Annotated[
    str,
    typer.Argument(metavar="SIGNAL", help="complete, escalate or continue; or one JSON object with kind and message"),
]
Words = Annotated[
    list[str] | None, typer.Argument(metavar="MESSAGE...", help="what to tell with it; -- ends the options")
]


def signal(kind: Kind, message: Words = None, *, team: TeamName = None) -> None:
    """Say how things stand, from inside an agent: complete (done), escalate (a person is needed), continue.

    For example:
        nbs-fleet signal complete
        nbs-fleet signal escalate which of the two schemas is right?
        nbs-fleet signal {"action":"continue"}
    """
    word, text = parse(kind, tuple(message or ()))
    found = find_team(team)
    who = speaker(found)
    if who == PERSON:
        raise FleetError(
            "signal is for agents: this shell is none (NBS_FLEET_RUN is not set)",
            hint="a person says it with nbs-fleet send HANDLE TEXT",
        )
    handle = find_handle(found, who)
    paths = found.paths.agent(handle)
    content = {"kind": word, "message": text, "at": time.time(), "handle": handle}
    try:
        os.makedirs(paths.dir, mode=0o700, exist_ok=True)
    except OSError as error:
        raise FleetError(f"can't make {paths.dir}: {error.strerror}") from error
    write_atomic(paths.signal, jsontext.encode(content) + b"\n", durable=True)
    output.say(f"signalled {word}")


def parse(kind: str, message: tuple[str, ...]) -> tuple[str, str]:
    """(signal, message) of the words, or of one JSON object; raises UsageError that lists what is right."""
    word, text = kind.strip(), " ".join(message)
    if word.startswith("{"):
        # A shell without quotes around the object breaks it up at its blanks.
        word, text = _object(" ".join((word, *message)))
    word = word.casefold()
    if word not in KINDS:
        raise UsageError(f'"{wording.summary(word, 60)}" is no signal', hint=RIGHT)
    text = wording.clean(text)[0].strip()
    wording.check_size(text)
    return word, text


def _object(text: str) -> tuple[str, str]:
    try:
        value = msgspec.json.decode(text, type=dict[str, Any])
    except jsontext.MALFORMED:
        raise UsageError("that is no JSON object", hint=RIGHT) from None
    unknown = sorted(set(value) - {"kind", "action", "message"})
    if unknown:
        raise UsageError(f'"{wording.summary(unknown[0], 60)}" does not belong into a signal', hint=RIGHT)
    named = [value[key] for key in ("kind", "action") if key in value]
    if len(named) != 1 or not isinstance(named[0], str):
        raise UsageError("a signal has one of kind and action, and it is a word", hint=RIGHT)
    message = value.get("message", "")
    if not isinstance(message, str):
        raise UsageError("the message of a signal is text", hint=RIGHT)
    return named[0].strip(), message
