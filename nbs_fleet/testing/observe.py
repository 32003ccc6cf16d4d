"""Looks at a team in its world: files of the run directory and of the nbs tools, and screens; starts nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from nbs_fleet.attention import keeper
from nbs_fleet.errors import FleetError
from nbs_fleet.jsontext import MALFORMED
from nbs_fleet.launch import processes
from nbs_fleet.launch.locks import holder
from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.model import AgentState, Exit, Outcome
from nbs_fleet.nbs import bus_format
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import NbsFileError, read_bytes
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentRecord, Plan
from nbs_fleet.sidecar.states import LIVE
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.starter import RESUME_FILE
from nbs_fleet.testing.schema import ExpectFile
from nbs_fleet.testing.seen import AgentNow, EventNow, ItemNow, MessageNow, Seen

EVENTS = ".nbs/events"
_FILE_BYTES = 1_000_000
_KEPT = 1000


class Eyes:
    """Looks at one team: `paths` of its run directory, `root` of its project."""

    def __init__(self, paths: RunPaths, root: str) -> None:
        self.paths = paths
        self.root = root

    def look(self, expected: ExpectFile) -> Seen:
        """What this expectation is about, as it is now. May block on tmux for some seconds (screens only)."""
        if expected.agent is not None:
            return Seen(agents=self.agents())
        if expected.messages is not None:
            return Seen(chat=self.messages(expected.messages.chat))
        if expected.events is not None:
            bus = expected.events.bus
            return Seen(pending=self.pending(bus), processed=self.processed(bus))
        if expected.prompts is not None:
            return Seen(agents=self.agents(), prompts=self.prompts(expected.prompts.agent))
        if expected.screen is not None:
            return Seen(screen=self.screens().get(expected.screen.agent))
        if expected.attention is not None:
            return Seen(items=self.items())
        if expected.file is not None:
            return Seen(file=self.file(expected.file.path))
        named = expected.nothing.agents if expected.nothing is not None else None
        agents = tuple(agent for agent in self.agents() if named is None or agent.handle in named)
        return Seen(agents=agents, counts=tuple(self._counts(tuple(agent.handle for agent in agents))))

    def folders(self, expected: ExpectFile) -> tuple[str, ...]:
        """The folders whose change may make this expectation come true."""
        plan = self.plan()
        if expected.messages is not None:
            return (os.path.dirname(self.chat_path(expected.messages.chat)),)
        if expected.events is not None:
            folder = self.bus_path(expected.events.bus)
            return (folder, os.path.join(folder, "processed"))
        if expected.prompts is not None:
            agent = self.paths.agent(expected.prompts.agent)
            return (agent.dir, agent.archive)
        if expected.attention is not None:
            return (self.paths.run,)
        if expected.file is not None:
            return (os.path.dirname(os.path.join(self.root, expected.file.path)),)
        handles = [agent.agent.handle for agent in plan.agents] if plan else []
        return (self.paths.run, *(self.paths.agent(handle).dir for handle in handles))

    # -- parts

    def plan(self) -> Plan | None:
        """The plan of the last `up`, or None."""
        return store.read_plan(self.paths)

    def agents(self) -> tuple[AgentNow, ...]:
        """All agents; one whose process is gone is not what its record still says."""
        supervised = holder(self.paths.lock) is not None
        return tuple(_now(record, supervised=supervised) for record in store.read_records(self.paths))

    def chat_path(self, name: str) -> str:
        """The file of a chat: by its name in the team file, else by its path below the root."""
        plan = self.plan()
        known = {chat.name: chat.path for chat in plan.chats} if plan else {}
        return os.path.join(self.root, known.get(name, name if "/" in name else f".nbs/chat/{name}.chat"))

    def messages(self, name: str) -> tuple[MessageNow, ...] | None:
        """A chat's messages; None if there is no such chat."""
        try:
            return tuple(MessageNow(m.handle, m.text) for m in Chat(self.chat_path(name)).messages())
        except NbsFileError:
            return None

    def bus_path(self, named: str | None) -> str:
        """The folder of a bus: the one that is named, else the team's first one."""
        plan = self.plan()
        first = plan.bus[0] if plan and plan.bus else EVENTS
        return os.path.join(self.root, named or first)

    def pending(self, named: str | None) -> tuple[EventNow, ...] | None:
        """A bus's pending events, most urgent first; None if there is no such bus."""
        try:
            events = Bus(self.bus_path(named)).pending().events
        except NbsFileError:
            return None
        return tuple(EventNow(event.source, event.type, event.payload) for event in events)

    def processed(self, named: str | None) -> tuple[EventNow, ...] | None:
        """Its processed events, oldest first."""
        folder = os.path.join(self.bus_path(named), "processed")
        found: list[EventNow] = []
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return () if os.path.isdir(os.path.dirname(folder)) else None
        for name in names:
            with suppress(NbsFileError, ValueError):
                data = read_bytes(os.path.join(folder, name))
                if data is not None and (event := bus_format.parse(name, data)) is not None:
                    found.append(EventNow(event.source, event.type, event.payload))
        return tuple(found)

    def prompts(self, handle: str) -> tuple[str, ...]:
        """What an agent's client acknowledged: its first prompt, what was typed, and the fleet's messages."""
        first, typed = self._told(handle)
        ended = Mailbox(self.paths.agent(handle)).archived(_KEPT)
        delivered = [end.message.text for end in reversed(ended) if end.outcome is Outcome.DELIVERED]
        return (*first, *(text for text in typed if text not in first), *delivered)

    def screens(self) -> dict[str, tuple[str, ...]]:
        """The screens of all agents that have one now."""
        panes = {record.handle: record.pane for record in store.read_records(self.paths) if record.pane}
        try:
            found = Tmux(self.paths.tmux, self.paths.tmux_conf).capture_all(panes.values())
        except FleetError:
            return {}
        return {handle: found[pane] for handle, pane in panes.items() if pane in found}

    def items(self) -> tuple[ItemNow, ...]:
        """What waits for a person."""
        queue = keeper.read(self.paths.attention)
        if queue is None:
            return ()
        return tuple(ItemNow(i.id, i.handle, i.need.kind, i.need.title, i.need.text) for i in queue.items)

    def file(self, path: str) -> str | None:
        """The text of a file below the root; None if there is none."""
        whole = os.path.join(self.root, path)
        return "" if os.path.isdir(whole) else self._text(whole)

    def _counts(self, handles: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        plan = self.plan()
        for chat in plan.chats if plan else ():
            yield f"messages in {chat.name}", len(self.messages(chat.name) or ())
        for bus in (plan.bus if plan else ()) or (EVENTS,):
            yield f"events on {bus}", len(self.pending(bus) or ()) + len(self.processed(bus) or ())
        for handle in handles:
            yield f"prompts for {handle}", len(self.prompts(handle))

    def _told(self, handle: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The first prompt, once it was taken, and what hooks told of others, as the story has it."""
        plan = self.plan()
        agent = plan.find(handle) if plan else None
        ready, typed = False, list[str]()
        with suppress(OSError), open(self.paths.agent(handle).story, encoding="utf-8", errors="replace") as file:
            for line in file:
                ready = ready or ('"what":"state"' in line and '"ready":true' in line)
                if '"UserPromptSubmit"' in line and (prompt := _prompt_of(line)) is not None:
                    typed.append(prompt)
        first = [agent.prompt.strip()] if agent and agent.prompt and ready else []
        record = store.read_record(self.paths, handle)
        if record is not None and record.ready and record.restarts:
            # What a client was started with again: one without that hook tells of it only by being ready.
            text = self._text(os.path.join(self.paths.agent(handle).dir, RESUME_FILE))
            first += [text.strip()] if text else []
        return tuple(dict.fromkeys(first)), tuple(text for text in typed if "[nbs:" not in text)

    def _text(self, path: str) -> str | None:
        try:
            with open(path, "rb") as file:
                return file.read(_FILE_BYTES).decode("utf-8", "replace")
        except OSError:
            return None


def _prompt_of(line: str) -> str | None:
    """The text of a prompt that a hook told of, in one line of a story."""
    with suppress(*MALFORMED, KeyError, TypeError, AttributeError):
        news = msgspec.json.decode(line)["event"]["news"]
        if news["event"] == "UserPromptSubmit" and isinstance(news["prompt"], str):
            return str(news["prompt"]).strip()
    return None


def _now(record: AgentRecord, *, supervised: bool) -> AgentNow:
    """A record, held against its process: what is stale is not shown as if it were known."""
    alive = record.proc is not None and processes.alive(record.proc)
    state, detail = record.state, record.detail
    if record.state in LIVE and not alive:
        state, detail = AgentState.UNKNOWN, f"its process is gone; last {record.state}"
    elif record.state in LIVE and not supervised:
        state, detail = AgentState.UNKNOWN, f"no supervisor; last {record.state}"
    end = record.last_exit
    return AgentNow(
        handle=record.handle,
        state=str(state),
        since=record.since,
        detail=detail,
        blocked=str(record.blocked) if record.blocked and state is AgentState.BLOCKED else None,
        asks=record.asking.text if record.asking else "",
        restarts=record.restarts,
        exit=_code(end),
        exit_words=end.explain() if end else "",
        queued=record.queued,
        paused=detail.partition(";")[0] == "paused",
        ready=record.ready,
    )


def _code(end: Exit | None) -> int | None:
    """An exit as a shell counts it."""
    if end is None:
        return None
    return 128 + end.signal if end.signal else end.code
