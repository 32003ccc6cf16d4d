"""`nbs-fleet inbox`: an agent's messages: which wait, which have ended, and marking one as done."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from msgspec import Struct

from nbs_fleet.cli import output, words
from nbs_fleet.cli.guard import speaker
from nbs_fleet.cli.lookup import Found, find_handle, find_handles, find_team, handles_of, meant
from nbs_fleet.cli.params import Json, TeamName, offer_handles
from nbs_fleet.cli.send import PLACES
from nbs_fleet.errors import FleetError, UnknownNameError
from nbs_fleet.launch.messages import Mailbox, Parcel
from nbs_fleet.model import PERSON, Delivered, Message, Outcome
from nbs_fleet.sidecar.wording import summary
from nbs_fleet.supervisor.status import iso

RUNG = "inbox"
"""How a message got in that the agent itself marked as done."""

Whose = Annotated[
    str | None,
    typer.Argument(
        metavar="HANDLE", help="the agent; default: yourself, or for a person all", autocompletion=offer_handles
    ),
]
Number = Annotated[int, typer.Option("-n", metavar="N", min=0, help="this many of the last that ended")]
Id = Annotated[str, typer.Argument(metavar="ID", help="the message")]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="the messages")]
As = Annotated[
    str | None,
    typer.Option("--as", metavar="HANDLE", help="for this agent; an agent needs no --as", autocompletion=offer_handles),
]


class _Item(Struct, frozen=True):
    """One message in one agent's box; `place` is None once it has ended."""

    box: Mailbox
    message: Message
    place: str | None = None
    ended: Delivered | None = None


def list_(handle: Whose = None, *, n: Number = 10, json: Json = False, team: TeamName = None) -> None:
    """List the messages that wait for an agent, oldest first, and the last ones that have ended.

    For example:
        nbs-fleet inbox list
        nbs-fleet inbox list ana -n 50
        nbs-fleet inbox list --json
    """
    found = find_team(team)
    handles = find_handles(found, [handle]) if handle else _own(found)
    boxes = [Mailbox(found.paths.agent(h)) for h in handles]
    waiting = [_Item(box, p.message, place=p.place) for box in boxes for p in box.waiting()]
    ended = [_Item(box, e.message, ended=e) for box in boxes for e in box.archived(n)]
    ended = sorted(ended, key=lambda i: i.ended.at if i.ended else 0.0)[-n:] if n else []
    damaged = [f"{h}/{name}" for h, box in zip(handles, boxes, strict=True) for name in box.damaged()]
    if json:
        facts = {"waiting": [_facts(i) for i in waiting], "ended": [_facts(i) for i in ended], "damaged": damaged}
        output.json({"team": found.team, **facts})
        return
    now = time.time()
    rows = [_cells(item, now) for item in (*ended, *waiting)]
    if rows:
        output.table(rows, header=("ID", "TO", "FROM", "TYPE", "AGE", "STATE", "TEXT"), right=(4,))
    output.note(f"{len(waiting)} waiting" + (f"; damaged: {', '.join(damaged)}" if damaged else ""))


def show(message: Id, *, json: Json = False, team: TeamName = None) -> None:
    """Show one message whole: from whom, how it stands, its text.

    For example:
        nbs-fleet inbox show d-mhz8k3p2-x7k2q
    """
    found = find_team(team)
    item = _item(found, message, handles_of(found))
    if json:
        output.json({"team": found.team, **_facts(item)})
        return
    about = item.message
    output.say(
        f"{about.id}  {about.type if about.kind == 'directive' else about.kind} from {about.sender} to {about.to}, "
        f"{about.priority}, {words.moment(about.created, time.time())}"
    )
    output.say(_state(item), f": {item.ended.rung}, {item.ended.proof}" if item.ended else "")
    output.say()
    output.say(about.text)


def archive(message: Ids, *, as_: As = None, json: Json = False, team: TeamName = None) -> int:
    """Mark messages as done: an agent says that it has read them and will be told of them no more.

    A person may do it for an agent with --as; without, a person withdraws what the agent's client has not taken yet.

    For example:
        nbs-fleet inbox archive d-mhz8k3p2-x7k2q
        nbs-fleet inbox archive d-mhz8k3p2-x7k2q --as ana
    """
    found = find_team(team)
    who = speaker(found, find_handle(found, as_) if as_ else None)
    handles = handles_of(found)
    items = [_item(found, name, handles) for name in dict.fromkeys(message)]
    for item in items:
        if who not in (PERSON, item.message.to):
            raise FleetError(f"{item.message.id} is for {item.message.to}, not for {who}")
    told = [(item, _archive(item, who)) for item in items]
    if json:
        output.json({"team": found.team, "messages": [{"id": i.message.id, "did": did} for i, did in told]})
        return 0
    for item, did in told:
        output.say(f"{did} {item.message.id}")
    return 0


def _archive(item: _Item, who: str) -> str:
    """End one message; says what was done."""
    if item.ended:
        return f"already {item.ended.outcome}"
    at, identity = time.time(), item.message.id
    if who == PERSON:
        if not item.box.take_back(identity):
            raise FleetError(
                f"{item.message.to}'s client has taken {identity} already: it can't be withdrawn",
                hint=f"nbs-fleet inbox archive {identity} --as {item.message.to} marks it as done",
            )
        outcome, proof = Outcome.WITHDRAWN, "withdrawn by a person"
    else:
        outcome, proof = Outcome.DELIVERED, f"archived by {who}"
    done = item.box.finish(identity, outcome, RUNG, proof, at)
    return ("withdrawn" if who == PERSON else "archived") if done else "already archived"


def _own(found: Found) -> tuple[str, ...]:
    """Whose messages are meant where nobody is named: the caller's own, or for a person everybody's."""
    who = speaker(found)
    return handles_of(found) if who == PERSON else find_handles(found, [who])


def _item(found: Found, identity: str, handles: tuple[str, ...]) -> _Item:
    boxes = [Mailbox(found.paths.agent(h)) for h in handles]
    for box in boxes:
        match box.find(identity):
            case Parcel() as parcel:
                return _Item(box, parcel.message, place=parcel.place)
            case Delivered() as ended:
                return _Item(box, ended.message, ended=ended)
            case None:
                continue
    known = [p.message.id for box in boxes for p in box.waiting()]
    raise UnknownNameError(
        f'no message "{identity}" in {found.team}{meant(identity, known)}', hint="nbs-fleet inbox list shows them"
    )


def _state(item: _Item) -> output.Span:
    if item.ended:
        good = item.ended.outcome is Outcome.DELIVERED
        return output.Span(str(item.ended.outcome), "green" if good else "red")
    return output.Span(PLACES[item.place or "queue"], "yellow")


def _cells(item: _Item, now: float) -> list[output.Piece]:
    about = item.message
    kind = about.type if about.kind == "directive" else str(about.kind)
    urgent = "" if about.priority == "normal" else f" ({about.priority})"
    age = words.span(now - about.created)
    return [about.id, about.to, about.sender, f"{kind}{urgent}", age, _state(item), summary(about.text)]


def _facts(item: _Item) -> dict[str, Any]:
    about, ended = item.message, item.ended
    return {
        "id": about.id,
        "to": about.to,
        "from": about.sender,
        "kind": about.kind,
        "type": about.type,
        "priority": about.priority,
        "interrupt": about.interrupt,
        "created": iso(about.created),
        "place": item.place,
        "outcome": ended.outcome if ended else None,
        "at": iso(ended.at) if ended else None,
        "rung": ended.rung if ended else None,
        "proof": ended.proof if ended else None,
        "text": about.text,
    }
