"""How each kind of value in a team file is read, and the sentence when it is wrong; needs no pydantic."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticCustomError

from nbs_fleet.spec.envfile import OURS, VARIABLE
from nbs_fleet.spec.nodes import FloatText, FromVariable, IntText, exact, kind_of, value_of
from nbs_fleet.spec.problems import printable, quoted
from nbs_fleet.spec.units import seconds

TEAM_NAME = r"[a-z][a-z0-9-]{0,30}"
HANDLE = r"[A-Za-z][A-Za-z0-9_-]{0,62}"
PLAIN_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"

LONGEST_STRING = 120_000
"""Bytes of one argument or variable; Linux passes at most 128 KiB in one string."""


def fault(why: str) -> PydanticCustomError:
    """An error of our own wording."""
    return PydanticCustomError("fleet", "{why}", {"why": why})


def written(value: str) -> str:
    """The text as it stands in the file."""
    return value.source if isinstance(value, FromVariable) else value


def unwrapped(value: object) -> object:
    """Text from a variable as plain text."""
    return str(value) if isinstance(value, FromVariable) else value


def number(value: object) -> object:
    """Text from a variable may be a number or true/false where one is asked for."""
    if isinstance(value, FromVariable):
        kind = kind_of(value)
        return str(value) if kind in ("text", "null") else exact(value_of(str(value), kind))
    return exact(value) if isinstance(value, int | float) else value


def version(value: object) -> object:
    """True is 1 to Python, not to people."""
    return str(value) if isinstance(value, bool | FromVariable) else value


def duration(value: object) -> float:
    """Seconds, from text with a unit."""
    if isinstance(value, FromVariable):
        try:
            return seconds(str(value))
        except ValueError:
            raise fault(f"the value of {printable(value.source)} is not a duration; write 90s, 15m or 1h30m") from None
    if isinstance(value, bool) or not isinstance(value, str | IntText | FloatText):
        raise fault("must be a duration; write 90s, 15m or 1h30m")
    text = value if isinstance(value, str) else value.text
    try:
        return seconds(text)
    except ValueError as error:
        raise fault(f"{quoted(text)} {error}" if str(error).startswith("is ") else str(error)) from None


def longer_than_none(value: float) -> float:
    """Refuse a span of nothing."""
    if value <= 0:
        raise fault("must be longer than nothing; write 1s or more")
    return value


def _when_text(check: Callable[[str], object]) -> Callable[[object], object]:
    """Look at text before it becomes a plain string, while it knows whether it came from a variable."""
    return lambda value: check(value) if isinstance(value, str) else value


def filled(value: str) -> str:
    """Refuse empty text."""
    if not value.strip():
        raise fault("is empty; give a value or remove the key")
    return value


def passable(value: str) -> str:
    """Refuse what is too long for an argument or a variable."""
    if len(value.encode("utf-8", "replace")) > LONGEST_STRING:
        raise fault(f"is longer than {LONGEST_STRING} bytes; the system can't pass that on, use a file")
    return value


def as_text(value: object) -> object:
    """Numbers where text is meant are taken as they are written."""
    return value.text if isinstance(value, IntText | FloatText) else value


def env_name(value: str) -> str:
    """Refuse what can't be a variable's name, and our own."""
    if not re.fullmatch(VARIABLE, value):
        raise fault(f"{quoted(value)} can't be a variable's name; use letters, digits and _, not a digit first")
    if value in OURS:
        raise fault(f"{value} is set by nbs-fleet in each pane; remove it")
    return value


def _pass_name(value: str) -> str:
    if not re.fullmatch(VARIABLE + r"\*?", value):
        raise fault(f"{quoted(written(value))} is not a variable's name; write NAME or PREFIX_*")
    return str(value)


def _named(pattern: str, what: str, rule: str) -> Callable[[str], str]:
    shape = re.compile(pattern)

    def check(value: str) -> str:
        if shape.fullmatch(value):
            return str(value)
        near = re.sub(r"[^A-Za-z0-9_-]+", "-", str(value)).strip("-_")
        near = near.lower() if what == "team name" else near
        fits = not isinstance(value, FromVariable) and near != value and shape.fullmatch(near)
        raise fault(f"{quoted(written(value))} is not a {what}; " + (f"did you mean {quoted(near)}?" if fits else rule))

    return check


def command(value: object) -> object:
    """Words of text, split as a shell does."""
    if not isinstance(value, str):
        return value
    try:
        parts = shlex.split(str(value))
    except ValueError:
        raise fault("has a quote that is never closed; close it or write a list") from None
    return parts


def program(value: list[str]) -> list[str]:
    """Refuse a command without a program."""
    if not value or not value[0].strip():
        raise fault("names no program; write command: my-client or a list")
    return value


def false_or_section(value: object) -> object:
    """`false` switches a duty off; it is kept as None."""
    if isinstance(value, FromVariable):
        value = number(value)
    return None if value is False else value


def word_or_recovery(value: object) -> object:
    """A recovery from its one word."""
    return {"do": value} if isinstance(value, str) else value


def name_or_chat(value: object) -> object:
    """A chat from its name."""
    return {"name": value} if isinstance(value, str) else value


def one_or_more_values(value: object) -> object:
    """A list from its one value."""
    return [value] if isinstance(value, str) else value


def not_empty(value: list[object]) -> list[object]:
    """What pydantic sees to where a list is made of one value."""
    if not value:
        raise fault("is empty")
    return value


def _quiet(value: str) -> str:
    if not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]", value):
        raise fault(f"{quoted(written(value))} is not a time of day; write 22:00-07:00")
    return str(value)


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise fault(
            f"{quoted(written(value))} is no regular expression: {error}; mend it or escape its signs"
        ) from None
    return filled(str(value))


def _key_name(value: str) -> str:
    if not re.fullmatch(r"(([CMS]-)*([!-~]|[A-Z][A-Za-z]*[0-9]{0,2}))", value):
        raise fault(f"{quoted(written(value))} is no key; write y, Enter, Escape, Down or C-c")
    return str(value)


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+\S*", value):
        raise fault(f"{quoted(written(value))} is not an address; write https://host/path")
    return str(value)


_PLAIN_RULE = 'use letters, digits, ".", "_" or "-", at most 63, beginning with a letter or digit'

pass_name = _when_text(_pass_name)
team_name = _when_text(
    _named(TEAM_NAME, "team name", 'use a lower-case letter, then up to 30 lower-case letters, digits or "-"')
)
handle = _when_text(_named(HANDLE, "handle", 'use a letter, then up to 62 letters, digits, "_" or "-"'))
chat_name = _when_text(_named(PLAIN_NAME, "chat name", _PLAIN_RULE))
role_name = _named(PLAIN_NAME, "role name", _PLAIN_RULE)
quiet = _when_text(_quiet)
pattern = _when_text(_pattern)
key_name = _when_text(_key_name)
url = _when_text(_url)

CHECKS: dict[str, Callable[[Any], Any]] = {
    "unwrapped": unwrapped,
    "number": number,
    "version": version,
    "duration": duration,
    "longer_than_none": longer_than_none,
    "filled": filled,
    "passable": passable,
    "as_text": as_text,
    "env_name": env_name,
    "pass_name": pass_name,
    "exact": exact,
    "command": command,
    "program": program,
    "false_or_section": false_or_section,
    "word_or_recovery": word_or_recovery,
    "name_or_chat": name_or_chat,
    "one_or_more_values": one_or_more_values,
    "not_empty": not_empty,
    "team_name": team_name,
    "handle": handle,
    "chat_name": chat_name,
    "role_name": role_name,
    "quiet": quiet,
    "pattern": pattern,
    "key_name": key_name,
    "url": url,
}
"""All of them, by the names under which the ready-made validators have them."""
