"""The bytes and names of bus events, their addressees, and the bus's configuration. Pure; formats of the nbs tools."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from nbs_fleet.model import Priority
from nbs_fleet.nbs.chat_format import to_bytes, to_text

SUFFIX = ".event"
TEAM = "team"
"""The addressee that stands for everybody on the team."""
RETENTION = 16_777_216
"""Bytes of processed events that are kept where the configuration says nothing."""
NAME_BYTES = 255
"""The longest file name; the nbs tools would take 511 bytes, file systems don't."""

_RANK = {priority: rank for rank, priority in enumerate(Priority)}
_STAMP = re.compile(r"([0-9]{1,18})-")
_ADDRESSEE = re.compile(r"\s*@([A-Za-z0-9_-]+)(?=[\s!?:,.;]|$)")
_FIELD = re.compile(r"([a-z-]+): ?(.*)")


class Event(Struct, frozen=True):
    """One event: its file's name, its time (microseconds since the epoch, from the name), and its content."""

    name: str
    at_us: int
    source: str
    type: str
    priority: Priority = Priority.NORMAL
    timestamp: str = ""
    key: str | None = None
    payload: str = ""

    @property
    def order(self) -> tuple[int, int, str]:
        """Sorts by priority, then by time."""
        return _RANK[self.priority], self.at_us, self.name

    @property
    def addressee(self) -> str | None:
        """Whom it is for: the `@token` that begins its payload (of a mention: `@ana from bo: ...`), else None.

        What else is mentioned in the payload is only quoted.
        """
        found = _ADDRESSEE.match(self.payload)
        return found[1] if found else None

    def concerns(self, handle: str, roster: Iterable[str]) -> bool:
        """Whether it is addressed to `handle`: by name, or as one of the roster by `@team`."""
        return self.addressee == handle or (self.addressee == TEAM and handle in roster)


class BusConfig(Struct, frozen=True):
    """`config.yaml` of a bus. Seconds and bytes; 0 is off. `other` has what the bus itself does not use, as text."""

    retention: int = RETENTION
    dedup_window: int = 0
    ack_timeout: int = 0
    other: dict[str, str] = {}


def stamp(name: str) -> int | None:
    """The time in an event's file name (microseconds), None if it is not the name of an event."""
    found = _STAMP.match(name) if name.endswith(SUFFIX) else None
    return (int(found[1]) or None) if found else None


def word_trouble(word: str) -> str | None:
    """What keeps a source or type from being one, if anything."""
    if not word:
        return "must not be empty"
    if any(c.isspace() for c in word):
        return "must not contain whitespace"
    if "/" in word or not word.isprintable():
        return "must not contain / or control characters"
    return None


def file_name(at_us: int, source: str, kind: str, pid: int) -> str:
    """The name of an event's file. Raises ValueError if it is too long for one."""
    name = f"{at_us}-{source}-{kind}-{pid}{SUFFIX}"
    if len(name.encode("utf-8", "replace")) > NAME_BYTES:
        raise ValueError("source and type are too long for a file name")
    return name


def render(source: str, kind: str, priority: Priority, timestamp: str, payload: str) -> bytes:
    """The content of an event. `timestamp` is UTC, `2026-05-01T09:30:00Z`."""
    lines = [
        f"source: {source}",
        f"type: {kind}",
        f"priority: {priority}",
        f"timestamp: {timestamp}",
        f"dedup-key: {source}:{kind}",
    ]
    if payload:
        lines.append("payload: |")
        lines += [f"  {line}" for line in payload.removesuffix("\n").split("\n")]
    return to_bytes("\n".join(lines) + "\n")


def parse(name: str, data: bytes) -> Event:
    """The event of a file. Raises ValueError if its name or content is not one's.

    A priority that is none counts as normal; the first of several equal fields counts.
    """
    at_us = stamp(name)
    if at_us is None:
        raise ValueError("its name does not begin with a time")
    fields: dict[str, str] = {}
    payload: list[str] | None = None
    for line in to_text(data).split("\n"):
        if payload is not None and (line.startswith("  ") or not line):
            payload.append(line[2:])
            continue
        found = _FIELD.fullmatch(line.rstrip("\r"))
        if found is None:
            continue
        if found[1] == "payload" and found[2].startswith("|"):
            payload = [] if payload is None else payload
        fields.setdefault(found[1], found[2])
    missing = [field for field in ("source", "type", "priority") if not fields.get(field)]
    if missing:
        raise ValueError(f"it has no {' and no '.join(missing)}")
    text = fields.get("payload", "") if payload is None else "\n".join(payload).rstrip("\n")
    return Event(
        name,
        at_us,
        fields["source"],
        fields["type"],
        Priority(fields["priority"]) if fields["priority"] in tuple(Priority) else Priority.NORMAL,
        fields.get("timestamp", ""),
        fields.get("dedup-key"),
        text,
    )


def parse_config(text: str) -> BusConfig:
    """The configuration: flat `key: value` lines, `#` comments. Values that are no numbers leave the default."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and not line.startswith("#") and value.strip():
            values[key.strip()] = value.strip()

    def number(key: str, default: int, least: int) -> int:
        value = values.pop(key, "")
        right = value.isascii() and value.isdigit() and len(value) < 13 and int(value) >= least
        return int(value) if right else default

    return BusConfig(
        number("retention-max-bytes", RETENTION, 1),
        number("dedup-window", 0, 0),
        number("ack-timeout", 0, 0),
        values,
    )
