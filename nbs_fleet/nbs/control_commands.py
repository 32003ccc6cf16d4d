r"""What an agent tells its sidecar: `register-chat PATH` and the like, with or without `\nbs-` in front. Pure."""

from __future__ import annotations

from msgspec import Struct

PREFIX = "\\nbs-"
SET_POLL = "set-poll-interval"
KINDS = ("chat", "bus", "hub")
VERBS = (*(f"{verb}-{kind}" for kind in KINDS for verb in ("register", "unregister")), SET_POLL)
LONGEST_POLL = 100_000
"""Seconds; the nbs tools take no longer interval."""
_LONGEST = 4096


class Command(Struct, frozen=True):
    """One command: its verb without prefix, and its path as written, or the seconds of `set-poll-interval`."""

    verb: str
    argument: str

    @property
    def kind(self) -> str | None:
        """`chat`, `bus` or `hub` of what is registered or unregistered."""
        return None if self.verb == SET_POLL else self.verb.rpartition("-")[2]

    @property
    def registers(self) -> bool:
        """Whether it adds something."""
        return self.verb.startswith("register-")

    @property
    def seconds(self) -> int:
        """The interval of `set-poll-interval`."""
        return int(self.argument)


class Problem(Struct, frozen=True):
    """A line that is no command, and why."""

    line: str
    why: str


def parse_command(line: str) -> Command | Problem | None:
    """The command of one line; None for blank lines and `#` comments.

    The second word is the path, as for the nbs tools; what comes after it is ignored.
    """
    if len(line) > _LONGEST:
        return Problem(line[:80] + "...", f"the line is longer than {_LONGEST} characters")
    words = line.split()
    if not words or words[0].startswith("#"):
        return None
    verb = words[0].removeprefix(PREFIX).removeprefix("nbs-")
    if verb not in VERBS:
        from difflib import get_close_matches  # noqa: PLC0415 -- for a mistyped verb only

        near = get_close_matches(verb, VERBS, 1)
        return Problem(line.strip(), f"unknown verb {verb!r}" + (f"; did you mean {near[0]}?" if near else ""))
    if len(words) < 2:
        return Problem(line.strip(), f"{verb} needs {'seconds' if verb == SET_POLL else 'a path'}")
    argument = words[1]
    if verb == SET_POLL and not (argument.isascii() and argument.isdigit() and int(argument) <= LONGEST_POLL):
        return Problem(line.strip(), f"{argument!r} is no number of seconds from 0 to {LONGEST_POLL}")
    return Command(verb, argument)
