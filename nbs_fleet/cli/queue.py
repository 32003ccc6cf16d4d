"""`nbs-fleet queue`, `skip`, `snooze`, `answer`, `approve` and `deny`: what waits for a person, and the answers."""

from __future__ import annotations

import secrets
import time
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from nbs_fleet.attention import budget, keeper, needs
from nbs_fleet.attention.queue import Item, Queue, reconcile
from nbs_fleet.cli import output, words
from nbs_fleet.cli.follow import follow
from nbs_fleet.cli.guard import require_person
from nbs_fleet.cli.lookup import Found, find_team
from nbs_fleet.cli.params import Json, TeamName, span
from nbs_fleet.errors import FleetError, UnknownNameError
from nbs_fleet.launch.locks import holder
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.model import PERSON, Message, MessageKind
from nbs_fleet.sidecar import wording
from nbs_fleet.sidecar.answering import APPROVE, DENY, TYPED, find
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.client import connection
from nbs_fleet.supervisor.protocol import Answer, Request
from nbs_fleet.supervisor.status import iso

TEAM = "team"
"""What stands where a handle would, for what concerns nobody in particular; no agent may be called so."""
ANSWER_SECONDS = 20.0
"""How long an answer may take: its dialog is watched until it is gone."""


def offer_items(context: typer.Context) -> list[str]:
    """The ids that a shell offers."""
    try:
        return [item.id for item in current(find_team(context.params.get("team"))).items]
    except FleetError:
        return []


Id = Annotated[str, typer.Argument(metavar="ID", help="the item, as `queue` names it", autocompletion=offer_items)]
MaybeId = Annotated[
    str | None,
    typer.Argument(metavar="[ID]", help="the item; default: the first one", autocompletion=offer_items),
]
Choice = Annotated[str, typer.Argument(metavar="CHOICE", help="an option's key, or its label or how that begins")]
Text = Annotated[
    str, typer.Option("-m", "--message", metavar="TEXT", help="the answer in words, or a message that goes with it")
]
Watching = Annotated[bool, typer.Option("--watch", "-w", help="show it again at each change, until Ctrl-C")]
Long = Annotated[float, typer.Argument(metavar="TIME", parser=span, help="how long it is not shown: 15m")]


def queue(*, json: Json = False, watch: Watching = False, team: TeamName = None) -> None:
    """Show what waits for a person, the longest first: one item per agent and reason.

    An item closes by itself when its agent moves on, whoever made it do so. What was skipped or snoozed is counted
    below and not shown; --json shows it too, with `hidden_until`.

    For example:
        nbs-fleet queue
        nbs-fleet queue --json
        nbs-fleet queue --watch
    """
    found = find_team(team)
    _show(found, json=json)
    if watch:
        follow(found, lambda change: change.queue is not None, lambda: _show(found, json=json), json=json)


def skip(item: MaybeId = None, *, team: TeamName = None) -> None:
    """Put an item behind all others; it is not shown for 30 s.

    For example:
        nbs-fleet skip
        nbs-fleet skip a7
    """
    found = find_team(team)
    require_person(found)
    wanted = item or _first(found).id
    _ask(found, Request("skip", item=wanted))
    output.say(f"{wanted} is skipped")


def snooze(item: Id, time_: Long = 900.0, *, team: TeamName = None) -> None:
    """Do not show an item for a while; it keeps its place.

    For example:
        nbs-fleet snooze a7
        nbs-fleet snooze a7 2h
    """
    found = find_team(team)
    require_person(found)
    _ask(found, Request("snooze", item=item, until=time.time() + time_))
    output.say(f"{item} is not shown for {words.span(time_)}")


def answer(item: Id, choice: Choice, *, message: Text = "", team: TeamName = None) -> None:
    """Answer a dialog by one of its options. It must still be the dialog of that item: else nothing is pressed.

    With -m and an option that takes a text, that is what is typed there; with any other option the text follows as
    a message to the agent.

    For example:
        nbs-fleet answer a7 1
        nbs-fleet answer a8 3 -m trio
        nbs-fleet answer a9 aiohttp
    """
    _answer(find_team(team), item, choice, message)


def approve(item: Id, *, message: Text = "", team: TeamName = None) -> None:
    """Say yes to a dialog, to this once and no more.

    For example:
        nbs-fleet approve a7
    """
    _answer(find_team(team), item, APPROVE, message)


def deny(item: Id, *, message: Text = "", team: TeamName = None) -> None:
    """Say no to a dialog. The text after -m follows as a message to the agent.

    For example:
        nbs-fleet deny a7
        nbs-fleet deny a7 -m later
    """
    _answer(find_team(team), item, DENY, message)


def current(found: Found) -> Queue:
    """The queue of a team as it is now; without a supervisor what is on disk, less what is over by the records."""
    kept = keeper.read(found.paths.attention) or Queue()
    if holder(found.paths.lock) is not None:
        return kept
    now = time.time()
    seen = {record.handle: needs.seen(record, now) for record in store.read_records(found.paths)}
    known = {item.id for item in kept.items}
    # What is used up stays used up while nobody counts.
    spent = {item.id for item in kept.items if item.need.kind == budget.KIND}
    left = {item.id for item in reconcile(kept, seen, now).items if item.id in known}
    return replace(kept, items=tuple(item for item in kept.items if item.id in left | spent))


def _answer(found: Found, item_id: str, choice: str, text: str) -> None:
    require_person(found)
    said, remarks = wording.clean(text)
    known = current(found).find(item_id)
    # Asked before: afterwards the item is gone.
    typed = known is not None and _is_typed(known, choice)
    _ask(found, Request("answer", item=item_id, choice=choice, text=said), seconds=ANSWER_SECONDS)
    output.say(f"{item_id} is answered")
    for remark in remarks:
        output.note(remark)
    if said.strip() and known is not None and known.handle and not typed:
        now = time.time()
        kind = MessageKind.DIRECTIVE
        message = Message(new_id(kind, now, secrets.randbits(64)), known.handle, PERSON, said, now)
        Mailbox(found.paths.agent(known.handle)).accept(message)
        output.say("queued ", message.id)


def _is_typed(item: Item, choice: str) -> bool:
    index = find(item.need.options, choice)
    return index is not None and bool(TYPED.match(item.need.options[index][1]))


def _first(found: Found) -> Item:
    waiting = current(found).visible(time.time())
    if not waiting:
        raise UnknownNameError("nothing waits for you")
    return waiting[0]


def _ask(found: Found, request: Request, *, seconds: float = 5.0) -> Answer:
    try:
        with connection(found.paths, timeout=seconds) as link:
            return link.ask(request)
    except OSError as error:
        raise FleetError(
            "the supervisor is not running, so nobody could carry that out",
            hint="nbs-fleet up FILE brings it back; nbs-fleet attach HANDLE works without it",
        ) from error


def _show(found: Found, *, json: bool) -> None:
    now = time.time()
    all_of_it = current(found)
    if json:
        output.json({"team": found.team, "items": [as_json(item, now) for item in all_of_it.items]})
        return
    waiting = all_of_it.visible(now)
    rows: list[list[output.Piece]] = [
        [item.id, item.handle or TEAM, item.need.kind, words.span(now - item.since), item.need.title]
        for item in waiting
    ]
    if rows:
        output.table(rows, header=("ID", "HANDLE", "REASON", "FOR", "WHAT"))
    hidden = len(all_of_it.items) - len(waiting)
    later = f"; {hidden} skipped or snoozed" if hidden else ""
    output.say(
        f"{len(waiting)} waiting{later}; nbs-fleet next goes there" if waiting else f"nothing waits for you{later}"
    )


def as_json(item: Item, now: float) -> dict[str, Any]:
    """One item of `queue --json`; the shape is documented and stable."""
    need = item.need
    return {
        "id": item.id,
        "handle": item.handle or None,
        "kind": need.kind,
        "since": iso(item.since),
        "title": need.title,
        "text": need.text,
        "options": [{"key": key, "label": label} for key, label in need.options],
        "context": need.context,
        "hidden_until": iso(item.hidden) if item.hidden > now else None,
    }
