"""The messages of a chat in memory, kept up with a file that only grows at its end or loses its beginning. Pure."""

from __future__ import annotations

from nbs_fleet.nbs.chat_format import ChatMessage, decode_line, normal


class Log:
    """The decoded body of a chat file.

    `messages` is the one index space: cursors, counts and searches number these. Lines that are no message are kept
    in `body`, counted in `skipped`, and have no index.
    """

    def __init__(self) -> None:
        self.body = b""
        self.messages: list[ChatMessage] = []
        self.skipped = 0
        self._ends: list[int] = []

    def follow(self, body: bytes) -> bool:
        """Take in the body as it is now; True if what was known is still its beginning. Only what is new is decoded."""
        grown = body.startswith(self.body)
        if not grown:
            self.body, self.messages, self.skipped, self._ends = b"", [], 0, []
        self.add(normal(body[len(self.body) :] if self.body else body))
        return grown

    def add(self, more: bytes) -> None:
        """Append lines, each with its newline."""
        place = len(self.body)
        self.body = self.body + more if self.body else more
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
        end = self._ends[index]
        return self.body[self.body.rfind(b"\n", 0, end - 1) + 1 : end]

    def cut(self, count: int) -> tuple[bytes, bytes]:
        """The body in two parts, after the message number `count` (counted from 1)."""
        end = self._ends[count - 1]
        return self.body[:end], self.body[end:]

    def drop(self, count: int) -> None:
        """Forget the first `count` messages and the lines before and between them."""
        old, self.body = self.cut(count)
        del self.messages[:count]
        self._ends = [end - len(old) for end in self._ends[count:]]
        self.skipped -= old.count(b"\n") - count
