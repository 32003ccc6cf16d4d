"""`nbs-fleet chat`: the nbs tools' chats for people and agents; output and exit codes as nbs-chat has them."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated, Any

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.params import Json, TeamName, offer_handles, worded
from nbs_fleet.cli.places import acting, agent_here, chat_names, chat_path, here
from nbs_fleet.errors import FleetError, UsageError
from nbs_fleet.jsontext import seconds
from nbs_fleet.model import PERSON
from nbs_fleet.nbs.bridge import publish_message
from nbs_fleet.nbs.chat import Chat, ChatArgumentError, Hit
from nbs_fleet.nbs.chat_format import ChatMessage, to_text
from nbs_fleet.nbs.chat_select import Filters, moment
from nbs_fleet.nbs.files import NbsFileError, make_folder
from nbs_fleet.supervisor.status import iso

_STDIN_BYTES = 2 * 1024 * 1024


def offer_chats(context: typer.Context) -> list[str]:
    """The names of chats that a shell offers."""
    try:
        return list(chat_names(here(context.params.get("team"))))
    except FleetError:
        return []


def _time(text: str) -> int:
    return worded(lambda word: moment(word, time.time()))(text)


Name = Annotated[
    str, typer.Argument(metavar="CHAT", help="the name of a chat, or its file", autocompletion=offer_chats)
]
Sender = Annotated[
    str, typer.Argument(metavar="HANDLE", help="who posts; an agent posts as itself", autocompletion=offer_handles)
]
Text = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT...", help="what to say; - reads it from stdin, -- ends the options")
]
Unread = Annotated[bool, typer.Option("--unread", help="what is new; it counts as read once it is printed")]
As = Annotated[str | None, typer.Option("--as", metavar="HANDLE", help="whose --unread; an agent needs no --as")]
Last = Annotated[int | None, typer.Option("--last", metavar="N", min=0, help="the last N only")]
Since = Annotated[str | None, typer.Option("--since", metavar="HANDLE", help="after the last message of this handle")]
After = Annotated[
    int | None, typer.Option("--after", metavar="TIME", parser=_time, help="not before: 30s, 5m, 2h, 1d ago, or a date")
]
Before = Annotated[int | None, typer.Option("--before", metavar="TIME", parser=_time, help="not after this time")]
Offset = Annotated[int, typer.Option("--offset", metavar="N", min=0, help="without the newest N")]
Pattern = Annotated[str, typer.Argument(metavar="TEXT", help="what to look for; upper and lower case are the same")]
From = Annotated[str | None, typer.Option("--handle", metavar="HANDLE", help="posted by this handle")]
Archives = Annotated[bool, typer.Option("--include-archives", help="in the archives too, newest first")]


def create(chat: Name, *, team: TeamName = None) -> int:
    """Make an empty chat, in `.nbs/chat` if it is only named.

    For example:
        nbs-fleet chat create debug
        nbs-fleet chat create ./notes/side.chat
    """
    place = here(team)
    path = chat_path(place, chat)
    if os.sep not in chat:
        make_folder(os.path.dirname(path))
    made = Chat(path)
    made.create()
    output.say(f"Created: {made.path}")
    return 0


def send(chat: Name, handle: Sender, text: Text = None, *, team: TeamName = None) -> int:
    """Post to a chat; `@handle` in the text calls somebody, `@team` everybody on the team.

    For example:
        nbs-fleet chat send live ana the tests pass, @bo please review
        nbs-fleet chat send live ana -
    """
    place = here(team)
    if "[" in handle:
        raise ChatArgumentError(f"handle {handle!r} contains reserved character '['")
    who = acting(place, handle)
    said = _said(text)
    posted = Chat(chat_path(place, chat))
    sent = posted.send(who, said)
    if sent.archive:
        output.note(f"older messages moved to {sent.archive}")
    roster = place.roster or tuple(name for name, _ in posted.participants())
    for problem in publish_message(posted.path, who, said, roster):
        output.note(f"posted, but not on the bus: {problem}")
    return 0


def read(
    chat: Name,
    *,
    unread: Unread = False,
    last: Last = None,
    since: Since = None,
    after: After = None,
    before: Before = None,
    offset: Offset = 0,
    as_: As = None,
    json: Json = False,
    team: TeamName = None,
) -> int:
    """Print a chat: all of it, or what is new, or what the options leave.

    --unread stands alone: with another option it would count as read what was never shown.

    For example:
        nbs-fleet chat read live --unread
        nbs-fleet chat read live --last 20
        nbs-fleet chat read live --since ana --after 2h
    """
    place = here(team)
    filters = Filters(after or 0, before or 0, offset, last)
    if unread and (since or filters != Filters()):
        raise UsageError("--unread can't be combined: what the other option hides would count as read")
    if as_ and not unread:
        raise UsageError("--as says whose --unread is meant")
    reader = acting(place, as_) if unread else None
    opened = Chat(chat_path(place, chat))
    selection = opened.read(unread=reader, after_own=since, filters=filters)
    if json:
        facts = [_facts(selection.start + n, message) for n, message in enumerate(selection.messages)]
        output.json({"chat": opened.path, "skipped": selection.skipped, "messages": facts})
    else:
        for message in selection.messages:
            output.say(_line(message))
    sys.stdout.flush()
    _warn(selection.skipped)
    if reader is not None:
        opened.mark_read(reader, selection)
    return 0


def list_(*, json: Json = False, team: TeamName = None) -> int:
    """List the chats: messages, how many are unread by you, participants, the last message.

    For example:
        nbs-fleet chat list
    """
    place = here(team)
    who = agent_here(place) or PERSON
    rows = [_row(name, Chat(path), who) for name, path in chat_names(place).items()]
    if json:
        output.json({"root": place.root, "handle": who, "chats": rows})
        return 0
    if not rows:
        output.note("no chats yet; nbs-fleet chat create NAME makes one")
        return 0
    cells = [
        (r["name"], r["error"] or str(r["messages"]), str(r["unread"] or ""), str(r["participants"] or ""), r["path"])
        for r in rows
    ]
    output.table(cells, header=("CHAT", "MESSAGES", "UNREAD", "PARTICIPANTS", "FILE"), right=(1, 2, 3))
    return 0


def participants(chat: Name, *, json: Json = False, team: TeamName = None) -> int:
    """List who has posted to a chat, and how often.

    For example:
        nbs-fleet chat participants live
    """
    opened = Chat(chat_path(here(team), chat))
    found = opened.participants()
    if json:
        output.json({"chat": opened.path, "participants": [{"handle": h, "messages": n} for h, n in found]})
        return 0
    for handle, number in found:
        output.say(f"{handle:<24} {number} messages")
    return 0


def count(chat: Name, *, team: TeamName = None) -> int:
    """Print how many messages a chat has; a cursor one below that has read everything.

    For example:
        nbs-fleet chat count live
    """
    opened = Chat(chat_path(here(team), chat))
    output.say(str(opened.count()))
    _warn(opened.skipped())
    return 0


def search(
    chat: Name,
    pattern: Pattern,
    *,
    handle: From = None,
    after: After = None,
    before: Before = None,
    archives: Archives = False,
    json: Json = False,
    team: TeamName = None,
) -> int:
    """Find messages of a chat, each with its number.

    For example:
        nbs-fleet chat search live timeout
        nbs-fleet chat search live "" --handle ana --after 1d --include-archives
    """
    opened = Chat(chat_path(here(team), chat))
    hits = opened.search(pattern, handle=handle, filters=Filters(after or 0, before or 0), archives=archives)
    if json:
        facts = [{"archive": hit.archive, **_facts(hit.index, hit.message)} for hit in hits]
        output.json({"chat": opened.path, "messages": facts})
        return 0
    none = True
    for hit in hits:
        none = False
        output.say(_where(hit), _line(hit.message))
    if none:
        output.say("No matches found.")
    return 0


def _said(words: list[str] | None) -> str:
    if not words:
        raise UsageError("there is no text to post", hint="nbs-fleet chat send CHAT HANDLE TEXT..., or - for stdin")
    if words != ["-"]:
        return " ".join(words)
    data = sys.stdin.buffer.read(_STDIN_BYTES)
    return to_text(data).removesuffix("\n")


def _line(message: ChatMessage) -> str:
    if not message.at:
        return f"{message.handle}: {message.text}"
    return f"[{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(seconds(message.at)))}] {message.handle}: {message.text}"


def _where(hit: Hit) -> str:
    return f"[{hit.archive}] [{hit.index}] " if hit.archive else f"[{hit.index}] "


def _facts(index: int, message: ChatMessage) -> dict[str, Any]:
    at = iso(message.at) if message.at else None
    return {"index": index, "handle": message.handle, "at": at, "text": message.text}


def _row(name: str, chat: Chat, who: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "path": chat.path, "messages": None, "unread": None, "participants": None}
    try:
        row |= {"messages": chat.count(), "unread": chat.unread(who).count, "participants": len(chat.participants())}
    except NbsFileError as error:
        return row | {"error": "missing" if error.exit_code == 2 else error.message}
    return row | {"error": None}


def _warn(skipped: int) -> None:
    if skipped:
        output.note(f"warning: {skipped} message(s) skipped (decode failure)")
