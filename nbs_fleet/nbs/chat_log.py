"""The messages of a chat in memory, kept up with a file that only grows at its end or loses its beginning. Pure."""

from __future__ import annotations

from bisect import bisect_right

from nbs_fleet.nbs.chat_format import ChatMessage, decode_line, normal


class Log:
    """The decoded body of a chat file.

    `messages` is the one index space: cursors, counts and searches number these. Lines that are no message are kept
    in `body`, counted in `skipped`, and have no index.
    """

    def __init__(self) -> None:
        self.body = bytearray()
        self.messages: list[ChatMessage] = []
        self.skipped = 0
        self.gone = 0
        """Messages that were at the beginning once and went into archives: with it, a message keeps its number."""
        self._ends: list[int] = []
        self._gone = 0
        """Bytes that were dropped from the beginning: `_ends` counts them too."""

    def follow(self, data: bytes, place: int) -> bool:
        """Take in the file as it is now, whose body begins at `place`; True if what was known still begins it.

        Only what is new is decoded.
        """
        grown = data.startswith(self.body, place)
        if not grown:
            self.gone += self._left(data, place)
            self.body, self.messages, self.skipped, self._ends, self._gone = bytearray(), [], 0, [], 0
        if len(data) > place + len(self.body):
            self.add(normal(data[place + len(self.body) :]))
        return grown

    def _left(self, data: bytes, place: int) -> int:
        """How many of the known messages are no longer at the beginning of a file that does not go on from them.

        An archive takes the first ones: what is left of the known lines begins the file. A file that begins like the
        known one was cut at its end or mended; one that has nothing of it is past all that is known.
        """
        first = data[place : data.find(b"\n", place) + 1]
        at = self.body.find(first) if first else -1
        while at >= 0:
            if self.body[at - 1 : at] == b"\n" and data.startswith(self.body[at:], place):
                return bisect_right(self._ends, at + self._gone)
            at = self.body.find(first, at + 1)
        head = self.messages[0] if self.messages else None
        lines = (decode_line(line.rstrip(b"\r")) for line in data[place:].split(b"\n"))
        begins = next((message for message in lines if message is not None), None)
        return 0 if begins is None or begins == head else len(self.messages)

    def add(self, more: bytes) -> None:
        """Append lines, each with its newline."""
        place = self._gone + len(self.body)
        self.body += more
        messages, ends = self.messages, self._ends
        for line in more.split(b"\n"):
            place += len(line) + 1
            message = decode_line(line) if line else None
            if message is not None:
                messages.append(message)
                ends.append(place)
            elif line:
                self.skipped += 1

    def line(self, index: int) -> bytes:
        """The raw line of a message, with its newline."""
        end = self._ends[index] - self._gone
        return bytes(self.body[self.body.rfind(b"\n", 0, end - 1) + 1 : end])

    def cut(self, count: int) -> tuple[bytes, bytes]:
        """The body in two parts, after the message number `count` (counted from 1)."""
        end = self._ends[count - 1] - self._gone
        with memoryview(self.body) as view:
            return bytes(view[:end]), bytes(view[end:])

    def drop(self, count: int) -> None:
        """Forget the first `count` messages and the lines before and between them."""
        size = self._ends[count - 1] - self._gone
        self.skipped -= self.body.count(b"\n", 0, size) - count
        self.gone += count
        del self.body[:size]
        del self.messages[:count]
        del self._ends[:count]
        self._gone += size
