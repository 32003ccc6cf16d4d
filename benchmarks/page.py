"""The page docs/performance.md, from the newest results: figures, how each is made, missed goals and their limits. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import report
from benchmarks.figures import Beside, Figure, number
from benchmarks.limits import limit_of
from benchmarks.report import Part, Results

INTRO = """\
`make bench` measures what the goals below are about, on the machine it runs on, in less than ten minutes, and keeps the
figures in `benchmarks/results/`. This page is made from the newest of them. `python -m benchmarks NAME...` runs single
ones, `--list` says what there is, `--quick` only shows that all works.

Trust the ratios, not the absolute figures: each figure was taken side by side, in the same run, with what it is compared
with, which is one of these:

- **Shell loops**: a sidecar as people write it first, `benchmarks/sidecar.sh`: per pane a loop that looks once a second at
  the screen, its hash, the chat, the bus.
- **The floor**: what the machine can do at all: a bare `tmux`, a bare process, bare inotify, a bare Python.
- **tmuxp**: `tmuxp load` of the same windows.

A value is the median of its repeats (p50 and p99 are what their names say); the spread is from the least to the
greatest. Times are wall time. CPU is in percent of one core. The package is compiled first, as by any installer. Meanwhile
a process of the lowest priority writes to memory of its own: a virtual machine that rests is slow when something happens,
ours and what stands beside it alike (`benchmarks/awake.py` has the numbers). "Times" says how many times greater the value
beside it is where the goal is to be less, else how many times the value beside it the figure is."""


def performance(results: Results | None, abouts: dict[str, str]) -> tuple[str, ...]:
    """The paragraphs of the page; `abouts` says by the benchmark's name how its figures are made."""
    if results is None:
        return (INTRO, "No results are kept yet.")
    said = sum(figure.met is not None for figure in results.figures)
    told = (
        f"Measured on {results.at[:10]}: {results.machine.line}. "
        f"Of {said} figures with a goal {said - len(results.missed)} meet it."
    )
    if results.machine.load > results.machine.cores:
        told += " The machine had other things to do: all times are too long, and some misses are due to that."
    parts = [paragraph for part in results.parts for paragraph in _part(part, abouts)]
    return (INTRO, "## Figures", told, *parts, "## Missed goals, and what stops them", *_missed(results))


def _part(part: Part, abouts: dict[str, str]) -> Iterator[str]:
    yield f"### {part.benchmark}"
    yield abouts[part.benchmark]
    yield report.markdown(part)


def _missed(results: Results) -> Iterator[str]:
    if not results.missed:
        yield "None."
    for figure in results.missed:
        yield f"- **{figure.name}**: {'; '.join(_gaps(figure))}. {limit_of(figure.name)}"


def _gaps(figure: Figure) -> Iterator[str]:
    """What was measured, and what was wished for, for each goal that is missed."""
    if figure.met_alone is False:
        yield f"{number(figure.took.value)} {figure.unit}, goal {figure.goal}"
    for other in figure.beside:
        if other.met(figure.took.value) is False:
            yield f"{_times(other, figure)} against {other.name}, goal {other.goal}"


def _times(other: Beside, figure: Figure) -> str:
    times = other.times(figure.took.value)
    return "nothing to compare" if times is None else f"{number(times)} x"
