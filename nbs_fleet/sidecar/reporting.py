"""What the sidecar reports of its agent: all sources weighed, and what a person should know of it. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from nbs_fleet.model import AgentState, BlockedKind, Evidence, Moment
from nbs_fleet.sidecar import delivery, needy, notices
from nbs_fleet.sidecar.actions import Report
from nbs_fleet.sidecar.mind import Mind
from nbs_fleet.sidecar.states import ACCEPTS_INPUT
from nbs_fleet.sidecar.weigh import blocked_kind, detail, echoes, evidence, is_prompt, submitted, weigh

ANSWER_PAUSE = 3.0
"""Seconds before the same dialog may be answered again: a client redraws later than it reads a key."""

SUBMITTED = "a prompt was just submitted"
"""Why a client that looks idle is reported busy."""


def conclude(mind: Mind, now: Moment) -> tuple[Mind, tuple[Report, ...]]:
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
        return "native" if not means.keys_only and delivery.takes(mind.post, session=addressed(mind)) else "keys"
    return {True: "mail", False: "keys", None: None}[mind.post.armed]


def _session(mind: Mind) -> str | None:
    """The session the client says it is in: `/clear` begins another one."""
    if mind.file is not None and mind.file.session_id:
        return mind.file.session_id
    return mind.hook.session_id if mind.hook is not None else None


def addressed(mind: Mind) -> bool:
    """Whether it is known by the client's own word which session it is in."""
    return mind.watching.addressed or (mind.hook is not None and mind.hook.session_id is not None)


def _told(report: Report) -> Report:
    """What makes a report worth repeating: its evidence's times alone do not."""
    return replace(report, evidence=tuple(Evidence(e.source, e.says, 0.0) for e in report.evidence))
