"""The sidecar's policy: what an agent is doing, from all sources, and what to do about it. Pure."""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.drivers.base import Capabilities, Reading, StateFile, Turns
from nbs_fleet.model import AgentState, BlockedKind, Evidence, Moment, Source
from nbs_fleet.sidecar.actions import (
    Action,
    Event,
    Faulted,
    Flickered,
    Look,
    Press,
    Pressed,
    ReadTranscript,
    Report,
    ScreenSeen,
    StateFileSeen,
    Ticked,
    TitleSeen,
    TranscriptSeen,
)
from nbs_fleet.sidecar.states import ACCEPTS_INPUT

ANSWER_LIMIT = 3
"""Times one and the same dialog is answered before it is left to a person."""

ANSWER_PAUSE = 3.0
"""Seconds before the same dialog may be answered again: a client redraws later than it reads a key."""

SILENT = Reading(AgentState.UNKNOWN)


class Watching(Struct, frozen=True):
    """What does not change during one run of a client."""

    capabilities: Capabilities
    expects_prompt: bool
    """A prompt was passed at this start and must be acknowledged."""


class Mind(Struct, frozen=True):
    """What a sidecar remembers of one run of a client."""

    watching: Watching
    file: StateFile | None = None
    file_at: float = 0.0
    title: Reading = SILENT
    title_at: float = 0.0
    screen: Reading = SILENT
    screen_at: float = 0.0
    turns: Turns = Turns()
    acknowledged: bool = False
    looking: bool = False
    look_again: bool = False
    pressing: bool = False
    pressed_at: float = 0.0
    answered: tuple[str, ...] = ()
    fault: str = ""
    report: Report = Report(AgentState.STARTING, 0.0, ready=False)


def decide(mind: Mind, event: Event, now: Moment) -> tuple[Mind, tuple[Action, ...]]:
    """Return what is known after `event`, and the actions to perform, in order."""
    mind, actions = _take(mind, event, now)
    if any(isinstance(a, Look) for a in actions):
        mind = replace(mind, looking=True)
    mind, more = _conclude(mind, now)
    return mind, (*actions, *more)


def _take(mind: Mind, event: Event, now: Moment) -> tuple[Mind, tuple[Action, ...]]:
    match event:
        case StateFileSeen():
            changed = _summary(mind.file) != _summary(event.file)
            mind = replace(mind, file=event.file, file_at=now.wall)
            follow: tuple[Action, ...] = (ReadTranscript(),) if changed and not mind.acknowledged else ()
            return _look(mind, wanted=changed, also=follow)
        case TitleSeen():
            changed = event.reading.state is not mind.title.state
            mind = replace(mind, title=event.reading, title_at=now.wall)
            return _look(mind, wanted=changed and mind.file is None)
        case ScreenSeen():
            return _screen(mind, event, now)
        case TranscriptSeen():
            seen = mind.acknowledged or event.turns.prompts > 0
            return replace(mind, turns=event.turns, acknowledged=seen), ()
        case Flickered():
            blind = mind.file is None or mind.report.state is AgentState.BLOCKED
            follow = () if mind.acknowledged else (ReadTranscript(),)
            return _look(mind, wanted=blind, also=follow)
        case Pressed():
            return _look(replace(mind, pressing=False, fault=event.why), wanted=True)
        case Faulted():
            return replace(mind, looking=False, pressing=False, fault=event.what), ()
        case Ticked():
            return _look(mind, wanted=True, also=(ReadTranscript(),))
        case _:
            assert_never(event)


def _look(mind: Mind, *, wanted: bool, also: tuple[Action, ...] = ()) -> tuple[Mind, tuple[Action, ...]]:
    """One look at a time; a wish for another during a look is remembered."""
    if not wanted:
        return mind, also
    if mind.looking:
        return replace(mind, look_again=True), also
    return mind, (*also, Look())


def _screen(mind: Mind, event: ScreenSeen, now: Moment) -> tuple[Mind, tuple[Action, ...]]:
    again = mind.look_again
    mind = replace(mind, screen=event.reading, screen_at=now.wall, looking=False, look_again=False)
    dialog = event.reading.dialog
    if dialog is None or event.answer is None:
        return _look(mind, wanted=again)
    mark = f"{dialog.kind}:{dialog.text}"
    too_soon = mark in mind.answered and now.mono < mind.pressed_at + ANSWER_PAUSE
    if mind.pressing or too_soon or mind.answered.count(mark) >= ANSWER_LIMIT:
        return _look(mind, wanted=again)
    mind = replace(mind, pressing=True, pressed_at=now.mono, answered=(*mind.answered, mark)[-20:])
    return mind, (Press(event.answer, dialog.text),)


def _summary(file: StateFile | None) -> tuple[object, ...]:
    if file is None:
        return ()
    return (file.session_id, file.reading.state, file.reading.blocked)


def _conclude(mind: Mind, now: Moment) -> tuple[Mind, tuple[Action, ...]]:
    """Weigh the sources; report if what follows differs from the last report."""
    if mind.file is None and not mind.screen_at:
        return mind, ()
    reading, source = weigh(mind)
    acknowledged = mind.acknowledged or reading.state in (AgentState.BUSY, AgentState.COMPACTING)
    # The state file can't tell a client that nobody is logged in to from an idle one: the screen must have its say.
    looked = mind.screen_at > 0 and not mind.looking
    prompted = acknowledged or not mind.watching.expects_prompt
    ready = mind.report.ready or (reading.state in ACCEPTS_INPUT and looked and prompted)
    state = reading.state
    if state is AgentState.UNKNOWN and not ready:
        state = AgentState.STARTING
    since = mind.report.since if mind.report.since and state is mind.report.state else now.wall
    report = Report(
        state=state,
        since=since,
        ready=ready,
        blocked=_kind(mind, reading) if state is AgentState.BLOCKED else None,
        detail=reading.detail or (mind.fault if state in (AgentState.UNKNOWN, AgentState.STARTING) else ""),
        until=reading.until,
        evidence=_evidence(mind, source),
    )
    mind = replace(mind, acknowledged=acknowledged)
    if _told(report) == _told(mind.report):
        return mind, ()
    return replace(mind, report=report), (report,)


def _told(report: Report) -> tuple[object, ...]:
    """What makes a report worth repeating: its evidence's times alone do not."""
    says = tuple((e.source, e.says) for e in report.evidence)
    return (report.state, report.since, report.ready, report.blocked, report.detail, report.until, says)


def weigh(mind: Mind) -> tuple[Reading, Source | None]:
    """The reading that counts, and the source it rests on.

    The client's own state file is the strongest, but it knows neither which dialog is open nor that nobody is
    logged in (Claude Code 2.1.197, measured): there the screen, if it is as fresh, completes it.
    """
    if mind.file is not None:
        fresh = mind.screen_at >= mind.file_at
        if fresh and mind.screen.state is AgentState.BLOCKED and mind.file.reading.state is not AgentState.BUSY:
            return mind.screen, Source.SCREEN
        return mind.file.reading, Source.STATE_FILE
    if mind.screen.state is AgentState.BLOCKED:
        return mind.screen, Source.SCREEN
    if mind.watching.capabilities.title and mind.title.state is AgentState.BUSY:
        return mind.title, Source.TITLE
    if mind.screen.state is not AgentState.UNKNOWN:
        return mind.screen, Source.SCREEN
    return SILENT, None


def _kind(mind: Mind, reading: Reading) -> BlockedKind | None:
    if mind.screen.state is AgentState.BLOCKED and mind.screen.blocked is not None:
        return mind.screen.blocked
    return reading.blocked


def _evidence(mind: Mind, strongest: Source | None) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    if mind.file is not None:
        at = mind.file.at or mind.file_at
        found.append(Evidence(Source.STATE_FILE, _words(mind.file.reading), at))
    if mind.title.state is not AgentState.UNKNOWN:
        found.append(Evidence(Source.TITLE, _words(mind.title), mind.title_at, mind.title.title or ""))
    if mind.turns.prompts:
        says = f"{mind.turns.prompts} prompts, {mind.turns.finished} turns ended"
        found.append(Evidence(Source.TRANSCRIPT, says, mind.file_at))
    if mind.screen_at:
        found.append(Evidence(Source.SCREEN, _words(mind.screen), mind.screen_at, mind.screen.detail))
    found.sort(key=lambda e: e.source is not strongest)
    return tuple(found)


def _words(reading: Reading) -> str:
    if reading.state is AgentState.BLOCKED and reading.blocked is not None:
        return f"blocked: {reading.blocked}"
    return "says nothing" if reading.state is AgentState.UNKNOWN else str(reading.state)
