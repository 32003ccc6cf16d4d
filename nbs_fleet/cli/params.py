"""Parameters that several commands share, and how their values are read and completed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from nbs_fleet.spec.units import duration, seconds

T = TypeVar("T")


def worded(parse: Callable[[str], T]) -> Callable[[str], T]:
    """A parser for typer that says why: typer drops the message of a ValueError."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(f'"{text}" {error}') from None

    return parsed


class Span(float):
    """A span of time in seconds; help shows it as people write it."""

    def __str__(self) -> str:
        return duration(self)


def span(value: str | float) -> Span:
    """Read `90s` or `1h30m`; a default comes as the number that it is. Raises typer.BadParameter."""
    return Span(worded(seconds)(value) if isinstance(value, str) else value)


def split_commas(values: list[str] | None) -> list[str] | None:
    """The parts of `A,B`, of all times that an option was given; raises typer.BadParameter where none is left."""
    if not values:
        return None
    parts = [part.strip() for value in values for part in value.split(",")]
    named = [part for part in parts if part]
    if not named:
        raise typer.BadParameter("it names nobody")
    return named


def offer_handles(context: typer.Context) -> list[str]:
    """The handles that a shell offers: those of the team that is meant, or none."""
    from nbs_fleet.cli import lookup

    return _offer(lambda: lookup.handles_of(lookup.find_team(context.params.get("team"))))


def offer_more_handles(context: typer.Context, incomplete: str) -> list[str]:
    """The same for `A,B`: the last part is completed, the parts before it stay."""
    before = incomplete[: incomplete.rfind(",") + 1]
    return [before + handle for handle in offer_handles(context)]


def offer_teams() -> list[str]:
    """The names of this person's teams."""
    from nbs_fleet.cli import lookup

    return _offer(lambda: sorted({found.team for found in lookup.teams()}))


def _offer(look: Callable[[], Any]) -> list[str]:
    from nbs_fleet.errors import FleetError

    try:
        return list(look())
    except FleetError:
        return []


MINUTE = Span(60)

Json = Annotated[bool, typer.Option("--json", help="print JSON (one object, schema 1)")]
TeamName = Annotated[
    str | None,
    typer.Option(
        "--team",
        metavar="NAME|FILE",
        help="the team; default: the one found from here",
        autocompletion=offer_teams,
    ),
]
Handle = Annotated[str, typer.Argument(metavar="HANDLE", help="the agent", autocompletion=offer_handles)]
Handles = Annotated[list[str], typer.Argument(metavar="HANDLE...", help="the agents", autocompletion=offer_handles)]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="H,..",
        help="these agents only; touches nobody else",
        callback=split_commas,
        autocompletion=offer_more_handles,
    ),
]
File = Annotated[str, typer.Argument(metavar="FILE", help="the team file")]
Timeout = Annotated[float, typer.Option("--timeout", metavar="TIME", parser=span, help="how long to wait")]
