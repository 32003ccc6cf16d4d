"""Durations as people write them (`15m`, `1h30m`, `500ms`) and as seconds."""

from __future__ import annotations

import re

PATTERN = (
    r"^([0-9]+(\.[0-9]+)?d)?([0-9]+(\.[0-9]+)?h)?([0-9]+(\.[0-9]+)?m)?([0-9]+(\.[0-9]+)?s)?([0-9]+(\.[0-9]+)?ms)?$"
)
"""What a duration looks like: at least one number with its unit, large units first."""

LONGEST = 3650 * 86400.0

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_SHAPE = re.compile(PATTERN)
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[dhms])")
_WORDY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\.?")
_WORDS = {
    "d": ("d", "day", "days"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"),
}
_UNIT = {word: unit for unit, words in _WORDS.items() for word in words}


def seconds(text: str) -> float:
    """Seconds of a duration such as `90s`; ValueError says what is wrong and what would be right."""
    if len(text) > 40:
        raise ValueError("is not a duration; write 90s, 15m or 1h30m")
    if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text):
        raise ValueError(f"a duration needs a unit; did you mean {text.lstrip('+-')}s?")
    if text.startswith("-"):
        raise ValueError("a duration can't be negative; write 0s for none")
    if not text or not _SHAPE.fullmatch(text):
        wordy = _WORDY.fullmatch(text.strip())
        unit = _UNIT.get(wordy.group(2).lower()) if wordy else None
        if wordy and unit:
            raise ValueError(f"is not a duration; did you mean {wordy.group(1)}{unit}?")
        raise ValueError("is not a duration; write 90s, 15m or 1h30m")
    total = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if total > LONGEST:
        raise ValueError("is longer than 3650 days; write less")
    return total


def duration(value: float) -> str:
    """The shortest exact writing of so many seconds, down to the millisecond: 900 -> `15m`, 90 -> `1m30s`."""
    left = round(value * 1000)
    text = ""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        number, left = divmod(left, size)
        text += f"{number}{unit}" if number else ""
    return text or "0s"
