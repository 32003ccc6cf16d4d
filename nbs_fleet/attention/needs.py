"""What each agent needs a person for, read from its record: the table behind the attention queue. Pure."""

from __future__ import annotations

from nbs_fleet.attention import remedies
from nbs_fleet.attention.queue import Need, Seen
from nbs_fleet.model import AgentState, Asking, BlockedKind, ExitKind, Source
from nbs_fleet.plan.types import AgentRecord, Desired

UNREAD_SECONDS = 5.0
"""After so long a dialog that can't be read is shown to a person as it is."""
DIALOGS = frozenset(kind.value for kind in BlockedKind)
MISSED = (ExitKind.CLEAN, ExitKind.STOPPED)
"""Ends that are no crash."""


def seen(record: AgentRecord, now: float) -> Seen:
    """What this agent needs a person for at wall second `now`."""
    if record.desired is Desired.STOPPED:
        return Seen()
    match record.state:
        case AgentState.UNKNOWN:
            # Nobody can say that it moved on.
            return Seen(_beside(record), keeps=None)
        case AgentState.STARTING:
            return Seen(keeps=frozenset({"crash"}))
        case AgentState.BLOCKED:
            return _blocked(record, now)
        case AgentState.LIMITED:
            return Seen((_limit(record), *_said(record)))
        case AgentState.BACKOFF:
            return Seen((_ended(record, "crash"),))
        case AgentState.FAILED:
            return Seen((_ended(record, "failed"),))
        case AgentState.STOPPED:
            return Seen()
        case _:
            return Seen(_beside(record))


def _blocked(record: AgentRecord, now: float) -> Seen:
    # Of the sources that say "blocked", only the dialog itself says for what.
    kind = record.asking.kind if record.asking is not None else record.blocked or BlockedKind.QUESTION.value
    if kind == BlockedKind.DRAFT.value:
        # Somebody is just typing there; messages that can't wait for it are shown by their own.
        return Seen(_said(record))
    if kind == BlockedKind.LOGIN.value or record.asking is not None or now >= record.since + UNREAD_SECONDS:
        return Seen((_dialog(record, kind), *_said(record)))
    return Seen(_said(record), keeps=DIALOGS)


def _dialog(record: AgentRecord, kind: str) -> Need:
    asking = record.asking or Asking(kind, "", "")
    told = [e.at for e in record.evidence if e.source is Source.STATE_FILE and e.says.startswith("blocked")]
    return Need(
        kind,
        since=min([record.since, *told]),
        title=record.detail or _last_line(asking.text) or f"{kind} dialog",
        text=asking.request or asking.text,
        options=(*asking.options, *remedies.options(kind)),
        context=record.words,
        mark=asking.mark,
    )


def _limit(record: AgentRecord) -> Need:
    title = record.detail or "a usage limit"
    return Need("limit", record.since, title, options=remedies.options("limit"), context=record.words)


def _ended(record: AgentRecord, kind: str) -> Need:
    end = record.last_exit
    what = end.describe() if end is not None else "it could not be started"
    lines = "\n".join(end.lines) if end is not None else ""
    title = f"{record.detail}; {what}" if record.detail else what
    return Need(kind, record.since, title, options=remedies.options(kind), context=lines)


def _context(record: AgentRecord) -> tuple[Need, ...]:
    if not record.filling.late:
        return ()
    title = "its context is full, and it does not write its handover"
    options = remedies.options("context")
    return (Need("context", record.filling.asked or 0.0, title, "", options, record.words),)


def _beside(record: AgentRecord) -> tuple[Need, ...]:
    """What an agent that is not blocked may need a person for."""
    found = [*_said(record), *_context(record)]
    resting = record.state is AgentState.IDLE
    if record.escalated.startswith("error") and record.failure is not None:
        failure = record.failure
        title = f"last turn failed: {failure.kind}"
        found.append(Need("error", failure.at, title, failure.detail, remedies.options("error"), context=record.words))
    if resting and record.signal == "complete":
        title = record.signal_text or "done"
        found.append(Need("idle-done", record.since, title, "", remedies.options("idle-done"), record.words))
    return tuple(found)


def _said(record: AgentRecord) -> tuple[Need, ...]:
    """What the agent asked for itself, what no remedy helped, and what it does not take: one escalation."""
    if record.signal == "escalate":
        title = record.signal_text or "the agent asks for a person"
        return (_escalation(record, title, record.signal_text),)
    text = record.attention or ""
    if not text or text == record.escalated:
        text = {"idle": "idle without a word", "prompt": "nobody answers"}.get(record.escalated.partition(":")[0], "")
    return (_escalation(record, text),) if text else ()


def _escalation(record: AgentRecord, title: str, text: str = "") -> Need:
    return Need("escalation", record.since, title, text, remedies.options("escalation"), record.words)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
