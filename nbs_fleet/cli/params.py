"""How a command's typed signature declares its command line: markers, and the help made of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin

from msgspec import Struct

from nbs_fleet.spec.units import duration, seconds

HELP_WIDTH = 100


class Param(Struct, frozen=True):
    """The marker of one parameter. Without `flags` it is positional.

    `parse` turns its text into a value and raises ValueError with a message; `complete` names what the shell
    offers for it: `handle`, `team`, `template` or `file`.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    parse: Callable[[str], Any] | None = None
    choices: tuple[str, ...] = ()
    complete: str = ""


def arg(
    metavar: str,
    text: str,
    *,
    parse: Callable[[str], Any] | None = None,
    choices: tuple[str, ...] = (),
    complete: str = "",
) -> Param:
    """A positional parameter. `tuple[str, ...]` takes one or more; with the default `()`, any number."""
    return Param(text, (), metavar, parse, choices, complete)


def opt(
    *flags: str,
    help: str,  # noqa: A002  # reads as what it is at each use
    metavar: str | None = None,
    parse: Callable[[str], Any] | None = None,
    choices: tuple[str, ...] = (),
    complete: str = "",
) -> Param:
    """An option. `bool` takes no value (a second flag `--no-...` sets False); `tuple[str, ...]` takes A,B and repeats."""
    return Param(help, flags, metavar, parse, choices, complete)


def count(text: str) -> int:
    """A whole number, zero or more."""
    if not text.isascii() or not text.isdigit():
        raise ValueError("is not a whole number")
    return int(text)


Json = Annotated[bool, opt("--json", help="print JSON (one object, schema 1)")]
TeamName = Annotated[
    str | None, opt("--team", metavar="NAME|FILE", help="the team; default: the one found from here", complete="team")
]
Handle = Annotated[str, arg("HANDLE", "the agent", complete="handle")]
Handles = Annotated[tuple[str, ...], arg("HANDLE", "the agents", complete="handle")]
Only = Annotated[
    tuple[str, ...], opt("--only", metavar="H,..", help="these agents only; touches nobody else", complete="handle")
]
File = Annotated[str, arg("FILE", "the team file", complete="file")]


class Field(Struct, frozen=True):
    """One parameter of a command as declared: name, marker, plain type, default (or `required`)."""

    name: str
    param: Param
    type: Any
    default: Any = None
    required: bool = False

    @property
    def many(self) -> bool:
        """It takes several values."""
        return get_origin(self.type) is tuple

    @property
    def label(self) -> str:
        """How help and messages name it."""
        if self.param.flags:
            value = "" if self.type is bool else f" {self.param.metavar or self.name.upper()}"
            return ", ".join(self.param.flags) + value
        name = self.param.metavar or self.name.upper()
        return f"{name}..." if self.many else name


class Command(Struct, frozen=True):
    """One command, ready to parse and run. `name` may have two words."""

    name: str
    run: Callable[..., int | None]
    about: str
    examples: tuple[str, ...]
    fields: tuple[Field, ...]


def command(name: str, run: Callable[..., int | None]) -> Command:
    """The command declared by this function's signature and docstring."""
    about, examples, *_ = [*re.split(r"\n(?:For example|Examples?):\n", inspect.cleandoc(run.__doc__ or "")), ""]
    lines = tuple(line.strip() for line in examples.splitlines() if line.strip())
    fields = tuple(_field(p) for p in inspect.signature(run, eval_str=True).parameters.values())
    return Command(name, run, about.strip(), lines, fields)


def _field(parameter: inspect.Parameter) -> Field:
    kind, param = get_args(parameter.annotation)
    if get_origin(kind) is UnionType:
        kind = next(t for t in get_args(kind) if t is not NoneType)
    required = parameter.default is inspect.Parameter.empty
    return Field(parameter.name, param, kind, None if required else parameter.default, required)


def usage(spec: Command) -> str:
    """The command with its parameters, in brackets where they may be left out; broken into lines like a paragraph."""
    start = f"usage: nbs-fleet {spec.name}"
    lines = [start]
    for field in spec.fields:
        flags = "/".join(field.param.flags)
        label = flags + field.label[len(", ".join(field.param.flags)) :]
        part = label if field.required else f"[{label}]"
        if len(lines[-1]) + 1 + len(part) > HELP_WIDTH:
            lines.append(" " * len(start))
        lines[-1] += f" {part}"
    return "\n".join(lines)


def rows(spec: Command) -> list[tuple[str, str]]:
    """One row per parameter: how it is written, and what it means with its default."""
    return [(field.label, _meaning(field)) for field in spec.fields]


def _meaning(field: Field) -> str:
    text = field.param.help
    if field.param.choices:
        *most, last = field.param.choices
        text += f": {', '.join(most)} or {last}" if most else f": {last}"
    default = field.default
    if field.required or default in (None, (), "") or isinstance(default, bool):
        return text
    shown = duration(default) if field.param.parse is seconds else str(default)
    return f"{text} (default {shown})"


def help_text(spec: Command) -> str:
    """What `--help` shows: usage, what it does, parameters, examples."""
    left = [(label, text) for label, text in rows(spec)] + [("-h, --help", "show this")]
    wide = max(len(label) for label, _ in left)
    body = [usage(spec), "", spec.about, ""]
    body += [f"  {label:<{wide}}  {text}" for label, text in left]
    body += ["", "example:" if len(spec.examples) == 1 else "examples:", *(f"  {line}" for line in spec.examples)]
    return "\n".join(body)
