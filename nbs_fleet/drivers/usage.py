"""Tokens of a session as a running count: lines of its file in, totals out. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

OPEN = 64
"""Requests whose numbers may still change: a client writes one request in several lines, mixed with those of others."""


class Use(Struct, frozen=True):
    """The tokens of one request, or a sum of them. `cached` were read from a cache, `stored` written into one."""

    input: int = 0
    output: int = 0
    cached: int = 0
    stored: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.input + self.output + self.cached + self.stored

    @property
    def context(self) -> int:
        """What the model had before it after this request: everything it read, and what it answered."""
        return self.total

    def plus(self, other: Use) -> Use:
        """Both together."""
        return Use(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.stored + other.stored,
        )


class Tally(Struct, frozen=True):
    """What was counted so far of one file: requests that are over, and the last ones, by their id.

    `context` is the size of the conversation after its last request, 0 as long as nobody knows (also right after a
    compaction); `model` answered it.
    """

    closed: Use = Use()
    open: tuple[tuple[str, Use], ...] = ()
    context: int = 0
    model: str = ""

    @property
    def spent(self) -> Use:
        """All tokens of this file."""
        total = self.closed
        for _, use in self.open:
            total = total.plus(use)
        return total

    def take(self, request: str, use: Use) -> Tally:
        """One more line of a request: it says what the request has come to, not what it adds."""
        others = tuple(pair for pair in self.open if pair[0] != request)
        known = (*others, (request, use))
        closed = self.closed
        for _, old in known[:-OPEN]:
            closed = closed.plus(old)
        return replace(self, closed=closed, open=known[-OPEN:])
