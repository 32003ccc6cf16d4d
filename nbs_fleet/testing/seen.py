"""What a test sees of a team at one moment, as values; each expectation fills in what it is about."""

from __future__ import annotations

from msgspec import Struct


class AgentNow(Struct, frozen=True):
    """One agent. `since` wall seconds; `exit` is the last exit as a shell counts it (128 + N for signal N)."""

    handle: str
    state: str
    since: float = 0.0
    detail: str = ""
    blocked: str | None = None
    asks: str = ""
    """What the open dialog asks."""
    restarts: int = 0
    exit: int | None = None
    exit_words: str = ""
    """How its client ended the last time, for people."""
    queued: int = 0
    paused: bool = False
    """Its client goes on with what it does, and the fleet leaves it in peace."""
    ready: bool = True
    """It has taken the prompt that it was started with, if there is one."""


class MessageNow(Struct, frozen=True):
    """One message of a chat."""

    sender: str
    text: str


class EventNow(Struct, frozen=True):
    """One event of a bus."""

    source: str
    type: str
    text: str


class ItemNow(Struct, frozen=True):
    """One thing that waits for a person."""

    id: str
    agent: str
    kind: str
    title: str
    text: str = ""


class Seen(Struct, frozen=True):
    """One look. A part that was not looked at is empty; `chat` and `bus` None: there is no such chat or bus."""

    agents: tuple[AgentNow, ...] = ()
    chat: tuple[MessageNow, ...] | None = None
    pending: tuple[EventNow, ...] | None = None
    processed: tuple[EventNow, ...] | None = None
    prompts: tuple[str, ...] = ()
    """What one agent was given and its client acknowledged, oldest first."""
    screen: tuple[str, ...] | None = None
    """None: the agent has no screen now."""
    items: tuple[ItemNow, ...] = ()
    file: str | None = None
    """None: there is no such file."""
    counts: tuple[tuple[str, int], ...] = ()
    """How many messages, events and prompts there are, by what they are: for `nothing`."""

    def agent(self, handle: str) -> AgentNow | None:
        """The agent with this handle."""
        return next((agent for agent in self.agents if agent.handle == handle), None)
