"""The sidecar's policy: what an agent is doing, from all sources, and what to do about it. Pure."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from nbs_fleet.drivers.base import StateFile
from nbs_fleet.model import AgentState, BlockedKind, ErrorKind, Failure, Moment
from nbs_fleet.sidecar import delivery, needy, notices, recovery
from nbs_fleet.sidecar.actions import (
    SETTLED,
    Action,
    Event,
    Faulted,
    Flickered,
    HookSeen,
    Look,
    Paused,
    Press,
    Pressed,
    ReadTranscript,
    ScreenSeen,
    Settled,
    Signalled,
    StateFileSeen,
    Ticked,
    TitleSeen,
    TranscriptSeen,
    WaitingSeen,
)
from nbs_fleet.sidecar.heeding import heed
from nbs_fleet.sidecar.mind import Mind
from nbs_fleet.sidecar.reporting import ANSWER_PAUSE, addressed, conclude
from nbs_fleet.sidecar.weigh import (
    command_lag,
    echoes,
    settles_in,
    settling,
    submitted,
)
from nbs_fleet.sidecar.wording import NOTICE_SKILL

ANSWER_LIMIT = 3
"""Times one and the same dialog is answered before it is left to a person."""

HOOK_SECONDS = 12.0
"""A dialog that a hook answers by policy is left to it for so long: more than the client waits for its hook."""

HOOKED = (BlockedKind.PLAN, BlockedKind.PERMISSION)
"""The dialogs that hooks answer, where the client lets them."""

Step = tuple[Mind, tuple[Action, ...]]


def decide(mind: Mind, event: Event, now: Moment) -> Step:
    """Return what is known after `event`, and the actions to perform, in order."""
    before = mind.report.state
    if isinstance(event, delivery.Counted | Faulted):
        mind = replace(mind, noticing=False)
    mind, actions = _take(mind, event, now)
    if any(isinstance(a, Look) for a in actions):
        mind = replace(mind, looking=True, looking_at=now.wall)
    mind, told = conclude(mind, now)
    mind, more = _act(mind, now)
    mind, late = conclude(mind, now) if more else (mind, ())
    # A person who is asked wants to know what the agent said before.
    asked = mind.report.state is AgentState.BLOCKED and before is not AgentState.BLOCKED
    said = (ReadTranscript(),) if asked else ()
    mind, heeded = heed(mind)
    return mind, (*actions, *told, *more, *late, *said, *heeded)


def _take(mind: Mind, event: Event, now: Moment) -> Step:
    match event:
        case StateFileSeen():
            return _state_file(mind, event, now)
        case TitleSeen():
            changed = event.reading.state is not mind.title.state
            mind = replace(mind, title=event.reading, title_at=now.wall)
            return _look(mind, wanted=changed and mind.file is None)
        case ScreenSeen():
            return _screen(mind, event, now)
        case TranscriptSeen():
            seen = mind.acknowledged or event.prompted
            return replace(mind, turns=event.turns, turns_at=now.wall, acknowledged=seen, size=event.size), ()
        case HookSeen():
            return _hook(mind, event, now)
        case Signalled() | Settled() | Paused() | WaitingSeen():
            return _word(mind, event), ()
        case Flickered():
            # A look that is on its way may yet show a dialog or a draft of before this change.
            blind = mind.file is None or mind.report.state is AgentState.BLOCKED or mind.looking
            return _look(mind, wanted=blind, also=() if mind.acknowledged else (ReadTranscript(),))
        case Pressed():
            return _look(replace(mind, pressing=False, fault=event.why), wanted=True)
        case Faulted():
            return replace(mind, looking=False, pressing=False, fault=event.what), ()
        case Ticked():
            # A dialog that was answered and does not go away is looked at again, and then shown to a person.
            overdue = bool(mind.answered) and 0.0 <= now.mono - mind.pressed_at - ANSWER_PAUSE < 1.0
            overdue |= (bool(mind.asked) and now.mono >= mind.asked_at + HOOK_SECONDS) or settles_in(mind, now) == 0.0
            said = mind.commanded is not None and now.mono >= mind.commanded + command_lag(mind)
            mind = replace(mind, commanded=None) if said else mind
            return _look(mind, wanted=event.poll or overdue, also=(ReadTranscript(),) if event.poll or said else ())
        case delivery.Typed():
            post, asked = delivery.receive(mind.post, event, now.mono)
            # What was in the way is news.
            refused = event.result in delivery.REFUSALS
            mind = replace(mind, commanded=now.mono) if event.result == "taken" else mind
            return _look(replace(mind, post=post), wanted=refused, also=asked)
        case (
            delivery.Counted()
            | delivery.ProbeTaken()
            | delivery.Proved()
            | delivery.Renewed()
            | delivery.Sought()
            | delivery.Handed()
        ):
            post, asked = delivery.receive(mind.post, event, now.mono)
            if isinstance(event, delivery.Proved) and not mind.watching.capabilities.hooks:
                mind = replace(mind, commanded=now.mono)  # its screen may not show it yet
            return replace(mind, post=post), asked
        case _:
            assert_never(event)


def _word(mind: Mind, event: Signalled | Settled | Paused | WaitingSeen) -> Mind:
    """Take in what was said or left for the agent; what follows from it is concluded afterwards."""
    match event:
        case Signalled():
            return replace(mind, signal=event.kind, signal_text=event.message[: needy.WORDS])
        case Settled():
            stuck = replace(mind.stuck, trigger=None, due=None, tries={}, escalated="")
            # A signal that says so itself may come first.
            kept = SETTLED if mind.signal == SETTLED else None
            return replace(mind, failure=None, signal=kept, signal_text="", stuck=stuck)
        case Paused():
            return replace(mind, paused=event.paused)
        case WaitingSeen():
            return replace(mind, waiting=event.waiting)


def _state_file(mind: Mind, event: StateFileSeen, now: Moment) -> Step:
    changed = _summary(mind.file) != _summary(event.file)
    # What only was read again is as old as it was.
    mind = replace(mind, file=event.file, file_at=now.wall if changed or not mind.file_at else mind.file_at)
    if event.file is not None and event.file.reading.state is AgentState.BUSY:
        mind = replace(mind, failure=None)
    ended = changed and event.file is not None and event.file.reading.state is AgentState.IDLE
    follow: tuple[Action, ...] = (ReadTranscript(),) if ended or (changed and not mind.acknowledged) else ()
    return _look(mind, wanted=changed, also=follow)


def _hook(mind: Mind, event: HookSeen, now: Moment) -> Step:
    """A hook's word; a subagent's says nothing of the agent itself."""
    post = mind.post
    acts: tuple[Action, ...] = ()
    for proved in event.proves:
        word = delivery.Proved(proved, f"hook {event.news.event}", final=not post.means.confirm)
        post, more = delivery.receive(post, word, now.mono)
        acts += more
    mind = replace(mind, post=post)
    if event.news.subagent:
        return mind, acts
    if event.news.answer in ("allow", "deny"):
        # The next one may look the same.
        mind = replace(mind, asked="")
    if not _repeats(mind, event):
        mind = replace(mind, hook=event.news, hook_at=event.at)
    if event.news.prompt is not None:
        mind = replace(mind, acknowledged=True, failure=None)
    if event.news.error is not None:
        reading = event.news.reading
        mind = replace(mind, failure=Failure(event.news.error, event.at, detail=reading.detail, until=reading.until))
    return _look(mind, wanted=mind.file is None or event.news.reading.state is AgentState.BLOCKED, also=acts)


def _repeats(mind: Mind, event: HookSeen) -> bool:
    """A notification of a dialog that a hook told of before; it knows less of it (Claude Code 2.1.197: 6 s later)."""
    blocked = event.news.event == "Notification" and event.news.reading.state is AgentState.BLOCKED
    return blocked and mind.hook is not None and mind.hook.reading.state is AgentState.BLOCKED


def _look(mind: Mind, *, wanted: bool, also: tuple[Action, ...] = ()) -> Step:
    """One look at a time; a wish for another during a look is remembered."""
    if not wanted:
        return mind, also
    if mind.looking:
        return replace(mind, look_again=True), also
    return mind, (*also, Look())


def _screen(mind: Mind, event: ScreenSeen, now: Moment) -> Step:
    again = mind.look_again
    at = mind.looking_at if mind.looking else now.wall
    mind = replace(mind, screen=event.reading, screen_at=at, looking=False, look_again=False)
    dialog = event.reading.dialog
    if dialog is None or event.answer is None:
        return _look(replace(mind, asked=""), wanted=again)
    mark = f"{dialog.kind}:{dialog.text}"
    if mind.watching.capabilities.permission_hook and dialog.kind in HOOKED:
        if mind.asked != mark:
            mind = replace(mind, asked=mark, asked_at=now.mono)
        if now.mono < mind.asked_at + HOOK_SECONDS:
            # A key on top of the hook's answer would end up in the input box.
            return _look(mind, wanted=again)
    too_soon = (mark in mind.answered or echoes(mind, mark)) and now.mono < mind.pressed_at + ANSWER_PAUSE
    if mind.pressing or too_soon or mind.answered.count(mark) >= ANSWER_LIMIT:
        return _look(mind, wanted=again)
    mind = replace(mind, pressing=True, pressed_at=now.mono, asked="", answered=(*mind.answered, mark)[-20:])
    return mind, (Press(event.answer, dialog.text),)


def _summary(file: StateFile | None) -> tuple[object, ...]:
    if file is None:
        return ()
    return (file.session_id, file.reading.state, file.reading.blocked)


def _skill_lost(mind: Mind, now: Moment) -> bool:
    """Whether the client did not know the skill that the last notice called."""
    told_at = now.wall - (now.mono - mind.noticed.last_at)
    return mind.turns.refused == NOTICE_SKILL and mind.turns.refused_at >= told_at


def _act(mind: Mind, now: Moment) -> Step:
    """Messages on their way and the remedies for being stuck; nothing while paused."""
    begun = submitted(mind, now) if mind.presumed else None
    if mind.paused:
        return replace(mind, wake_at=begun), ()
    report = mind.report
    view = delivery.View(
        report.state,
        ready=report.ready,
        draft=report.blocked is BlockedKind.DRAFT or delivery.is_left_behind(mind.post, mind.screen.draft),
        quiet=max(0.0, now.wall - report.since),
        session=addressed(mind),
    )
    post, sent = delivery.dispatch(mind.post, view, now.mono)
    stuck, remedies = recovery.recover(mind.stuck, _scene(mind, now), mind.watching.rules, now.mono)
    busy = bool(post.parcels) or mind.noticing
    desk = notices.Desk(report.state, report.ready, busy, mind.waiting, _skill_lost(mind, now))
    rules = mind.watching.notices
    noticed, notify = notices.notice(mind.noticed, desk, rules, now.mono)
    answered = mind.pressed_at + ANSWER_PAUSE if mind.answered else None
    asked = mind.asked_at + HOOK_SECONDS if mind.asked else None
    wakes = (
        delivery.wake(post, view, now.mono),
        stuck.due,
        notices.wake(noticed, desk, rules, now.mono),
        answered,
        asked,
        begun,
        settling(mind, now),
        None if mind.commanded is None else mind.commanded + command_lag(mind),
    )
    wake_at = min((at for at in wakes if at is not None and at > now.mono), default=None)
    noticing = mind.noticing or notify is not None
    mind = replace(mind, post=post, stuck=stuck, noticed=noticed, noticing=noticing, wake_at=wake_at)
    return mind, (*sent, *remedies, *((notify,) if notify is not None else ()))


def _scene(mind: Mind, now: Moment) -> recovery.Scene:
    failure = mind.failure
    until = None
    if failure is not None and failure.until is not None:
        until = now.mono + (failure.until - now.wall)
    error: ErrorKind | None = failure.kind if failure is not None else None
    return recovery.Scene(
        state=AgentState.IDLE if mind.presumed else mind.report.state,
        ready=mind.report.ready,
        size=mind.size,
        error=error,
        detail=failure.detail if failure is not None else mind.report.detail,
        until_mono=until,
        signalled=mind.signal in ("complete", "escalate", SETTLED),
        waiting=bool(mind.post.parcels),
    )
