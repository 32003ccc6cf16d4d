"""`nbs-fleet bus`: the nbs tools' event bus for people and agents; output and exit codes as nbs-bus has them."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.params import Json, TeamName, offer_handles, worded
from nbs_fleet.cli.places import acting, agent_here, bus_folder, here
from nbs_fleet.errors import FleetError, UsageError
from nbs_fleet.model import Priority
from nbs_fleet.nbs.bus import Bus, EventMissingError
from nbs_fleet.nbs.bus_format import Event
from nbs_fleet.nbs.chat_format import to_text
from nbs_fleet.spec.units import seconds

DROPPED = 5
"""The exit code of an event that was dropped because one like it is pending."""


def _window(text: str) -> float:
    """Seconds of `300` (as nbs-bus takes it) or `5m`."""
    return float(text) if text.isascii() and text.isdigit() else worded(seconds)(text)


Folder = Annotated[str, typer.Argument(metavar="DIR", help="the events directory, mostly .nbs/events")]
Source = Annotated[
    str,
    typer.Argument(metavar="SOURCE", help="who publishes; an agent publishes as itself", autocompletion=offer_handles),
]
Type = Annotated[str, typer.Argument(metavar="TYPE", help="what happened, like task-complete")]
Urgency = Annotated[Priority, typer.Argument(metavar="PRIORITY", help="critical, high, normal or low")]
Payload = Annotated[
    list[str] | None,
    typer.Argument(metavar="PAYLOAD...", help="what to tell with it; beginning with @HANDLE it is for that agent"),
]
Window = Annotated[
    float | None,
    typer.Option(
        "--dedup-window", metavar="TIME", parser=_window, help="drop it if one like it is pending and no older"
    ),
]
Name = Annotated[str, typer.Argument(metavar="EVENT", help="the name of the event's file")]
Names = Annotated[list[str] | None, typer.Argument(metavar="EVENT...", help="the names of the events' files")]
By = Annotated[str | None, typer.Option("--handle", metavar="SOURCE", help="published by this source")]
To = Annotated[
    str | None, typer.Option("--to", metavar="HANDLE", help="addressed to this agent", autocompletion=offer_handles)
]
Every = Annotated[bool, typer.Option("--all", help="all pending events that fit; an agent's own, if it is one")]
Bytes = Annotated[
    int | None, typer.Option("--max-bytes", metavar="N", min=1, help="how much may stay; default: as configured")
]


def publish(
    folder: Folder,
    source: Source,
    type: Type,  # noqa: A002  # the word of the nbs tools
    priority: Urgency,
    payload: Payload = None,
    *,
    dedup_window: Window = None,
    team: TeamName = None,
) -> int:
    """Publish an event and print the name of its file; exit 5 if it was dropped as a duplicate.

    For example:
        nbs-fleet bus publish .nbs/events ana task-complete normal the parser is done
        nbs-fleet bus publish .nbs/events ana build-failed high --dedup-window 5m
    """
    place = here(team)
    who = acting(place, source)
    bus = Bus(bus_folder(place, folder))
    name = bus.publish(who, type, priority, " ".join(payload or ()), dedup_window=dedup_window)
    if name is None:
        output.note(f"Dedup: event {who}:{type} dropped (duplicate within window)")
        return DROPPED
    output.say(name)
    return 0


def check(folder: Folder, *, handle: By = None, to: To = None, json: Json = False, team: TeamName = None) -> int:
    """List the pending events, most urgent first.

    For example:
        nbs-fleet bus check .nbs/events
        nbs-fleet bus check .nbs/events --to ana
    """
    place = here(team)
    events = _pending(Bus(bus_folder(place, folder)), handle, to, place.roster)
    now = time.time()
    if json:
        output.json({"events": [_facts(event, now) for event in events]})
        return 0
    for event in events:
        output.say(f"[{event.priority}] {event.name} ({_age(now - event.at_us / 1e6)} ago)")
    return 0


def read(folder: Folder, event: Name, *, team: TeamName = None) -> int:
    """Print a pending event as it is.

    For example:
        nbs-fleet bus read .nbs/events 1777627800000000-ana-task-complete-4121.event
    """
    output.say(to_text(Bus(bus_folder(here(team), folder)).read(event)).removesuffix("\n"))
    return 0


def ack(
    folder: Folder,
    event: Names = None,
    *,
    every: Every = False,
    handle: By = None,
    to: To = None,
    team: TeamName = None,
) -> int:
    """Acknowledge events: they move to `processed/`. An agent acknowledges none that is addressed to another.

    For example:
        nbs-fleet bus ack .nbs/events 1777627800000000-ana-task-complete-4121.event
        nbs-fleet bus ack .nbs/events --all --to ana
    """
    if every == bool(event):
        raise UsageError("name the events, or give --all", hint="nbs-fleet bus check DIR lists them")
    if (handle or to) and not every:
        raise UsageError("--handle and --to go with --all")
    place = here(team)
    bus = Bus(bus_folder(place, folder))
    own = agent_here(place)
    if not every:
        for name in event or ():
            _check_own(bus, name, own)
        for name in event or ():
            bus.ack(name)
        return 0
    whose = acting(place, to) if own else to
    number = 0
    for one in _pending(bus, handle, whose, ()):
        try:
            bus.ack(one.name)
        except EventMissingError:
            continue
        number += 1
    output.say(f"Acknowledged {number} event{'' if number == 1 else 's'}")
    return 0


def prune(folder: Folder, *, max_bytes: Bytes = None, team: TeamName = None) -> int:
    """Remove the oldest processed events until they are small enough.

    For example:
        nbs-fleet bus prune .nbs/events
        nbs-fleet bus prune .nbs/events --max-bytes 1000000
    """
    done = Bus(bus_folder(here(team), folder)).prune(max_bytes)
    if not done.folder:
        output.say("Pruned 0 events (no processed directory)")
    elif not done.removed:
        output.say(f"Pruned 0 events ({done.left / 1024:.1f} KB / {done.limit / 1024:.1f} KB limit)")
    else:
        plural = "" if done.removed == 1 else "s"
        output.say(
            f"Pruned {done.removed} event{plural} "
            f"({done.left / 1024:.1f} KB remaining, {done.limit / 1024:.1f} KB limit)"
        )
    return 0


def status(folder: Folder, *, json: Json = False, team: TeamName = None) -> int:
    """Say how many events are pending, by priority, and how many are processed.

    For example:
        nbs-fleet bus status .nbs/events
    """
    found = Bus(bus_folder(here(team), folder)).status()
    numbers = {str(p): sum(1 for event in found.events if event.priority is p) for p in Priority}
    oldest = min((event.at_us for event in found.events), default=None)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(oldest / 1e6)) if oldest else None
    if json:
        output.json(
            {
                "pending": len(found.events),
                "by_priority": numbers,
                "oldest": at,
                "processed": found.processed,
                "processed_bytes": found.processed_bytes,
                "stale": found.stale,
            }
        )
        return 0
    details = f" ({', '.join(f'{name}={number}' for name, number in numbers.items())})" if found.events else ""
    output.say(f"Pending: {len(found.events)} total{details}")
    if at:
        output.say(f"Oldest pending: {at}")
    output.say(f"Processed: {found.processed} events ({found.processed_bytes / 1024:.1f} KB)")
    if found.stale:
        plural = "" if found.stale == 1 else "s"
        output.say(f"WARNING: {found.stale} stale event{plural} (unacked > {found.ack_timeout}s)")
    return 0


def _pending(bus: Bus, source: str | None, to: str | None, roster: tuple[str, ...]) -> list[Event]:
    """The pending events of a source and for an agent; with a roster, also those for the whole team."""
    found = bus.pending()
    for problem in found.problems:
        output.note(f"Warning: skipping {problem}")
    events = [event for event in found.events if source in (None, event.source)]
    return [event for event in events if to is None or event.concerns(to, roster)]


def _check_own(bus: Bus, name: str, own: str | None) -> None:
    if own is None:
        return
    whose = bus.event(name).addressee
    if whose not in (None, own):
        raise FleetError(f"{name} is for {whose}, not for {own}")


def _facts(event: Event, now: float) -> dict[str, Any]:
    return {
        "name": event.name,
        "source": event.source,
        "type": event.type,
        "priority": event.priority,
        "timestamp": event.timestamp,
        "age": round(now - event.at_us / 1e6, 3),
        "to": event.addressee,
        "payload": event.payload,
    }


def _age(seconds_ago: float) -> str:
    whole = max(0, int(seconds_ago))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"
