"""When an idle agent is told that something waits for it: never content, never twice for the same. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.model import AgentState, Priority

SUMMARY_LENGTH = 200
"""Characters of a notice's summary at most."""
SETTLE = 0.05
"""Seconds between the first sight of something new and the notice: a message and its mention come as two files."""
POLL_TEXT = "Nothing is known to wait for you. Have a look at your chats and events anyway."


class Unread(Struct, frozen=True):
    """Unread messages of one chat: how many, by whom (in order of appearance), how many not by `sidecar`."""

    chat: str
    count: int
    senders: tuple[str, ...] = ()
    by_others: int = 0
    last: int = -1
    """The number of the newest one by others: the agent's own posts and `sidecar`'s are no news."""


class Pending(Struct, frozen=True):
    """Events that wait for this agent: how many per type, the most urgent priority, ids of the urgent ones."""

    types: tuple[tuple[str, int], ...] = ()
    top: Priority | None = None
    urgent: tuple[str, ...] = ()
    """Names of critical events and of mentions by anyone but `sidecar`: they wait for no cooldown."""
    names: tuple[str, ...] = ()
    """All of them: a name's time is no measure of what is new, since a slow writer's event comes late."""


class Waiting(Struct, frozen=True):
    """All that waits for one agent on the nbs files."""

    unread: tuple[Unread, ...] = ()
    pending: Pending = Pending()
    poll: float | None = None
    """Seconds that the agent itself asked for between two looks, in place of the team file's."""

    def anything(self) -> bool:
        """Whether something waits that is worth waking an agent: the fleet's own chatter alone is not."""
        return bool(self.pending.types) or any(u.by_others for u in self.unread)

    def last(self) -> dict[str, int]:
        """Per chat with unread messages by others: the index of its newest message."""
        return {u.chat: u.last for u in self.unread if u.by_others}


class NoticeRules(Struct, frozen=True):
    """The team file's `sidecar` settings; seconds."""

    startup_grace: float = 30.0
    cooldown: float = 15.0
    poll: float = 300.0
    poll_always: bool = False
    nag_critical: float = 30.0
    nag_high: float = 120.0
    enabled: bool = True
    fail_threshold: int = 5
    """Notices in a row without effect, after which the agent is told everything it needs."""


class Noticed(Struct, frozen=True):
    """What is remembered about notices of one agent. Times: monotonic seconds."""

    began: float = 0.0
    last_at: float = -1e9
    told: dict[str, int] = {}
    """Per chat, the newest message that a notice was about."""
    told_events: tuple[str, ...] = ()
    """The events that a notice was about and that still wait."""
    urgent_told: tuple[str, ...] = ()
    fresh_at: float | None = None
    """When something new was first seen that has not been told."""
    caught_up: bool = False
    nags: int = 0
    lost: bool = False
    """The client did not know the skill that a notice called: from then on notices are plain words."""
    idle_since: float | None = None


class Notify(Struct, frozen=True, tag=True):
    """Tell the agent: `summary` of counts and names, at most SUMMARY_LENGTH characters; `why` for the story."""

    summary: str
    why: str
    priority: Priority = Priority.NORMAL
    plain: bool = False
    """Words, not a call of a skill."""


class Desk(Struct, frozen=True):
    """The agent and its tray, as far as notices care. `busy`: a message of ours is still on its way to it."""

    state: AgentState
    ready: bool
    busy: bool
    waiting: Waiting = Waiting()
    lost: bool = False
    """The client has said since the last notice that it does not know the skill it called."""


def notice(noticed: Noticed, desk: Desk, rules: NoticeRules, now: float) -> tuple[Noticed, Notify | None]:
    """Decide whether to tell the agent something now. It is only told while idle, and with nothing under way."""
    if not rules.enabled:
        return noticed, None
    if noticed.began == 0.0:
        noticed = replace(noticed, began=now)
    if noticed.nags and _had_effect(noticed, desk.waiting):
        # Looked at while busy too: the agent reads in its turn, and more may come before that ends.
        noticed = replace(noticed, nags=0)
    if desk.state is not AgentState.IDLE or not desk.ready:
        return replace(noticed, idle_since=None), None
    if noticed.idle_since is None:
        noticed = replace(noticed, idle_since=now)
    if desk.busy or now < noticed.began + rules.startup_grace:
        return noticed, None
    noticed = _freshened(noticed, desk.waiting, now)
    if desk.lost and not noticed.lost:
        # Nothing of that notice reached the agent, so it is told at once, with everything it needs.
        return _told(replace(noticed, lost=True), desk.waiting, "recovery", now)
    why = _reason(noticed, desk.waiting, rules, now)
    if why is None:
        return replace(noticed, caught_up=True), None
    if noticed.fresh_at is not None and now < noticed.fresh_at + SETTLE:
        return noticed, None
    return _told(noticed, desk.waiting, why, now)


def _freshened(noticed: Noticed, waiting: Waiting, now: float) -> Noticed:
    """Note when something new came; a chat that was archived counts from its new, lower numbers."""
    last = waiting.last()
    told = {chat: min(index, last.get(chat, index)) for chat, index in noticed.told.items()}
    noticed = replace(noticed, told=told)
    if not _is_new(noticed, waiting):
        return replace(noticed, fresh_at=None)
    return noticed if noticed.fresh_at is not None else replace(noticed, fresh_at=now)


def _is_new(noticed: Noticed, waiting: Waiting) -> bool:
    """Whether anything waits that no notice was about; that less waits than before is no news."""
    if any(index > noticed.told.get(chat, -1) for chat, index in waiting.last().items()):
        return True
    return not set(waiting.pending.names).issubset(noticed.told_events) or _urgent(noticed, waiting)


def _urgent(noticed: Noticed, waiting: Waiting) -> bool:
    return any(name not in noticed.urgent_told for name in waiting.pending.urgent)


def _reason(noticed: Noticed, waiting: Waiting, rules: NoticeRules, now: float) -> str | None:
    """Why the agent is told now; None: nothing new, or not yet."""
    since = now - noticed.last_at
    if not waiting.anything():
        idle = now - (noticed.idle_since if noticed.idle_since is not None else now)
        every = _poll(waiting, rules)
        return "poll" if rules.poll_always and idle >= every and since >= every else None
    if not noticed.caught_up:
        # What came before this sidecar, or while the client was away, is told once whatever was told then.
        return "catch-up"
    if _urgent(noticed, waiting):
        return "urgent"
    if _is_new(noticed, waiting):
        return "new" if since >= rules.cooldown else None
    if since >= _nag_after(waiting, rules):
        if noticed.nags < rules.fail_threshold:
            return "reminder"
        if noticed.nags == rules.fail_threshold:
            # It may have lost the skill that the notice speaks of, or never had it: once it is told everything.
            return "recovery"
    return None


def _had_effect(noticed: Noticed, waiting: Waiting) -> bool:
    """Whether the agent has done something about what it was told of: read everything, or acknowledged an event."""
    return not waiting.anything() or not set(noticed.told_events).issubset(waiting.pending.names)


def stalled(noticed: Noticed, waiting: Waiting, rules: NoticeRules) -> bool:
    """Whether even the last words had no effect: from here on it is a person's matter."""
    return noticed.nags > rules.fail_threshold and waiting.anything()


def _nag_after(waiting: Waiting, rules: NoticeRules) -> float:
    if waiting.pending.top is Priority.CRITICAL:
        return rules.nag_critical
    if waiting.pending.top is Priority.HIGH:
        return rules.nag_high
    return _poll(waiting, rules)


def _poll(waiting: Waiting, rules: NoticeRules) -> float:
    return rules.poll if waiting.poll is None else waiting.poll


def _told(noticed: Noticed, waiting: Waiting, why: str, now: float) -> tuple[Noticed, Notify]:
    again = why in ("reminder", "recovery")
    after = replace(
        noticed,
        last_at=now,
        told={**noticed.told, **waiting.last()},
        told_events=waiting.pending.names,
        fresh_at=None,
        urgent_told=waiting.pending.urgent,
        caught_up=True,
        nags=noticed.nags + 1 if again else 0,
    )
    if why == "poll":
        return after, Notify(POLL_TEXT, why, plain=noticed.lost)
    urgent = waiting.pending.top in (Priority.CRITICAL, Priority.HIGH)
    return after, Notify(summary(waiting), why, Priority.HIGH if urgent else Priority.NORMAL, noticed.lost)


def summary(waiting: Waiting) -> str:
    """Counts and names in one line, never content: `3 unread in live (bo, cy); 2 events (chat-mention, task-complete)`."""
    parts = [
        f"{u.count} unread in {u.chat}" + (f" ({', '.join(u.senders[:4])})" if u.senders else "")
        for u in waiting.unread
        if u.count
    ]
    total = sum(number for _, number in waiting.pending.types)
    if total:
        names = ", ".join(name for name, _ in waiting.pending.types[:4])
        parts.append(f"{total} event{'' if total == 1 else 's'} ({names})")
    text = "; ".join(parts)
    return text if len(text) <= SUMMARY_LENGTH else text[: SUMMARY_LENGTH - 1] + "…"


def wake(noticed: Noticed, desk: Desk, rules: NoticeRules, now: float) -> float | None:
    """The next monotonic second after `now` at which there may be something to tell without an event."""
    if not rules.enabled or desk.state is not AgentState.IDLE or not desk.ready or desk.busy:
        return None
    times = [noticed.began + rules.startup_grace]
    if desk.waiting.anything():
        times += [noticed.last_at + rules.cooldown]
        if noticed.fresh_at is not None:
            times += [noticed.fresh_at + SETTLE]
        if noticed.nags <= rules.fail_threshold:
            times += [noticed.last_at + _nag_after(desk.waiting, rules)]
    elif rules.poll_always and noticed.idle_since is not None:
        every = _poll(desk.waiting, rules)
        times += [noticed.idle_since + every, noticed.last_at + every]
    future = [at for at in times if at > now]
    return min(future) if future else None
