"""Puts frames on the terminal: finished lines scroll away above, the live ones below are redrawn in place."""

from __future__ import annotations


class Painter:
    """Turns frames into bytes; it knows which live lines are on the screen. Pure."""

    def __init__(self) -> None:
        self.live: list[str] = []

    def frame(self, done: list[str], live: list[str], rows: int) -> bytes:
        """The bytes that append `done` and redraw `live`, which is cut from above to the height of the screen.

        The cursor stays on the last live line.
        """
        live = live[-max(1, rows) :]
        if not done and live == self.live:
            return b""
        same = 0
        if not done:
            most = min(len(live), len(self.live)) - 1
            while same < most and live[same] == self.live[same]:
                same += 1
        up = len(self.live) - 1 - same
        lines = done + live[same:]
        out = "\r" + (f"\x1b[{up}A" if up > 0 else "") + "\r\n".join(f"\x1b[2K{line}" for line in lines)
        if len(self.live) - same > len(lines):
            # The line below is one of the old ones, so this can't scroll.
            out += "\r\n\x1b[J\x1b[1A"
        self.live = live
        return out.encode()

    def reset(self) -> bytes:
        """Clear the screen and what scrolled away; the next frame draws all of it."""
        self.live = []
        return b"\x1b[2J\x1b[3J\x1b[H"
