"""Whether what is seen is what was expected, and in a newcomer's words what was seen instead. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from nbs_fleet.testing.schema import (
    AgentSeen,
    AttentionSeen,
    EventsSeen,
    ExpectFile,
    FileSeen,
    MessagesSeen,
    PromptsSeen,
    ScreenSeen,
)
from nbs_fleet.testing.seen import AgentNow, EventNow, ItemNow, MessageNow, Seen

T = TypeVar("T")
LINES = 6
"""So many of the messages, events or prompts that were there are shown."""
WIDE = 160


class Verdict(Struct, frozen=True):
    """`met`; else `over` says that it can't come true any more. `saw` is what is there instead, one line per item.

    `kept` is what `as:` keeps: the first group of the pattern where it has one, else the whole text.
    """

    met: bool
    saw: tuple[str, ...] = ()
    over: bool = False
    kept: str = ""


def judge(expected: ExpectFile, seen: Seen, before: Seen | None = None) -> Verdict:
    """One look against one expectation. `before` is the first look, for `nothing`."""
    if expected.agent is not None:
        return _agent(expected.agent, seen.agent(expected.agent.handle))
    if expected.messages is not None:
        return _messages(expected.messages, seen.chat)
    if expected.events is not None:
        return _events(expected.events, seen)
    if expected.prompts is not None:
        return _prompts(expected.prompts, seen)
    if expected.screen is not None:
        return _screen(expected.screen, seen.screen)
    if expected.attention is not None:
        return _attention(expected.attention, seen.items)
    if expected.file is not None:
        return _file(expected.file, seen.file)
    if expected.nothing is not None:
        return _nothing(before or seen, seen)
    raise AssertionError("an expectation is about something")


def wanted(expected: ExpectFile) -> str:
    """The expectation in words: `ana is idle`, `exactly 2 messages from bo in live that match /done/`."""
    if expected.agent is not None:
        return _wanted_agent(expected.agent)
    if expected.messages is not None:
        said = expected.messages
        if said.order:
            return (
                f"messages{_from(said.sender)} in {said.chat} in this order: {', '.join(f'/{p}/' for p in said.order)}"
            )
        return f"{_number(said.count, 'message')}{_from(said.sender)} in {said.chat}{_like(said.matches)}"
    if expected.events is not None:
        event = expected.events
        kind = f" of type {event.type}" if event.type else ""
        return f"{_number(event.count, f'{event.where} event')}{kind}{_like(event.matches)}"
    if expected.prompts is not None:
        prompt = expected.prompts
        return f"{_number(prompt.count, 'prompt')} for {prompt.agent}{_like(prompt.matches)}"
    if expected.screen is not None:
        return f"the screen of {expected.screen.agent}{_like(expected.screen.matches)}"
    if expected.attention is not None:
        item = expected.attention
        kind, whom = f"{item.kind} " if item.kind else "", f" for {item.agent}" if item.agent else ""
        return f"{_number(item.count, f'{kind}item')} in the queue{whom}{_like(item.matches)}"
    if expected.file is not None:
        file = expected.file
        return f"no file {file.path}" if file.exists is False else f"the file {file.path}{_like(file.matches)}"
    if expected.nothing is not None:
        whom = f" with {', '.join(expected.nothing.agents)}" if expected.nothing.agents else ""
        return f"that nothing happens{whom} for {expected.nothing.span:g} s"
    raise AssertionError("an expectation is about something")


# -- agents


def _agent(said: AgentSeen, now: AgentNow | None) -> Verdict:
    if now is None:
        return Verdict(met=False, saw=(f"{said.handle} was not started yet",))
    wrong = (
        (said.state is not None and now.state != said.state and not (said.state == "paused" and now.paused))
        or (said.state == "idle" and not now.ready)
        or (said.blocked is not None and now.blocked != said.blocked)
        or (said.restarts is not None and now.restarts != said.restarts)
        or (said.exit is not None and now.exit != said.exit)
    )
    if not wrong:
        return Verdict(met=True, kept=now.blocked or now.state)
    too_often = said.restarts is not None and now.restarts > said.restarts
    final = now.state == "failed" and said.state not in (None, "failed")
    return Verdict(met=False, saw=describe(now), over=too_often or final)


def describe(now: AgentNow) -> tuple[str, ...]:
    """How an agent is, for people, with what can be done about it."""
    detail = f" ({clip(now.detail)})" if now.detail else ""
    lines = [f"{now.handle} is {now.state}{f': {now.blocked}' if now.blocked else ''}{detail}"]
    if now.state == "idle" and not now.ready:
        lines.append("it has not taken the prompt yet that it was started with")
    if now.blocked:
        asks = f": {clip(now.asks)}" if now.asks else ""
        lines.append(f"it waits for a person{asks}; a step `answer` answers it, `dialogs:` in the team file by itself")
    if now.state == "failed":
        lines.append("failed is final: it is not started again until a person acts")
    if now.exit_words:
        lines.append(f"its client ended before: {clip(now.exit_words)}")
    lines.append(f"started again since up: {_times(now.restarts)}")
    if now.queued:
        lines.append(f"{now.queued} messages wait in its queue")
    return tuple(lines)


def _wanted_agent(said: AgentSeen) -> str:
    parts = []
    if said.state is not None or said.blocked is not None:
        parts.append(f"is {said.state or 'blocked'}{f' ({said.blocked})' if said.blocked else ''}")
    if said.restarts is not None:
        parts.append(f"was started again {_times(said.restarts)}" if said.restarts else "was never started again")
    if said.exit is not None:
        parts.append(f"ended with {said.exit} last")
    return f"{said.handle} {' and '.join(parts) or 'is there'}"


# -- messages, events, prompts, what waits


def _messages(said: MessagesSeen, chat: Sequence[MessageNow] | None) -> Verdict:
    if chat is None:
        return Verdict(met=False, saw=(f"there is no chat {said.chat}",))
    mine = [message for message in chat if said.sender in (None, message.sender)]
    if said.order:
        return _order(said, mine, chat)
    fit = [m for m in mine if _fits(said.matches, m.text)]
    return _counted(said.count, fit, said.matches, lambda m: m.text, _shown(f"in {said.chat}", chat, _message))


def _order(said: MessagesSeen, mine: Sequence[MessageNow], chat: Sequence[MessageNow]) -> Verdict:
    """Each pattern fits a later message than the one before it."""
    place = 0
    for n, pattern in enumerate(said.order or ()):
        found = next((i for i in range(place, len(mine)) if _fits(pattern, mine[i].text)), None)
        if found is None:
            early = any(_fits(pattern, message.text) for message in mine[:place])
            why = f"/{pattern}/ came too early" if early else f"/{pattern}/ did not come"
            after = f" after /{said.order[n - 1]}/" if said.order and n else ""
            return Verdict(met=False, saw=(f"{why}{after}", *_shown(f"in {said.chat}", chat, _message)))
        place = found + 1
    return Verdict(met=True, kept=mine[place - 1].text)


def _events(said: EventsSeen, seen: Seen) -> Verdict:
    events = seen.pending if said.where == "pending" else seen.processed
    if events is None:
        return Verdict(met=False, saw=("there is no such bus",))
    fit = [e for e in events if said.type in (None, e.type) and _fits(said.matches, e.text)]
    shown = list(_shown(f"{said.where}", events, _event))
    other = seen.processed if said.where == "pending" else seen.pending
    if other:
        shown += _shown("processed" if said.where == "pending" else "pending", other, _event)
    # A pending event may be processed at any time; processed ones stay.
    return _counted(said.count, fit, said.matches, lambda e: e.text, tuple(shown), may_shrink=said.where == "pending")


def _prompts(said: PromptsSeen, seen: Seen) -> Verdict:
    fit = [text for text in seen.prompts if _fits(said.matches, text)]
    now = seen.agent(said.agent)
    shown = (*_shown(f"given to {said.agent}", seen.prompts, lambda text: text), *(describe(now) if now else ()))
    return _counted(said.count, fit, said.matches, lambda text: text, shown)


def _attention(said: AttentionSeen, items: Sequence[ItemNow]) -> Verdict:
    fit = [
        item
        for item in items
        if said.agent in (None, item.agent)
        and said.kind in (None, item.kind)
        and _fits(said.matches, f"{item.title}\n{item.text}")
    ]
    shown = _shown("waiting for a person", items, _item)
    return _counted(said.count, fit, said.matches, lambda item: item.title, shown, may_shrink=True)


def _counted(
    count: int | None,
    fit: Sequence[T],
    pattern: str | None,
    text: Callable[[T], str],
    shown: tuple[str, ...],
    *,
    may_shrink: bool = False,
) -> Verdict:
    """At least one, or exactly `count`; what only grows can't go back below."""
    if len(fit) == count if count is not None else fit:
        return Verdict(met=True, kept=_kept(pattern, text(fit[-1])) if fit else "")
    found = f"{len(fit)} fit" if len(fit) != 1 else "1 fits"
    return Verdict(met=False, saw=(found, *shown), over=count is not None and len(fit) > count and not may_shrink)


# -- screens and files


def _screen(said: ScreenSeen, screen: Sequence[str] | None) -> Verdict:
    if screen is None:
        return Verdict(met=False, saw=(f"{said.agent} has no screen now",))
    text = "\n".join(screen)
    if _fits(said.matches, text):
        return Verdict(met=True, kept=_kept(said.matches, text))
    rows = [row for row in screen if row.strip()]
    return Verdict(
        met=False, saw=(f"its screen shows{':' if rows else ' nothing'}", *(f"  {row}" for row in rows[-20:]))
    )


def _file(said: FileSeen, text: str | None) -> Verdict:
    if said.exists is False:
        return Verdict(met=text is None, saw=() if text is None else (f"{said.path} is there",))
    if text is None:
        return Verdict(met=False, saw=(f"there is no {said.path}",))
    if _fits(said.matches, text):
        return Verdict(met=True, kept=_kept(said.matches, text))
    lines = text.splitlines()
    more = (f"  ... and {len(lines) - LINES} lines more",) if len(lines) > LINES else ()
    head = f"{said.path} holds:" if lines else f"{said.path} is empty"
    return Verdict(met=False, saw=(head, *(f"  {clip(line)}" for line in lines[:LINES]), *more))


# -- nothing


def _nothing(before: Seen, now: Seen) -> Verdict:
    """Met as long as nothing is another; the caller looks for as long as it is to last."""
    news = [
        f"{agent.handle} was {was.state if was else 'not there'} and became {agent.state}"
        for agent in now.agents
        if (was := before.agent(agent.handle)) is None or (was.state, was.since) != (agent.state, agent.since)
    ]
    earlier = dict(before.counts)
    news += [
        f"{number - earlier.get(what, 0)} more {what}" for what, number in now.counts if number > earlier.get(what, 0)
    ]
    return Verdict(met=not news, saw=tuple(news), over=bool(news))


# -- words


def _fits(pattern: str | None, text: str) -> bool:
    return pattern is None or re.search(pattern, text) is not None


def _kept(pattern: str | None, text: str) -> str:
    found = re.search(pattern, text) if pattern else None
    if found is None:
        return text
    return next((group for group in found.groups() if group is not None), text)


def _shown(where: str, items: Sequence[T], line: Callable[[T], str]) -> tuple[str, ...]:
    if not items:
        return (f"{where}: nothing",)
    cut = (f"  ({len(items) - LINES} earlier)",) if len(items) > LINES else ()
    return (f"{where}:", *cut, *(f"  {clip(line(item))}" for item in items[-LINES:]))


def _message(message: MessageNow) -> str:
    return f"{message.sender}: {message.text}"


def _event(event: EventNow) -> str:
    return f"{event.type} from {event.source}{f': {event.text}' if event.text else ''}"


def _item(item: ItemNow) -> str:
    return f"{item.id} {item.agent}: {item.kind}, {item.title}"


def clip(text: str) -> str:
    """The text on one line of bounded length."""
    flat = " ".join(text.split())
    return flat if len(flat) <= WIDE else flat[: WIDE - 1] + "…"


def _number(count: int | None, noun: str) -> str:
    if count is None:
        return f"a {noun}" if noun[0] not in "aeiou" else f"an {noun}"
    return f"no {noun}" if count == 0 else f"exactly {count} {noun}{'' if count == 1 else 's'}"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _from(sender: str | None) -> str:
    return f" from {sender}" if sender else ""


def _like(pattern: str | None) -> str:
    return f" with /{pattern}/" if pattern else ""
