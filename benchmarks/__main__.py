"""Runs benchmarks: `python -m benchmarks [NAME...] [--quick] [--json] [--list]`; all of them are `make bench`."""

from __future__ import annotations

import argparse
import compileall
import signal
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

from rich.console import Console

import nbs_fleet
from benchmarks import report
from benchmarks.awake import awake
from benchmarks.figures import Benchmark, Options
from benchmarks.machine import describe
from benchmarks.report import Part, Results
from nbs_fleet.errors import FleetError

NAMES = (
    "hooks", "chats", "commands", "starts", "adoption", "notices", "delivery", "claude", "attention", "busy", "idle"
)  # fmt: skip
LIMIT_SECONDS = 1200
"""A run that has not ended by then is in the way of whoever waits for it."""


class OverError(BaseException):
    """The run is to end now; a BaseException, so that nothing takes it for the fault of one benchmark."""


def end(number: int, _frame: object) -> None:
    """End by an exception, so that every team is taken down."""
    raise OverError(signal.Signals(number).name)


def load(name: str) -> Benchmark:
    """One benchmark by its name."""
    benchmark: Benchmark = import_module(f"benchmarks.{name}").BENCHMARK
    return benchmark


def perform(benchmark: Benchmark, options: Options) -> Part:
    """Run one; what goes wrong in it is told, and the others go on."""
    began = time.monotonic()
    try:
        figures, trouble = tuple(benchmark.figures(options)), None
    except (Exception, FleetError) as error:  # noqa: BLE001 - one that fails must not take the figures of the others along
        traceback.print_exc()
        figures, trouble = (), f"{type(error).__name__}: {error}"
    return Part(benchmark.name, round(time.monotonic() - began, 1), figures, trouble)


def run(names: list[str], options: Options) -> Results:
    """Run these, one after the other; progress goes to stderr."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # As any installer does; where bytecode is not to be written, each command of a checkout would compile it anew.
    compileall.compile_dir(next(iter(nbs_fleet.__path__)), quiet=1)
    machine = describe()
    parts = []
    with awake():
        for name in names:
            sys.stderr.write(f"{name} .. ")
            sys.stderr.flush()
            parts.append(perform(load(name), options))
            sys.stderr.write(f"{parts[-1].seconds:.0f} s\n")
    return Results(at, machine, tuple(parts), quick=options.quick)


def store(results: Results) -> Path:
    """Keep a whole run."""
    path = report.RESULTS / report.file_name(results)
    path.parent.mkdir(exist_ok=True)
    path.write_text(report.encode(results), encoding="utf-8")
    return path


def main(argv: list[str] | None = None) -> int:
    """Run what is asked for; exit 1 if something could not be measured. A missed goal is a result, no failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which (default: all, and keep the results): {', '.join(NAMES)}"
    )
    parser.add_argument("--quick", action="store_true", help="few repeats, small teams: only to see that all works")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--list", action="store_true", help="say what there is, and how it is measured")
    given = parser.parse_args(argv)
    unknown = sorted(set(given.names) - set(NAMES))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}")
    if given.list:
        for name in NAMES:
            sys.stdout.write(f"{name:10} {load(name).about}\n")
        return 0
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    signal.alarm(LIMIT_SECONDS)
    results = run(given.names or list(NAMES), Options(quick=given.quick))
    if given.json:
        sys.stdout.write(report.encode(results))
    else:
        Console(width=None if sys.stdout.isatty() else 200).print(report.table(results))
        sys.stdout.write(f"{len(results.missed)} of {len(results.figures)} figures miss a goal\n")
    if not given.names and not given.quick and results.complete:
        sys.stderr.write(f"kept: {store(results).relative_to(Path.cwd())}\n")
    return 0 if results.complete else 1


if __name__ == "__main__":
    sys.exit(main())
