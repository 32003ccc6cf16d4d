"""JSON that nothing breaks: what other programs wrote is read as values that can be written, what we say can always be.

Other programs write what JSON's grammar allows and few readers expect: halves of surrogate pairs (JavaScript does, where
it cuts a text in the middle of a pair), numbers that no float holds, NaN, a thousand brackets.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

MALFORMED = (ValueError, RecursionError)
"""What `json` and `msgspec` raise for bytes that they can't read: no JSON, no UTF-8, of another shape, nested too deep."""

LAST_SECOND = 253_402_300_799
"""The last one of the year 9999: libraries for times know no later one."""

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_HALF = re.compile(r"[\ud800-\udfff]")


def loads(text: str) -> Any:
    """The value of a JSON text. A half of a surrogate pair is U+FFFD, a number that is none None. Raises MALFORMED."""
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text)
    return _DECODER.decode(text)


def load_object(text: str) -> dict[str, Any]:
    """The JSON object in a text; an empty one if it holds something else, or nothing that can be read."""
    try:
        found = loads(text)
    except MALFORMED:
        return {}
    return found if isinstance(found, dict) else {}


def seconds(value: object) -> float:
    """Wall seconds that a clock can show; 0 for whatever else somebody wrote in their place."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LAST_SECOND
    return float(value) if known else 0.0  # type: ignore[arg-type]  # `known` says so


def encode(value: Any) -> bytes:
    """The value as JSON; characters that can't be written as UTF-8 (bytes of a file that were none) become U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_writable(msgspec.to_builtins(value)))


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_writable(key): _writable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(item) for item in value]
    return value


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=lambda _name: None)
