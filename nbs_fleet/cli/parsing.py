"""From the words of a command line to the keyword arguments of a command.

Options may stand anywhere, as `--name value`, `--name=value`, `-n value` or `-nvalue`; `--` ends them.
(argparse mixes up `--` with options between positionals, and its messages change with Python's version.)
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from nbs_fleet.cli.params import Command, Field
from nbs_fleet.errors import UsageError

HELP = ("-h", "--help")


class HelpWanted(Exception):  # noqa: N818  # a request, not an error
    """`--help` stood on the command line."""


def parse(spec: Command, argv: list[str]) -> dict[str, Any]:
    """The keyword arguments for `spec.run`; raises UsageError or HelpWanted."""
    words, end = argv, argv.index("--") if "--" in argv else len(argv)
    if any(word in HELP for word in words[:end]):
        raise HelpWanted
    reader = _Reader(spec)
    rest = reader.options(list(words[:end]))
    reader.positionals(rest + words[end + 1 :])
    return reader.values


class _Reader:
    """Collects the values of one command line."""

    def __init__(self, spec: Command) -> None:
        self._spec = spec
        self._flags = {flag: field for field in spec.fields for flag in field.param.flags}
        self._given: set[str] = set()
        self.values: dict[str, Any] = {field.name: field.default for field in spec.fields}

    def options(self, words: list[str]) -> list[str]:
        """Take the options out of these words; returns the others."""
        others: list[str] = []
        while words:
            word = words.pop(0)
            if not word.startswith("-") or word == "-":
                others.append(word)
                continue
            flag, value = self._split(word)
            field = self._flags.get(flag)
            if field is None:
                raise self._refuse(f"unknown option {flag}{self._near(flag)}")
            if field.type is bool:
                if value is not None:
                    raise self._refuse(f"{flag} takes no value")
                self.values[field.name] = not flag.startswith("--no-")
                continue
            if value is None:
                if not words:
                    raise self._refuse(f"{flag} needs a value: {field.label}")
                value = words.pop(0)
            self._take(field, flag, value)
        return others

    def _split(self, word: str) -> tuple[str, str | None]:
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            return flag, value if equals else None
        return word[:2], word[2:] or None

    def _near(self, flag: str) -> str:
        near = get_close_matches(flag, [*self._flags, *HELP], 1)
        return f"; did you mean {near[0]}?" if near else ""

    def _take(self, field: Field, flag: str, text: str) -> None:
        if not field.many:
            self.values[field.name] = self._convert(field, flag, text)
            return
        parts = tuple(self._convert(field, flag, p) for p in (p.strip() for p in text.split(",")) if p)
        before = self.values[field.name] if field.name in self._given else ()
        self._given.add(field.name)
        self.values[field.name] = before + parts

    def positionals(self, words: list[str]) -> None:
        """Give these words to the positional parameters, in order; raises UsageError where they don't fit."""
        fields = [field for field in self._spec.fields if not field.param.flags]
        for place, field in enumerate(fields):
            if not words:
                break
            after = sum(1 for later in fields[place + 1 :] if later.required)
            taken = max(1, len(words) - after) if field.many else 1
            now, words = words[:taken], words[taken:]
            values = tuple(self._convert(field, field.label, word) for word in now)
            self.values[field.name] = values if field.many else values[0]
            self._given.add(field.name)
        missing = [field.label for field in fields if field.required and field.name not in self._given]
        if missing:
            raise self._refuse(f"missing {' and '.join(missing)}")
        if words:
            raise self._refuse(f'unexpected argument "{words[0]}"')

    def _convert(self, field: Field, name: str, text: str) -> Any:
        choices = field.param.choices
        if choices and text not in choices:
            near = get_close_matches(text, choices, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise self._refuse(f'{name}: "{text}" is none of {", ".join(choices)}{meant}')
        convert = field.param.parse or (int if field.type is int else float if field.type is float else str)
        try:
            return convert(text)
        except ValueError as error:
            why = str(error) if field.param.parse else "is not a number"
            raise self._refuse(f'{name}: "{text}" {why}') from None

    def _refuse(self, why: str) -> UsageError:
        name = f"nbs-fleet {self._spec.name}"
        return UsageError(f"{name}: {why}", hint=f"see {name} --help")
