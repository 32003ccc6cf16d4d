"""What an agent is doing, from all that was seen of it: the sources, weighed. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from nbs_fleet.drivers.base import Reading
from nbs_fleet.model import AgentState, BlockedKind, ErrorKind, Evidence, Moment, Source
from nbs_fleet.sidecar.delivery import SOON
from nbs_fleet.sidecar.mind import SILENT, Mind
from nbs_fleet.sidecar.parcels import Parcel

BLOCKING_ERRORS = (ErrorKind.AUTHENTICATION,)
LIMITING_ERRORS = (ErrorKind.RATE_LIMIT, ErrorKind.BILLING)

COMMAND_LAG = 0.5
"""Seconds after a command until its client's answer is in the transcript: some five times what was measured."""

SUBMIT_SECONDS = 3.0
"""How long a client may take to show that it works on what it was given: more than a second's flicker and a look."""

NATIVE_SECONDS = 8.0
"""The same for what lies in its own inbox (Codex 0.171.0 looks there each few seconds: 1.2 to 4.2 s, measured)."""

HOOK_LEAD = 2.0
"""Seconds by which a hook may be older than the state file it explains: they are written side by side."""

SCREEN_LAG = 4.0
"""Seconds by which a screen may be behind a client's hooks (Copilot 1.0.102 at a turn's end: 1.3 s, on a loaded
machine 2.4 s, measured)."""

WHOLE_LAG = 20.0
"""The same for a client whose hooks miss no end of a turn (opencode 1.18.33 shows its first turn 4.5 s late, measured)."""

PROMPT_SECONDS = 60.0
"""How long after its start a client may show its prompt before it submits it (opencode: 0.2 s, some 15 s after)."""


def weigh(mind: Mind) -> tuple[Reading, Source | None]:
    """The reading that counts, and the source it rests on; a failed turn colours an idle one."""
    reading, source = _live(mind)
    failure = mind.failure
    if failure is None or reading.state is not AgentState.IDLE:
        return reading, source
    if failure.kind in BLOCKING_ERRORS:
        return Reading(AgentState.BLOCKED, failure.detail, blocked=BlockedKind.LOGIN), Source.HOOK
    if failure.kind in LIMITING_ERRORS:
        return Reading(AgentState.LIMITED, failure.detail, until=failure.until), Source.HOOK
    return Reading(AgentState.IDLE, f"last turn failed: {failure.kind}"), source


def _live(mind: Mind) -> tuple[Reading, Source | None]:
    """The strongest source that speaks.

    The client's own state file knows neither which dialog is open nor that nobody is logged in (Claude Code
    2.1.197, measured): there a screen that is as fresh completes it.
    """
    if mind.file is not None:
        return _with_file(mind)
    own = _is_own_text(mind)
    if mind.screen.state is AgentState.BLOCKED and not own and mind.screen_at >= mind.hook_at - _lead(mind):
        return _named(mind), Source.SCREEN
    if mind.hook is not None and mind.hook.reading.state is not AgentState.UNKNOWN and _is_ahead(mind):
        return mind.hook.reading, Source.HOOK
    if mind.watching.capabilities.title and mind.title.state is AgentState.BUSY:
        return mind.title, Source.TITLE
    if own:
        return Reading(AgentState.IDLE, detail="a message is being typed"), Source.SCREEN
    if mind.screen.state is not AgentState.UNKNOWN:
        return mind.screen, Source.SCREEN
    return SILENT, None


def _lead(mind: Mind) -> float:
    """How much older than the last hook a dialog on the screen may be; a text that was submitted since is none.

    Where hooks tell of all that happens, a permission that is drawn beside a hook's answer is about to go.
    """
    news = mind.hook
    if news is None:
        return HOOK_LEAD
    if mind.screen.blocked is BlockedKind.DRAFT:
        return 0.0 if news.event == "UserPromptSubmit" else HOOK_LEAD
    asks = news.event == "PermissionRequest" and not news.answer
    going = mind.watching.capabilities.whole_turns and mind.screen.blocked is BlockedKind.PERMISSION and not asks
    return -HOOK_LEAD if going else HOOK_LEAD


def _is_own_text(mind: Mind) -> bool:
    """Whether the text in the input box is a message that we are typing, and not a person's."""
    draft = (mind.screen.draft or "") if mind.screen.blocked is BlockedKind.DRAFT else ""
    typed = (p.message.id for p in mind.post.parcels if p.typing or p.typed)
    return bool(draft) and any(draft.startswith(f"[nbs:{message_id}]") for message_id in typed)


def _is_ahead(mind: Mind) -> bool:
    """Whether the last hook knows more than the last look at the screen."""
    return mind.hook_at > mind.screen_at or _settles_at(mind) is not None


def _settles_at(mind: Mind) -> float | None:
    """The wall second at which the screen has surely caught up with the last hook, if it was last seen before that."""
    can = mind.watching.capabilities
    if mind.file is not None or mind.hook is None or not can.turn_hooks:
        return None
    at = mind.hook_at + (WHOLE_LAG if can.whole_turns else SCREEN_LAG)
    return at if mind.screen_at < at else None


def settles_in(mind: Mind, now: Moment) -> float | None:
    """Seconds until the screen must have caught up with the last hook and is to be looked at; None: it has."""
    at = _settles_at(mind)
    return None if at is None else max(0.0, at - now.wall)


def settling(mind: Mind, now: Moment) -> float | None:
    """The monotonic second of that look; None while one is on its way."""
    seconds = settles_in(mind, now)
    return None if seconds is None or mind.looking else now.mono + max(seconds, SOON)


def _with_file(mind: Mind) -> tuple[Reading, Source | None]:
    assert mind.file is not None  # noqa: S101 - the caller looked
    own = mind.file.reading
    fresh = mind.screen_at >= mind.file_at
    if own.state is AgentState.BUSY and fresh and mind.screen.state is AgentState.COMPACTING:
        return mind.screen, Source.SCREEN
    if own.state is AgentState.BUSY and _compacts(mind):
        return Reading(AgentState.COMPACTING), Source.HOOK
    if own.state is AgentState.BUSY:
        return Reading(AgentState.BUSY, tool(mind)), Source.STATE_FILE
    if fresh and mind.screen.state is AgentState.BLOCKED:
        return _named(mind), Source.SCREEN
    if own.state is AgentState.BLOCKED:
        return Reading(AgentState.BLOCKED, _asked(mind), blocked=own.blocked), Source.STATE_FILE
    return own, Source.STATE_FILE


def submitted(mind: Mind, now: Moment) -> float | None:
    """Until when (monotonic) a client that looks idle counts as busy: it was given a prompt and shows nothing of it yet.

    None: it was given none, or has shown something since, or had its time to.
    """
    parcels = (p for p in mind.post.parcels if _under_way(p) and not _shown(mind, p.since, now))
    ends = [p.since + (NATIVE_SECONDS if p.via == "native" and not p.heard else SUBMIT_SECONDS) for p in parcels]
    news = mind.hook
    if news is not None and news.event == "UserPromptSubmit" and (mind.file is None or _told(mind) < mind.hook_at):
        ends.append(now.mono + mind.hook_at + HOOK_LEAD - now.wall)
    if mind.commanded is not None and not _shown(mind, mind.commanded, now):
        ends.append(mind.commanded + command_lag(mind))
    end = max(ends, default=now.mono)
    return end if end > now.mono else None


def command_lag(mind: Mind) -> float:
    """How long a client may take to show what came of what it took: its own files and hooks tell sooner than a screen."""
    return COMMAND_LAG if mind.file is not None or mind.watching.capabilities.hooks else SUBMIT_SECONDS


def _under_way(parcel: Parcel) -> bool:
    """Enter was pressed on it, or this client took it out of its mail."""
    return parcel.typed or bool(parcel.heard) or (parcel.place == "claimed" and not parcel.orphan)


def _shown(mind: Mind, since: float, now: Moment) -> bool:
    """Whether the client's own word is newer than that monotonic second; a screen may just not be redrawn."""
    return mind.file is not None and _told(mind) >= now.wall - (now.mono - since)


def _told(mind: Mind) -> float:
    """When the state file last changed: by the client's own word, since we may have been late to see it."""
    return (mind.file.at if mind.file is not None else None) or mind.file_at


def is_recent(mind: Mind) -> bool:
    """Whether the last hook may be about what the state file says now."""
    return mind.hook_at >= _told(mind) - HOOK_LEAD


def _compacts(mind: Mind) -> bool:
    """The last hook told of a compaction; the one after it (a session's start) tells of its end."""
    news = mind.hook
    recent = news is not None and is_recent(mind)
    return news is not None and recent and news.reading.state is AgentState.COMPACTING


def tool(mind: Mind) -> str:
    """The tool that runs, as far as a hook told; else nothing."""
    news = mind.hook
    return news.tool if news is not None and news.event == "PreToolUse" and news.tool else ""


def _asked(mind: Mind) -> str:
    news = mind.hook
    recent = news is not None and is_recent(mind)
    return news.reading.detail if news is not None and recent else ""


def _named(mind: Mind) -> Reading:
    """The dialog on the screen, with what a hook told it is about."""
    news, screen = mind.hook, mind.screen
    same = news is not None and news.reading.blocked is screen.blocked and is_recent(mind)
    return replace(screen, detail=news.reading.detail) if news and same and news.reading.detail else screen


def blocked_kind(mind: Mind, reading: Reading) -> BlockedKind | None:
    """Which dialog: the screen's word, else the hook's, else what the reading itself says."""
    if mind.screen.state is AgentState.BLOCKED and mind.screen.blocked is not None:
        return mind.screen.blocked
    news = mind.hook
    if news is not None and news.reading.blocked is not None and is_recent(mind):
        return news.reading.blocked
    return reading.blocked


def echoes(mind: Mind, mark: str) -> bool:
    """Whether this dialog is the one that was answered last, or that one with our own keys shown behind it."""
    return bool(mind.answered) and mark.startswith(mind.answered[-1])


def is_prompt(mind: Mind, now: Moment) -> bool:
    """Whether a text in the input box of a client that just starts is the prompt that it was started with."""
    starting = mind.report.state is AgentState.STARTING and now.wall < mind.report.since + PROMPT_SECONDS
    return mind.watching.expects_prompt and starting


def detail(mind: Mind, reading: Reading, state: AgentState) -> str:
    """What goes beside the state: the reading's words, or what went wrong where nothing is known; and a pause."""
    said = reading.detail or (mind.fault if state in (AgentState.UNKNOWN, AgentState.STARTING) else "")
    return "; ".join(part for part in ("paused" if mind.paused else "", said) if part)


def evidence(mind: Mind, strongest: Source | None) -> tuple[Evidence, ...]:
    """All that was seen, the deciding source first."""
    found: list[Evidence] = []
    if mind.file is not None:
        found.append(Evidence(Source.STATE_FILE, words(mind.file.reading), mind.file.at or mind.file_at))
    if mind.hook is not None:
        says = mind.hook.event + (f" {mind.hook.tool}" if mind.hook.tool else "")
        found.append(Evidence(Source.HOOK, says, mind.hook_at, mind.hook.reading.detail))
    if mind.title.state is not AgentState.UNKNOWN:
        found.append(Evidence(Source.TITLE, words(mind.title), mind.title_at, mind.title.title or ""))
    if mind.turns.prompts:
        says = f"{mind.turns.prompts} prompts, {mind.turns.finished} turns ended"
        found.append(Evidence(Source.TRANSCRIPT, says, mind.turns_at))
    if mind.screen_at:
        found.append(Evidence(Source.SCREEN, words(mind.screen), mind.screen_at, mind.screen.detail))
    found.sort(key=lambda e: e.source is not strongest)
    return tuple(found)


def words(reading: Reading) -> str:
    """A reading in a few words."""
    if reading.state is AgentState.BLOCKED and reading.blocked is not None:
        return f"blocked: {reading.blocked}"
    return "says nothing" if reading.state is AgentState.UNKNOWN else str(reading.state)
