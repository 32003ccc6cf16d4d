"""The terminal: raw mode and back, its size, its bytes as keys, and the signals that come from it."""

from __future__ import annotations

import os
import signal
import termios
import tty
from collections.abc import Callable

from nbs_fleet.sim.kernel import Loop
from nbs_fleet.sim.keys import Key, Parser

ESC_SECONDS = 0.05
_ON = b"\x1b[?25l\x1b[?2004h\x1b[?1004h"
_OFF = b"\x1b[?1004l\x1b[?2004l\x1b[?25h"


def write(data: bytes) -> None:
    """Send bytes; a terminal that is gone is noticed by its hang-up signal."""
    while data:
        try:
            data = data[os.write(1, data) :]
        except BlockingIOError:
            os.set_blocking(1, True)
        except OSError:
            return


def size() -> tuple[int, int]:
    """Columns and rows; 80 by 24 where the terminal does not say."""
    try:
        found = os.get_terminal_size(0)
    except OSError:
        return 80, 24
    return max(20, found.columns or 80), max(4, found.lines or 24)


class Terminal:
    """Calls `keys` with what was pressed, `resized` after SIGWINCH, and `gone` when it hangs up."""

    def __init__(
        self, loop: Loop, keys: Callable[[list[Key]], None], resized: Callable[[], None], gone: Callable[[], None]
    ) -> None:
        self.loop = loop
        self.keys = keys
        self.gone = gone
        self.parser = Parser()
        self.saved = termios.tcgetattr(0)
        # No cursor, bracketed paste, focus events.
        tty.setraw(0)
        write(_ON)
        loop.read(0, self._ready)
        loop.on_signal(signal.SIGWINCH, resized)

    def _ready(self) -> None:
        try:
            data = os.read(0, 65536)
        except OSError:
            data = b""
        if not data:
            self.loop.forget(0)
            self.gone()
            return
        self.keys(self.parser.feed(data))
        if self.parser.waiting:
            self.loop.call_later(ESC_SECONDS, lambda: self.keys(self.parser.flush()))

    def close(self) -> None:
        """Give it back as it was."""
        write(_OFF)
        try:
            termios.tcsetattr(0, termios.TCSANOW, self.saved)
        except termios.error:
            return
