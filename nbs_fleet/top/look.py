"""What the dashboard has seen of a team, as values: what its sources fill and its views read."""

from __future__ import annotations

from msgspec import Struct

from nbs_fleet.attention.queue import Queue
from nbs_fleet.nbs.chat_format import ChatMessage
from nbs_fleet.supervisor.status import FleetStatus


class Told(Struct, frozen=True):
    """One entry of a story: wall seconds, what happened, particulars."""

    at: float
    what: str
    particulars: tuple[str, ...] = ()


class Wish(Struct, frozen=True):
    """What a person looks at: the agent and the chat that are selected; empty: the first one."""

    handle: str = ""
    chat: str = ""


class Look(Struct, frozen=True):
    """A team at one moment. `chat` is the one whose `messages` these are; `story` is of the agent `handle`."""

    fleet: FleetStatus
    queue: Queue = Queue()
    chats: tuple[str, ...] = ()
    chat: str = ""
    messages: tuple[ChatMessage, ...] = ()
    handle: str = ""
    story: tuple[Told, ...] = ()


class Mirror(Struct, frozen=True):
    """An agent's screen: its rows, or why there is none (`remark`). `at`: when it was kept, 0 for a living pane."""

    handle: str
    rows: tuple[str, ...] = ()
    remark: str = ""
    at: float = 0.0
