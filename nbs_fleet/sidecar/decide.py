"""The sidecar's policy: what an agent is doing, from all sources, and what to do about it. Pure."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from nbs_fleet.drivers.base import StateFile
from nbs_fleet.model import AgentState, BlockedKind, ErrorKind, Evidence, Failure, Moment
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
    Report,
    ScreenSeen,
    Settled,
    Signalled,
    StateFileSeen,
    Ticked,
    TitleSeen,
    TranscriptSeen,
    WaitingSeen,
)
from nbs_fleet.sidecar.mind import Mind
from nbs_fleet.sidecar.states import ACCEPTS_INPUT
from nbs_fleet.sidecar.weigh import (
    blocked_kind,
    command_lag,
    detail,
    echoes,
    evidence,
    is_prompt,
    settles_in,
    settling,
    submitted,
    weigh,
)
from nbs_fleet.sidecar.wording import NOTICE_SKILL

ANSWER_LIMIT = 3
"""Times one and the same dialog is answered before it is left to a person."""

ANSWER_PAUSE = 3.0
"""Seconds before the same dialog may be answered again: a client redraws later than it reads a key."""

HOOK_SECONDS = 12.0
"""A dialog that a hook answers by policy is left to it for so long: more than the client waits for its hook."""

HOOKED = (BlockedKind.PLAN, BlockedKind.PERMISSION)
"""The dialogs that hooks answer, where the client lets them."""

SUBMITTED = "a prompt was just submitted"
"""Why a client that looks idle is reported busy."""

Step = tuple[Mind, tuple[Action, ...]]


def decide(mind: Mind, event: Event, now: Moment) -> Step:
    """Return what is known after `event`, and the actions to perform, in order."""
    before = mind.report.state
    if isinstance(event, delivery.Counted | Faulted):
        mind = replace(mind, noticing=False)
    mind, actions = _take(mind, event, now)
    if any(isinstance(a, Look) for a in actions):
        mind = replace(mind, looking=True, looking_at=now.wall)
    mind, told = _conclude(mind, now)
    mind, more = _act(mind, now)
    mind, late = _conclude(mind, now) if more else (mind, ())
    if mind.report.state is AgentState.BLOCKED and before is not AgentState.BLOCKED:
        # A person who is asked wants to know what the agent said before.
        late = (*late, ReadTranscript())
    return mind, (*actions, *told, *more, *late)


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


def _conclude(mind: Mind, now: Moment) -> Step:
    """Weigh the sources; report if what follows differs from the last report."""
    if mind.file is None and not mind.screen_at:
        return mind, ()
    reading, source = weigh(mind)
    worked = mind.report.state is AgentState.BUSY and not mind.presumed
    acknowledged = mind.acknowledged or reading.state in (AgentState.BUSY, AgentState.COMPACTING)
    presumed = reading.state is AgentState.IDLE and submitted(mind, now) is not None
    if presumed:
        reading, source = replace(reading, state=AgentState.BUSY, detail=SUBMITTED), None
    mind = replace(mind, presumed=presumed)
    # The state file can't tell a client that nobody is logged in to from an idle one: the screen must have its say.
    looked = mind.screen_at > 0 and not mind.looking
    prompted = acknowledged or not mind.watching.expects_prompt
    # One that is given its prompt by keys may look busy while it begins.
    begun = mind.watching.capabilities.prompt or reading.state is AgentState.IDLE
    ready = mind.report.ready or (reading.state in ACCEPTS_INPUT and looked and prompted and begun)
    state = reading.state
    if state is AgentState.UNKNOWN and not ready and mind.report.state in (AgentState.STARTING, AgentState.BLOCKED):
        state = AgentState.STARTING
    if reading.blocked is BlockedKind.DRAFT and not (acknowledged or ready) and is_prompt(mind, now):
        state = AgentState.STARTING
    if state is AgentState.BLOCKED and _answers(mind, now):
        # Nobody is called to a dialog that is just being answered.
        return replace(mind, acknowledged=acknowledged), ()
    since = mind.report.since if mind.report.since and state is mind.report.state else now.wall
    report = Report(
        state=state,
        since=since,
        ready=ready,
        blocked=blocked_kind(mind, reading) if state is AgentState.BLOCKED else None,
        detail=detail(mind, reading, state),
        until=reading.until,
        evidence=evidence(mind, source),
        queued=len(mind.post.parcels),
        unread={u.chat: u.count for u in mind.waiting.unread if u.count},
        events=sum(number for _, number in mind.waiting.pending.types),
        rung=_rung(mind),
        attention=_attention(mind),
        signal=mind.signal,
        session_id=_session(mind),
        tries=mind.stuck.tries,
        signal_text=mind.signal_text,
        asking=needy.asking(mind) if state is AgentState.BLOCKED else None,
        failure=mind.failure,
        escalated=mind.stuck.escalated,
        words=needy.words(mind, state),
    )
    mind = replace(mind, acknowledged=acknowledged)
    if mind.file is not None and _begins(mind.report.state, state, worked=worked, presumed=presumed):
        # A new turn: what was signalled in an earlier one is over.
        mind, report = replace(mind, signal=None, signal_text=""), replace(report, signal=None, signal_text="")
    if _told(report) == _told(mind.report):
        return mind, ()
    return replace(mind, report=report), (report,)


def _begins(before: AgentState, state: AgentState, *, worked: bool, presumed: bool) -> bool:
    """Whether a turn begins: the client itself says that it works, and was idle or only presumed to work before."""
    if state is not AgentState.BUSY or presumed:
        return False
    return before is AgentState.IDLE or (before is AgentState.BUSY and not worked)


def _answers(mind: Mind, now: Moment) -> bool:
    """Whether the dialog on the screen is being answered by us, or was a moment ago and may just not be redrawn yet."""
    dialog = mind.screen.dialog
    mark = f"{dialog.kind}:{dialog.text}" if dialog is not None else ""
    if mark and mark == mind.asked:
        return True
    if not mark or not echoes(mind, mark):
        return False
    return mind.pressing or now.mono < mind.pressed_at + ANSWER_PAUSE


def _attention(mind: Mind) -> str | None:
    """Why a person should look, beside the state itself."""
    if mind.stuck.escalated:
        return mind.stuck.escalated
    if notices.stalled(mind.noticed, mind.waiting, mind.watching.notices):
        return "does not read what waits for it"
    held = [p for p in mind.post.parcels if p.held]
    more = f" and {len(held) - 1} more" if held[1:] else ""
    return f"message {held[0].message.id}{more}: {held[0].note}" if held else None


def _rung(mind: Mind) -> str | None:
    means = mind.post.means
    if not means.mail or means.keys_only:
        return "native" if not means.keys_only and delivery.takes(mind.post, session=_addressed(mind)) else "keys"
    return {True: "mail", False: "keys", None: None}[mind.post.armed]


def _session(mind: Mind) -> str | None:
    """The session the client says it is in: `/clear` begins another one."""
    if mind.file is not None and mind.file.session_id:
        return mind.file.session_id
    return mind.hook.session_id if mind.hook is not None else None


def _addressed(mind: Mind) -> bool:
    """Whether it is known by the client's own word which session it is in."""
    return mind.watching.addressed or (mind.hook is not None and mind.hook.session_id is not None)


def _told(report: Report) -> Report:
    """What makes a report worth repeating: its evidence's times alone do not."""
    return replace(report, evidence=tuple(Evidence(e.source, e.says, 0.0) for e in report.evidence))


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
        session=_addressed(mind),
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
