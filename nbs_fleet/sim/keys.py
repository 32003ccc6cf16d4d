"""Reads the bytes of a raw terminal as keys and pastes, by the rules measured on the real client. Pure."""

from __future__ import annotations

from typing import NamedTuple

PASTE_BYTES = 64
"""One unbracketed read of this many bytes or more counts as a paste: an Enter in it is a line break."""

_PASTE_ON = b"\x1b[200~"
_PASTE_OFF = b"\x1b[201~"
_SEQUENCES = {
    "[A": "up",
    "[B": "down",
    "[C": "right",
    "[D": "left",
    "OA": "up",
    "OB": "down",
    "OC": "right",
    "OD": "left",
    "[H": "home",
    "[F": "end",
    "OH": "home",
    "OF": "end",
    "[1~": "home",
    "[4~": "end",
    "[3~": "delete",
    "[Z": "shift-tab",
    "[I": "focus",
    "[O": "focus",
}
_CONTROLS = {"\r": "enter", "\n": "newline", "\t": "tab", "\x7f": "backspace", "\x08": "backspace", "\x1b": "esc"}


class Key(NamedTuple):
    """One key: `name` is "text", "paste", "enter", "esc", "up" ..., or "ctrl-x"; `text` only for the first two."""

    name: str
    text: str = ""


class Parser:
    """Bytes in, keys out; keeps what is not complete yet."""

    def __init__(self) -> None:
        self.buffer = b""
        self.pasting = False

    @property
    def waiting(self) -> bool:
        """A lone Escape byte is held back: it may be the head of a sequence. `flush` after a moment."""
        return self.buffer == b"\x1b"

    def flush(self) -> list[Key]:
        """No more came: the Escape was a key."""
        if not self.waiting:
            return []
        self.buffer = b""
        return [Key("esc")]

    def feed(self, data: bytes) -> list[Key]:
        """Take the bytes of one read."""
        keys: list[Key] = []
        if not self.buffer and not self.pasting and len(data) >= PASTE_BYTES and b"\x1b" not in data:
            text, self.buffer = _decode(data)
            return [Key("paste", text)] if text else []
        self.buffer += data
        while self.buffer:
            if self.pasting or self.buffer.startswith(_PASTE_ON):
                key = self._paste()
            elif self.buffer.startswith(b"\x1b"):
                key = self._escape()
            else:
                key = self._plain()
            if key is None:
                break
            if key.name != "nothing":
                keys.append(key)
        return keys

    def _paste(self) -> Key | None:
        if not self.pasting:
            self.buffer = self.buffer[len(_PASTE_ON) :]
            self.pasting = True
        body, end, rest = self.buffer.partition(_PASTE_OFF)
        if not end:
            return None
        self.pasting = False
        self.buffer = rest
        text = body.decode("utf-8", "replace")
        return Key("paste", text.replace("\r\n", "\n").replace("\r", "\n"))

    def _escape(self) -> Key | None:
        text = self.buffer.decode("latin-1")
        if len(text) == 1:
            return None
        if text[1] == "\x1b":
            self.buffer = self.buffer[1:]
            return Key("esc")
        if text[1] not in "[O":
            self.buffer = self.buffer[2:]
            return Key("newline" if text[1] == "\r" else f"alt-{text[1]}")
        end = 2
        while end < len(text) and not "@" <= text[end] <= "~":
            end += 1
        if end >= len(text):
            return None
        sequence = text[1 : end + 1]
        self.buffer = self.buffer[end + 1 :]
        return Key(_SEQUENCES.get(sequence, "nothing"))

    def _plain(self) -> Key | None:
        head = chr(self.buffer[0])
        if head in _CONTROLS:
            self.buffer = self.buffer[1:]
            return Key(_CONTROLS[head])
        if head < " ":
            self.buffer = self.buffer[1:]
            return Key(f"ctrl-{chr(ord(head) + 96)}" if "\x01" <= head <= "\x1a" else "nothing")
        end = 0
        while end < len(self.buffer) and self.buffer[end] >= 32 and self.buffer[end] != 127:
            end += 1
        text, rest = _decode(self.buffer[:end])
        if not text:
            return None
        self.buffer = rest + self.buffer[end:]
        return Key("text", text)


def _decode(data: bytes) -> tuple[str, bytes]:
    """The text, and the bytes of a last character that is still incomplete."""
    for cut in range(4):
        head = data[: len(data) - cut]
        try:
            return head.decode(), data[len(data) - cut :] if cut else b""
        except UnicodeDecodeError as error:
            if error.end != len(head) or error.reason != "unexpected end of data":
                break
    return data.decode("utf-8", "replace"), b""
