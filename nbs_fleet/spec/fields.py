"""The kinds of values a team file holds, as types for the models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, StringConstraints, WithJsonSchema

from nbs_fleet.spec import values
from nbs_fleet.spec.envfile import VARIABLE
from nbs_fleet.spec.nodes import exact
from nbs_fleet.spec.units import PATTERN
from nbs_fleet.spec.values import HANDLE, PLAIN_NAME, TEAM_NAME

WORD = BeforeValidator(values.unwrapped)
"""For fixed words: text from a variable is compared as plain text."""

NUMBER = BeforeValidator(values.number)
"""For numbers and truth values, which may come from a variable."""

VERSION = BeforeValidator(values.version)

_TEXT_SCHEMA = {"type": "string", "minLength": 1}
_LOOSE = WithJsonSchema({"type": ["string", "number"]})

Text = Annotated[str, AfterValidator(values.filled), WithJsonSchema(_TEXT_SCHEMA)]
Bool = Annotated[bool, NUMBER]
Duration = Annotated[
    float, BeforeValidator(values.duration), WithJsonSchema({"type": "string", "pattern": PATTERN, "minLength": 2})
]
Span = Annotated[Duration, AfterValidator(values.longer_than_none)]
Argument = Annotated[str, BeforeValidator(values.as_text), AfterValidator(values.passable), _LOOSE]
EnvName = Annotated[str, AfterValidator(values.env_name)]
EnvValue = Annotated[str, BeforeValidator(values.as_text), AfterValidator(values.passable), _LOOSE]
PassName = Annotated[
    str, BeforeValidator(values.pass_name), WithJsonSchema({"type": "string", "pattern": f"^{VARIABLE}\\*?$"})
]
FreeForm = Annotated[dict[str, Any], AfterValidator(exact)]
Command = Annotated[
    list[Argument],
    BeforeValidator(
        values.command, json_schema_input_type=Annotated[str, StringConstraints(min_length=1)] | list[Argument]
    ),
    AfterValidator(values.program),
]
TeamName = Annotated[
    str,
    BeforeValidator(values.team_name),
    WithJsonSchema({"type": "string", "pattern": f"^{TEAM_NAME}$"}),
]
Handle = Annotated[
    str,
    BeforeValidator(values.handle),
    WithJsonSchema({"type": "string", "pattern": f"^{HANDLE}$"}),
]
ChatName = Annotated[
    str,
    BeforeValidator(values.chat_name),
    WithJsonSchema({"type": "string", "pattern": f"^{PLAIN_NAME}$"}),
]
RoleName = Annotated[str, AfterValidator(values.role_name)]
Quiet = Annotated[
    str,
    BeforeValidator(values.quiet),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}-[0-9]{2}:[0-9]{2}$"}),
]
Pattern = Annotated[str, BeforeValidator(values.pattern), WithJsonSchema(_TEXT_SCHEMA)]
KeyName = Annotated[str, BeforeValidator(values.as_text), BeforeValidator(values.key_name), _LOOSE]
Url = Annotated[str, BeforeValidator(values.url), WithJsonSchema({"type": "string", "pattern": "^https?://"})]


def false_or(kind: Any) -> BeforeValidator:
    """`false`, or the mapping `kind`."""
    return BeforeValidator(values.false_or_section, json_schema_input_type=Literal[False] | kind)


def word_or(kind: Any, words: Any) -> BeforeValidator:
    """One of `words`, or the mapping `kind`."""
    return BeforeValidator(values.word_or_recovery, json_schema_input_type=words | kind)


def name_or(kind: Any) -> BeforeValidator:
    """A chat's name, or the mapping `kind`."""
    return BeforeValidator(values.name_or_chat, json_schema_input_type=ChatName | kind)


def one_or_more(kind: Any) -> BeforeValidator:
    """One value, or a list of them."""
    return BeforeValidator(values.one_or_more_values, json_schema_input_type=kind | list[kind])
