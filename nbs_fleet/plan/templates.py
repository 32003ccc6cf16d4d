"""Templates of prompts and skills: what one is, and its text; Jinja2 is loaded only for one that has marks of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from nbs_fleet.plan import sandbox

PACKAGED = "template:"
"""Begins the key of a template that comes with nbs-fleet."""

LIMIT = 100_000
"""The largest prompt, in bytes of UTF-8: Linux takes 131,071 bytes in one argument."""


class PlanProblem(Struct, frozen=True):
    """One thing that keeps a plan from being made: where (a file, or a place in the team file), line, words."""

    where: str
    line: int | None
    text: str

    def __str__(self) -> str:
        at = self.where if self.line is None else f"{self.where}:{self.line}"
        return f"{at}: {self.text}"


class Template(Struct, frozen=True):
    """A prompt's text, where it comes from (for messages), and the folder its includes may come from."""

    where: str
    text: str
    folder: str | None = None

    @property
    def plain(self) -> bool:
        """Whether it stands for itself: all marks of Jinja2 begin with a brace."""
        return "{" not in self.text and len(self.text) <= LIMIT


def includes(template: Template) -> tuple[str, ...]:
    """Keys of `prompts` that the template's includes may need: see `sandbox.includes`."""
    return () if template.plain else _sandbox().includes(template)


class Renderer:
    """Renders templates that may include each other: see `sandbox.Renderer`."""

    def __init__(self, prompts: Mapping[str, str]) -> None:
        """`prompts`: absolute path or `template:NAME` -> text, all that may be included."""
        self._prompts = prompts
        self._marked: sandbox.Renderer | None = None

    def render(self, template: Template, values: Mapping[str, Any]) -> str | PlanProblem:
        """The text, or what is wrong with it or with the template."""
        if template.plain:
            fault = fault_of(template.text)
            return PlanProblem(template.where, None, fault) if fault else template.text
        if self._marked is None:
            self._marked = _sandbox().Renderer(self._prompts)
        return self._marked.render(template, values)


def fault_of(text: str) -> str | None:
    """What is wrong with a rendered prompt as an argument of a program."""
    if "\0" in text:
        return "the prompt holds a NUL character, which no program can be given"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "the prompt holds characters that are no valid UTF-8"
    return f"the prompt is {size} bytes long; at most {LIMIT} ({LIMIT // 1000} kB)" if size > LIMIT else None


def _sandbox() -> Any:
    # 30 ms that a team without templates need not wait for.
    from nbs_fleet.plan import sandbox  # noqa: PLC0415

    return sandbox
