"""How often a screen is looked at: often while it changes, ever more rarely while it does not. Pure."""

from __future__ import annotations

from msgspec import Struct

FIRST = 0.5
"""Seconds between two looks at a screen that changes: the bound of what this costs."""
LAST = 4.0


class Pace(Struct, frozen=True):
    """Seconds until the next look."""

    seconds: float = FIRST

    def after(self, *, changed: bool) -> Pace:
        """The pace after a look that saw a change, or none."""
        return Pace(FIRST if changed else min(self.seconds * 2, LAST))
