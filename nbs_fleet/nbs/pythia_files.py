"""What Pythia's turn is told from: the number of decisions, and the last bucket, which all sidecars share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from msgspec import Struct

from nbs_fleet.model import Priority
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.bus_format import SUFFIX
from nbs_fleet.nbs.files import LOCK_TIMEOUT, make_folder, read_bytes, record_lock, refuse, replace

DECISION = "decision-logged"
"""The type of the event that says that a decision was written down."""
CHECKPOINT = "pythia-checkpoint"
SOURCE = "sidecar"
_EVENT = re.compile(rf"[0-9]+-.+-{DECISION}(-[0-9]+)?{re.escape(SUFFIX)}")


class Decisions(Struct, frozen=True):
    """How many decisions there are, and the file or folder they were counted in: another one counts from anew."""

    count: int
    source: str


def scribe_log(root: str, chat: str) -> str:
    """The decision log of a chat (its name)."""
    return os.path.join(root, ".nbs", "scribe", f"{chat}-log.md")


def count_decisions(root: str, chat: str | None, bus: str) -> Decisions:
    """The decisions of the chat's scribe log if there is one, else the `decision-logged` events of the bus folder.

    Both can shrink: a log is archived, processed events are pruned. Raises NbsFileError.
    """
    if chat is not None:
        path = scribe_log(root, chat)
        data = read_bytes(path)
        if data is not None:
            return Decisions(sum(1 for line in data.split(b"\n") if line.startswith(b"### D-")), path)
    count = 0
    for folder in (bus, os.path.join(bus, "processed")):
        try:
            count += sum(1 for name in os.listdir(folder) if _EVENT.fullmatch(name))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refuse("read", folder, error)
    return Decisions(count, bus)


def bucket_path(root: str) -> str:
    """Where the last bucket stands that was dealt with, by whichever sidecar."""
    return os.path.join(root, ".nbs", "pythia-last-bucket")


def last_bucket(root: str) -> int | None:
    """The last bucket that was dealt with; None if there was none yet."""
    text = (read_bytes(bucket_path(root)) or b"")[:64].strip()
    return int(text) if text.isdigit() and len(text) < 19 else None


def advance(
    root: str, bus: Bus, decide: Callable[[int | None], tuple[int | None, str | None]], *, timeout: float = LOCK_TIMEOUT
) -> tuple[str, ...]:
    """Deal with a count: each full bucket is one checkpoint, whoever sees it and whoever dies on the way.

    `decide` says from the last bucket which one to write (None: leave it) and the payload of its checkpoint (None:
    none is published). Returns the names of the events that were published, also for one who died before. Raises
    NbsFileError; what could not be done is done at the next call.

    The event is prepared first, then the bucket is written, then the event is released. So a prepared one of the last
    bucket is yet to be published, and that of another bucket was never due.
    """
    make_folder(os.path.join(root, ".nbs"))
    with record_lock(os.path.join(root, ".nbs", "pythia.lock"), timeout):
        before = last_bucket(root)
        published = _settle(bus, before)
        after, payload = decide(before)
        if after is None or after == before:
            return published
        mark = _mark(after)
        if payload is not None:
            bus.prepare(mark, SOURCE, CHECKPOINT, Priority.HIGH, payload)
        path = bucket_path(root)
        replace(path, b"%d\n" % after, temporary=f"{path}.tmp")
        if payload is not None:
            published = (*published, bus.release(mark, SOURCE, CHECKPOINT))
        return published


def _settle(bus: Bus, last: int | None) -> tuple[str, ...]:
    """Finish what a dead one began; the lock is held."""
    published: list[str] = []
    for mark in bus.prepared():
        if last is not None and mark == _mark(last):
            published.append(bus.release(mark, SOURCE, CHECKPOINT))
        elif mark.startswith(CHECKPOINT):
            bus.discard(mark)
    return tuple(published)


def _mark(bucket: int) -> str:
    return f"{CHECKPOINT}-{bucket}"
