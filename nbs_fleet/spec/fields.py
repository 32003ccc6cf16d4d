"""The kinds of values a team file holds: how each is read, and the sentence when it is wrong."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from nbs_fleet.spec.envfile import OURS, VARIABLE
from nbs_fleet.spec.nodes import FloatText, FromVariable, IntText, exact, kind_of, value_of
from nbs_fleet.spec.problems import printable, quoted
from nbs_fleet.spec.units import PATTERN, seconds

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


def _unwrap(value: object) -> object:
    return str(value) if isinstance(value, FromVariable) else value


def _number(value: object) -> object:
    """Text from a variable may be a number or true/false where one is asked for."""
    if isinstance(value, FromVariable):
        kind = kind_of(value)
        return str(value) if kind in ("text", "null") else exact(value_of(str(value), kind))
    return exact(value) if isinstance(value, int | float) else value


def _version(value: object) -> object:
    """True is 1 to Python, not to people."""
    return str(value) if isinstance(value, bool | FromVariable) else value


def _duration(value: object) -> float:
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


def _longer_than_none(value: float) -> float:
    if value <= 0:
        raise fault("must be longer than nothing; write 1s or more")
    return value


def _when_text(check: Callable[[str], object]) -> BeforeValidator:
    """Look at text before it becomes a plain string, while it knows whether it came from a variable."""
    return BeforeValidator(lambda value: check(value) if isinstance(value, str) else value)


def _filled(value: str) -> str:
    if not value.strip():
        raise fault("is empty; give a value or remove the key")
    return value


def _passable(value: str) -> str:
    if len(value.encode("utf-8", "replace")) > LONGEST_STRING:
        raise fault(f"is longer than {LONGEST_STRING} bytes; the system can't pass that on, use a file")
    return value


def _as_text(value: object) -> object:
    """Numbers where text is meant are taken as they are written."""
    return value.text if isinstance(value, IntText | FloatText) else value


def _env_name(value: str) -> str:
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


def _command(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        parts = shlex.split(str(value))
    except ValueError:
        raise fault("has a quote that is never closed; close it or write a list") from None
    return parts


def _program(value: list[str]) -> list[str]:
    if not value or not value[0].strip():
        raise fault("names no program; write command: my-client or a list")
    return value


def _false_or(value: object) -> object:
    """`false` switches a duty off; it is kept as None."""
    if isinstance(value, FromVariable):
        value = _number(value)
    return None if value is False else value


def _word_or_recovery(value: object) -> object:
    return {"do": value} if isinstance(value, str) else value


def _name_or_chat(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


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
    return _filled(str(value))


def _key_name(value: str) -> str:
    if not re.fullmatch(r"(([CMS]-)*([!-~]|[A-Z][A-Za-z]*[0-9]{0,2}))", value):
        raise fault(f"{quoted(written(value))} is no key; write y, Enter, Escape, Down or C-c")
    return str(value)


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+\S*", value):
        raise fault(f"{quoted(written(value))} is not an address; write https://host/path")
    return str(value)


WORD = BeforeValidator(_unwrap)
"""For fixed words: text from a variable is compared as plain text."""

NUMBER = BeforeValidator(_number)
"""For numbers and truth values, which may come from a variable."""

VERSION = BeforeValidator(_version)

_TEXT_SCHEMA = {"type": "string", "minLength": 1}
_LOOSE = WithJsonSchema({"type": ["string", "number"]})

Text = Annotated[str, AfterValidator(_filled), WithJsonSchema(_TEXT_SCHEMA)]
Bool = Annotated[bool, NUMBER]
Duration = Annotated[
    float, BeforeValidator(_duration), WithJsonSchema({"type": "string", "pattern": PATTERN, "minLength": 2})
]
Span = Annotated[Duration, AfterValidator(_longer_than_none)]
Argument = Annotated[str, BeforeValidator(_as_text), AfterValidator(_passable), _LOOSE]
EnvName = Annotated[str, AfterValidator(_env_name)]
EnvValue = Annotated[str, BeforeValidator(_as_text), AfterValidator(_passable), _LOOSE]
PassName = Annotated[str, _when_text(_pass_name), WithJsonSchema({"type": "string", "pattern": f"^{VARIABLE}\\*?$"})]
FreeForm = Annotated[dict[str, Any], AfterValidator(exact)]
Command = Annotated[
    list[Argument],
    BeforeValidator(_command, json_schema_input_type=Annotated[str, StringConstraints(min_length=1)] | list[Argument]),
    AfterValidator(_program),
]
TeamName = Annotated[
    str,
    _when_text(
        _named(TEAM_NAME, "team name", 'use a lower-case letter, then up to 30 lower-case letters, digits or "-"')
    ),
    WithJsonSchema({"type": "string", "pattern": f"^{TEAM_NAME}$"}),
]
Handle = Annotated[
    str,
    _when_text(_named(HANDLE, "handle", 'use a letter, then up to 62 letters, digits, "_" or "-"')),
    WithJsonSchema({"type": "string", "pattern": f"^{HANDLE}$"}),
]
_PLAIN_RULE = 'use letters, digits, ".", "_" or "-", at most 63, beginning with a letter or digit'
ChatName = Annotated[
    str,
    _when_text(_named(PLAIN_NAME, "chat name", _PLAIN_RULE)),
    WithJsonSchema({"type": "string", "pattern": f"^{PLAIN_NAME}$"}),
]
RoleName = Annotated[str, AfterValidator(_named(PLAIN_NAME, "role name", _PLAIN_RULE))]
Quiet = Annotated[
    str, _when_text(_quiet), WithJsonSchema({"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}-[0-9]{2}:[0-9]{2}$"})
]
Pattern = Annotated[str, _when_text(_pattern), WithJsonSchema(_TEXT_SCHEMA)]
KeyName = Annotated[str, BeforeValidator(_as_text), _when_text(_key_name), _LOOSE]
Url = Annotated[str, _when_text(_url), WithJsonSchema({"type": "string", "pattern": "^https?://"})]


def false_or(kind: Any) -> BeforeValidator:
    """`false`, or the mapping `kind`."""
    return BeforeValidator(_false_or, json_schema_input_type=Literal[False] | kind)


def word_or(kind: Any, words: Any) -> BeforeValidator:
    """One of `words`, or the mapping `kind`."""
    return BeforeValidator(_word_or_recovery, json_schema_input_type=words | kind)


def name_or(kind: Any) -> BeforeValidator:
    """A chat's name, or the mapping `kind`."""
    return BeforeValidator(_name_or_chat, json_schema_input_type=ChatName | kind)


def one_or_more(kind: Any) -> BeforeValidator:
    """One value, or a list of them."""
    return BeforeValidator(_one_or_more, json_schema_input_type=kind | list[kind])
