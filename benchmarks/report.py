"""The results of one run: as JSON, as a table for a terminal, as tables for the docs. Pure but for `newest`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from rich.table import Table
from rich.text import Text

from benchmarks.figures import Figure, Spread, number
from benchmarks.machine import Machine

SCHEMA = 1
RESULTS = Path(__file__).parent / "results"
HEAD = ("what", "measured", "spread", "goal", "", "beside", "its value", "times", "goal", "")
"""The columns; the two without a name say whether the goal before them is met."""
RIGHT = frozenset({1, 6, 7})


class Part(Struct, frozen=True):
    """The figures of one benchmark, or why it has none; `seconds` it took."""

    benchmark: str
    seconds: float
    figures: tuple[Figure, ...] = ()
    trouble: str | None = None


class Results(Struct, frozen=True):
    """One whole run; `at` is the UTC time of its start."""

    at: str
    machine: Machine
    parts: tuple[Part, ...]
    quick: bool = False
    schema: int = SCHEMA

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures of all benchmarks."""
        return tuple(figure for part in self.parts for figure in part.figures)

    @property
    def missed(self) -> tuple[Figure, ...]:
        """The figures that miss a goal."""
        return tuple(figure for figure in self.figures if figure.met is False)

    @property
    def complete(self) -> bool:
        """Whether nothing went wrong in it."""
        return all(part.trouble is None for part in self.parts)


def encode(results: Results) -> str:
    """The JSON of a run: what was measured, and, for readers, what follows from it."""
    plain = msgspec.to_builtins(results)
    for figure, told in zip(results.figures, (f for part in plain["parts"] for f in part["figures"]), strict=True):
        told["met"] = figure.met
        for beside, said in zip(figure.beside, told["beside"], strict=True):
            said["times"] = beside.times(figure.took.value)
            said["met"] = beside.met(figure.took.value)
    return msgspec.json.format(msgspec.json.encode(plain), indent=1).decode() + "\n"


def decode(text: str | bytes) -> Results:
    """The run that `encode` wrote; raises msgspec.ValidationError for anything else."""
    return msgspec.json.decode(text, type=Results)


def file_name(results: Results) -> str:
    """`<date>-<short id of the machine>.json`."""
    return f"{results.at[:10]}-{results.machine.short}.json"


def newest(folder: Path = RESULTS) -> Results | None:
    """The results that were measured last; None if there are none."""
    found = [decode(path.read_bytes()) for path in folder.glob("*.json")]
    return max(found, key=lambda results: results.at, default=None)


def rows(figures: Sequence[Figure]) -> Iterator[tuple[str, ...]]:
    """The cells of each line, as HEAD names them: one line for a figure, and one for each further comparison."""
    for figure in figures:
        own = (figure.name, _value(figure.took, figure.unit), _spread(figure.took), figure.goal, word(figure.met_alone))
        for index, other in enumerate(figure.beside):
            times = other.times(figure.took.value)
            yield (
                *(own if index == 0 else ("",) * len(own)),
                other.name,
                _value(other.took, figure.unit),
                "" if times is None else f"{number(times)} x",
                other.goal,
                word(other.met(figure.took.value)),
            )
        if not figure.beside:
            yield (*own, "", "", "", "", "")


def table(results: Results) -> Table:
    """The whole run as one table for a terminal."""
    made = Table(title=f"{results.at[:10]}, {results.machine.line}", title_justify="left", show_edge=False)
    for index, name in enumerate(HEAD):
        right = index in RIGHT
        made.add_column(name, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for part in results.parts:
        made.add_section()
        made.add_row(Text(f"{part.benchmark} ({part.seconds:.0f} s)", style="bold"))
        if part.trouble:
            made.add_row(Text(f"not measured: {part.trouble}", style="red"))
        for cells in rows(part.figures):
            made.add_row(*(Text(cell, style="red" if cell == word(met=False) else "") for cell in cells))
    return made


def markdown(part: Part) -> str:
    """The figures of one benchmark as a table for the docs, or why there are none."""
    if part.trouble:
        return f"Not measured: {part.trouble}"
    rule = tuple("---:" if index in RIGHT else "---" for index in range(len(HEAD)))
    return "\n".join(f"| {' | '.join(line)} |" for line in (HEAD, rule, *rows(part.figures)))


def word(met: bool | None) -> str:
    """Whether a goal is met, in a word."""
    return "" if met is None else "met" if met else "MISSED"


def _value(took: Spread, unit: str) -> str:
    return f"{number(took.value)} {unit}"


def _spread(took: Spread) -> str:
    return "" if took.number < 2 else f"{number(took.low)} .. {number(took.high)}, n={took.number}"
