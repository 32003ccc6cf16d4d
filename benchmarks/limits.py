"""Why a goal is missed, for each figure of which that is known: the limit that stops it. Pure."""

from __future__ import annotations

LIMITS: dict[str, str] = {}
"""By the beginning of a figure's name."""
UNKNOWN = "The limit is not known yet."


def limit_of(name: str) -> str:
    """What stops this figure; the longest beginning that fits counts."""
    fitting = [beginning for beginning in LIMITS if name.startswith(beginning)]
    return LIMITS[max(fitting, key=len)] if fitting else UNKNOWN
