"""The files of messages: the only module that knows where one lies and how it moves, safe at any crash."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

import msgspec
from msgspec import Struct

from nbs_fleet.errors import FleetError
from nbs_fleet.jsontext import MALFORMED
from nbs_fleet.launch.files import read_text, stamp, write_atomic, write_once
from nbs_fleet.model import Delivered, Message, MessageKind, Outcome
from nbs_fleet.plan.paths import AgentPaths

KEPT = 1000
"""Messages that stay in the archive: the last ones to end."""
BELL = "tok"
PROBE = "probe"
BELL_AGE = 1.0
"""Seconds after which a bell can be rung: a watcher that waits for a file to settle ignores a younger one."""
ID = re.compile(r"[a-z]-[0-9a-z]+-[0-9a-z]+")

_SLACK = 50
"""Files over KEPT before the archive is looked through: that costs a look at each of them."""
_LIMIT = 2_000_000
"""Bytes of the largest record that is read; a text of 100 kB may need six times that as JSON."""
_STALE = 3600.0
"""Seconds after which an unfinished temporary file has no writer any more."""
_LETTERS = {MessageKind.DIRECTIVE: "d", MessageKind.NOTICE: "n", MessageKind.NUDGE: "g", MessageKind.COMMAND: "c"}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_RANDOM = 36**5
_ENDED = msgspec.json.Decoder(Delivered)
_MESSAGE = msgspec.json.Decoder(Message)
"""Made at import: what msgspec makes of a type at its first use is not safe where two threads come first (0.22, seen)."""
_TOKEN = re.compile(r"\d{16}-(.+)\.msg")

Place = Literal["queue", "mail", "inbox", "claimed"]
"""Where a waiting message lies: only its record (queue), or a token of it in one of the three other folders."""
_WITH_TOKENS: tuple[Place, ...] = ("mail", "inbox", "claimed")
"""`claimed/` comes last since tokens move there by themselves, and never out of it."""


class Parcel(Struct, frozen=True):
    """A message that waits, and where."""

    message: Message
    place: Place


def new_id(kind: MessageKind, now: float, rand: int) -> str:
    """An id: the kind's letter, the time in ms and a random part, both base 36: `d-mhz8k3p2-x7k2q`.

    `now` wall seconds; `rand` any random whole number of at least 32 bits.
    """
    moment = _base36(max(0, int(now * 1000))).rjust(8, "0")
    return f"{_LETTERS[kind]}-{moment}-{_base36(rand % _RANDOM).rjust(5, '0')}"


def token_name(message: Message) -> str:
    """The name of a message's token, `<seq>-<id>.msg`; names sort by the time a message was made."""
    seq = min(max(0, int(message.created * 1_000_000)), 10**16 - 1)
    return f"{seq:016d}-{message.id}.msg"


class Mailbox:
    """The messages of one agent.

    A message that is accepted is `queue/<id>.json` until it is in `archive/`. On its way in, its token (the text
    as the agent gets it) lies in exactly one of `mail/`, `inbox/` and `claimed/`; others move tokens from `mail/`
    and `inbox/` to `claimed/` only, by rename. One process puts and takes tokens; any number may accept, read and
    finish. Each method raises FleetError when the disk refuses, and nothing that was accepted is lost then.
    """

    def __init__(self, paths: AgentPaths) -> None:
        self.paths = paths
        # Mostly there are none, and then it is one object for all mailboxes.
        self._damaged = self._told = self._listed = self._gone = frozenset[str]()

    def accept(self, message: Message) -> None:
        """Take a message in; when this returns it is on the disk. The same message again changes nothing.

        Raises FleetError if the id is malformed, or was used for another message.
        """
        if not ID.fullmatch(message.id):
            raise FleetError(f'"{message.id}" is no id of a message')
        try:
            record = msgspec.json.encode(message)
        except UnicodeEncodeError:
            raise FleetError(f"{message.id}: the text has characters that can't be written as UTF-8") from None
        with _refusing(f"make {self.paths.queue}"):
            os.makedirs(self.paths.queue, mode=0o700, exist_ok=True)
        ended = self._ended(message.id)
        fresh = ended is None and write_once(self._record(message.id), record)
        if not fresh and (ended.message if ended else self._read(message.id)) != message:
            raise FleetError(f"the id {message.id} is taken by another message")

    def waiting(self) -> tuple[Parcel, ...]:
        """All messages that were accepted and have not ended, oldest first; damaged records are left out."""
        some = self._listed or _names(self.paths.queue)  # mostly none, and then no other folder is looked at
        places = {name: place for name, place, _ in self._tokens()} if some else {}
        found: list[Parcel] = []
        listed = frozenset(name for name in _names(self.paths.queue) if name.endswith(".json"))
        self._gone |= {os.path.join("queue", n) for n in self._listed - listed if not self._has_ended(n[:-5])}
        self._listed = listed
        damaged: set[str] = set()
        for name in listed:
            identity = name.removesuffix(".json")
            message = self._read(identity)
            if message is None:
                # One that ended since the folder was listed is no damage.
                if os.path.lexists(self._record(identity)):
                    damaged.add(os.path.join("queue", name))
            elif not self._has_ended(identity):
                found.append(Parcel(message, places.get(identity, "queue")))
        self._damaged = frozenset(damaged)
        self._told &= damaged
        return tuple(sorted(found, key=lambda p: (p.message.created, p.message.id)))

    def damaged(self) -> tuple[str, ...]:
        """Records (`queue/<name>`) that the last `waiting` could not read, or that went without an end; each once."""
        fresh = (self._damaged - self._told) | self._gone
        self._told |= self._damaged
        self._gone = frozenset()
        return tuple(sorted(fresh))

    def find(self, identity: str) -> Parcel | Delivered | None:
        """The message with this id, waiting or ended; None if there is none (or its file is damaged)."""
        if not ID.fullmatch(identity):
            return None
        place = self.place(identity) or "queue"
        message = self._read(identity)
        # The archive is looked at last: a message that ends meanwhile leaves its record after it is in there.
        if ended := self._ended(identity):
            return ended
        return Parcel(message, place) if message else None

    def archived(self, newest: int) -> tuple[Delivered, ...]:
        """The last `newest` messages that ended, newest first; damaged files are left out."""
        names = [name for _, name in sorted(self._archive_files(), reverse=True)[:newest]]
        found = (self._ended(name.removesuffix(".json")) for name in names)
        return tuple(sorted((e for e in found if e), key=lambda e: e.at, reverse=True))

    def place(self, identity: str) -> Place | None:
        """Where the token of a message lies; None if it has none."""
        return next((place for name, place, _ in reversed(self._tokens()) if name == identity), None)

    def put_mail(self, message: Message, text: str) -> bool:
        """Put `text` where the client's own mail is taken from; False if it can't be had any more.

        That is when the message was claimed, or has ended. One in `inbox/` moves; one in `mail/` stays as it is.
        """
        return self._put("mail", message, text)

    def put_inbox(self, message: Message, text: str) -> bool:
        """Put `text` where the client's hooks look; otherwise like `put_mail`."""
        return self._put("inbox", message, text)

    def claim(self, message: Message, text: str) -> bool:
        """Take the message for the client, as its own hook would; False if it was claimed before, or has ended."""
        return self.place(message.id) != "claimed" and self._put("claimed", message, text)

    def take_back(self, identity: str) -> bool:
        """Make sure that nobody can take the message any more; False if it was claimed before, or has ended."""
        for name, place, file in self._tokens():
            if name == identity and place != "claimed":
                # Removing and the claimer's rename exclude each other: exactly one of them finds the file.
                self._unlink(os.path.join(self.paths.dir, place, file))
        return self.place(identity) is None and self._is_waiting(identity)

    def put_back(self, identity: str) -> bool:
        """A message that was claimed and never used waits again; False if it is not claimed."""
        gone = False
        for name, place, file in self._tokens():
            if name == identity and place == "claimed":
                gone |= self._unlink(os.path.join(self.paths.dir, place, file))
        return gone and self._is_waiting(identity)

    def finish(self, identity: str, outcome: Outcome, rung: str, proof: str, at: float) -> bool:
        """End a message: into the archive, then its token and record go. `at` wall seconds.

        True if this call ended it; what has ended stays as it was, and what a crash left half done is completed.
        """
        message = self._read(identity) if ID.fullmatch(identity) else None
        first = False
        if message is not None and not self._has_ended(identity):
            with _refusing(f"make {self.paths.archive}"):
                os.makedirs(self.paths.archive, mode=0o700, exist_ok=True)
            ended = Delivered(message, outcome, at, rung, proof)
            first = write_once(self._archive(identity), msgspec.json.encode(ended))
        self._clear(identity)
        self._prune()
        return first

    def tidy(self) -> tuple[str, ...]:
        """Complete what a crash left half done; returns the tokens that were removed because no message has them.

        Only for the one process that puts and takes tokens, at its start.
        """
        for name in _names(self.paths.queue):
            if name.endswith(".json"):
                self._clear(name.removesuffix(".json"))
        removed = [
            os.path.join(place, file)
            for name, place, file in self._tokens()
            if not os.path.lexists(self._record(name)) and self._unlink(os.path.join(self.paths.dir, place, file))
        ]
        for folder in (self.paths.queue, self.paths.archive):
            self._remove_temporary(folder)
        return tuple(removed)

    def orphans(self) -> tuple[str, ...]:
        """Ids that were claimed before the present client was started, so by one that is dead.

        `launch.sh` is written anew for each start; a rename sets the token's ctime by the same clock.
        """
        started = stamp(self.paths.launch, "st_mtime_ns")
        taken = [(name, file) for name, place, file in self._tokens() if place == "claimed"]
        files = ((name, os.path.join(self.paths.claimed, file)) for name, file in taken)
        return tuple(name for name, path in files if 0 < stamp(path, "st_ctime_ns") < started)

    def note_typing(self, identity: str, *, entered: bool = False) -> None:
        """Note that from now on this message may stand in the client's input box, or was submitted there."""
        write_atomic(self._typing, f"{identity} {'entered' if entered else 'pasted'}")

    def typed_last(self) -> tuple[str, bool]:
        """The message that was typed last into the present client, and whether it was submitted; ("", False) if none."""
        noted = ""
        if stamp(self._typing, "st_mtime_ns") > stamp(self.paths.launch, "st_mtime_ns"):
            with suppress(FleetError):
                noted = read_text(self._typing, 1000) or ""
        identity, _, how = noted.partition(" ")
        return identity, how == "entered"

    def ring(self) -> bool:
        """Ring the bell: a client that watches `mail/` notices a removed file at once, a new one only later.

        (Claude Code 2.1.197, measured: 0.2 s against 0.7 s.) False if there was no bell old enough: a missing one
        is made for the next time. Whoever hears it makes it again.
        """
        bell = os.path.join(self.paths.mail, BELL)
        try:
            age = time.time() - os.stat(bell).st_mtime
        except FileNotFoundError:
            self._touch(bell)
            return False
        except OSError as error:
            raise FleetError(f"can't look at {bell}: {error.strerror}") from error
        # The clock may have been set back since it was made.
        return abs(age) > BELL_AGE and self._unlink(bell)

    def put_probe(self) -> None:
        """Put a file into `mail/` that a client whose mail works claims without telling the agent."""
        self._unlink(os.path.join(self.paths.claimed, PROBE))
        self._touch(os.path.join(self.paths.mail, PROBE))

    def probe_taken(self) -> bool:
        """Whether the probe was claimed: the client's mail is armed."""
        return os.path.lexists(os.path.join(self.paths.claimed, PROBE))

    def clear_probe(self) -> None:
        """Remove the probe, claimed or not."""
        for folder in (self.paths.mail, self.paths.claimed):
            self._unlink(os.path.join(folder, PROBE))

    def _put(self, place: Place, message: Message, text: str) -> bool:
        there = self.place(message.id)
        if there == place:
            return True
        if there == "claimed" or not self.take_back(message.id):
            return False
        name = token_name(message)
        draft = os.path.join(self.paths.queue, f".{name}")
        # Written elsewhere and moved in when it is whole: the folder's watchers see one event, and never a part.
        write_atomic(draft, text.encode("utf-8", "replace"), durable=True)
        target = os.path.join(self.paths.dir, place, name)
        with _refusing(f"put a message into {os.path.dirname(target)}"):
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            os.rename(draft, target)
        if self._is_waiting(message.id):
            return True
        # Somebody ended it meanwhile, and saw no token to remove.
        self._unlink(target)
        return False

    def _clear(self, identity: str) -> None:
        """Remove token and record of a message that has ended; the record goes last, as it names the token."""
        if not self._has_ended(identity):
            return
        for name, place, file in self._tokens():
            if name == identity and not self._unlink(os.path.join(self.paths.dir, place, file)):
                # Claimed since the folders were listed.
                self._unlink(os.path.join(self.paths.claimed, file))
        self._unlink(self._record(identity))

    def _tokens(self) -> list[tuple[str, Place, str]]:
        """(id, place, file) of all tokens. A token that moves meanwhile is listed twice, never missed."""
        found: list[tuple[str, Place, str]] = []
        for place in _WITH_TOKENS:
            matches = (_TOKEN.fullmatch(file) for file in _names(os.path.join(self.paths.dir, place)))
            found += ((match.group(1), place, match.group()) for match in matches if match)
        return found

    def _is_waiting(self, identity: str) -> bool:
        if not ID.fullmatch(identity):
            return False
        return os.path.lexists(self._record(identity)) and not self._has_ended(identity)

    def _has_ended(self, identity: str) -> bool:
        return os.path.lexists(self._archive(identity))

    def _ended(self, identity: str) -> Delivered | None:
        with suppress(FleetError, *MALFORMED):
            return _ENDED.decode(read_text(self._archive(identity), _LIMIT) or "")
        return None

    def _read(self, identity: str) -> Message | None:
        with suppress(FleetError, *MALFORMED):
            message = _MESSAGE.decode(read_text(self._record(identity), _LIMIT) or "")
            return message if message.id == identity else None
        return None

    @property
    def _typing(self) -> str:
        return os.path.join(self.paths.dir, "typing")

    def _record(self, identity: str) -> str:
        return os.path.join(self.paths.queue, f"{identity}.json")

    def _archive(self, identity: str) -> str:
        return os.path.join(self.paths.archive, f"{identity}.json")

    def _archive_files(self) -> list[tuple[int, str]]:
        """(time it was written in ns, name) of each file in the archive."""
        found: list[tuple[int, str]] = []
        for name in _names(self.paths.archive):
            with suppress(OSError):
                found.append((os.lstat(os.path.join(self.paths.archive, name)).st_mtime_ns, name))
        return found

    def _prune(self) -> None:
        if len(_names(self.paths.archive)) <= KEPT + _SLACK:
            return
        for _, name in sorted(self._archive_files(), reverse=True)[KEPT:]:
            # While its record is there, only the archive says that a message has ended.
            if not os.path.lexists(os.path.join(self.paths.queue, name)):
                self._unlink(os.path.join(self.paths.archive, name))

    def _remove_temporary(self, folder: str) -> None:
        for name in _names(folder, hidden=True):
            path = os.path.join(folder, name)
            with suppress(FileNotFoundError):
                if time.time() - os.lstat(path).st_mtime > _STALE:
                    os.unlink(path)

    def _unlink(self, path: str) -> bool:
        with _refusing(f"remove {path}"):
            try:
                os.unlink(path)
            except FileNotFoundError:
                return False
        return True

    def _touch(self, path: str) -> None:
        with _refusing(f"make {path}"):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))


@contextmanager
def _refusing(doing: str) -> Iterator[None]:
    """Turn what the system refuses into an error that says what could not be done."""
    try:
        yield
    except OSError as error:
        raise FleetError(f"can't {doing}: {error.strerror}") from error


def _names(folder: str, *, hidden: bool = False) -> list[str]:
    """The entries of a folder, sorted, either the visible or the hidden ones; none if there is no such folder."""
    try:
        return sorted(name for name in os.listdir(folder) if name.startswith(".") is hidden)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FleetError(f"can't read {folder}: {error.strerror}") from error


def _base36(number: int) -> str:
    text = ""
    while True:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
        if not number:
            return text
