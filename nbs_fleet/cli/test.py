"""`nbs-fleet test`: scripted teams, for CI: up, steps, expectations, down; and a report."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.params import worded
from nbs_fleet.errors import UsageError
from nbs_fleet.testing.choose import choice

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="test files, mostly NAME.test.yaml")]
Jobs = Annotated[int, typer.Option("-j", "--jobs", metavar="N", min=1, help="how many tests are played at once")]
Junit = Annotated[str | None, typer.Option("--junit", metavar="FILE", help="write a JUnit report")]
Lines = Annotated[bool, typer.Option("--json", help="print one JSON object per line, as it happens (schema 1)")]
Which = Annotated[
    Any,
    typer.Option("-k", metavar="EXPR", parser=worded(choice), help="only tests whose name fits: 'crash and not tmux'"),
]
List = Annotated[bool, typer.Option("--list", help="check the files and print the tests; play none")]
Repeat = Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="play each test N times and print the rate")]
Keep = Annotated[str | None, typer.Option("--keep", metavar="DIR", help="keep each test's files there")]
DriverName = Annotated[
    str | None, typer.Option("--driver", metavar="NAME", help="play every agent with this driver: sim, claudeless, ...")
]


def play(
    file: Files,
    *,
    jobs: Jobs = 1,
    junit: Junit = None,
    json: Lines = False,
    k: Which = None,
    list_: List = False,
    repeat: Repeat = 1,
    keep: Keep = None,
    driver: DriverName = None,
) -> int:
    """Play test files: each brings its team up in a world of its own, makes its steps, and leaves nothing behind.

    Exit 0: all passed; 1: one failed; 2: a file is wrong; 3: something is missing here; 124: one took too long.

    For example:
        nbs-fleet test teams/ci/wake.test.yaml
        nbs-fleet test teams/ci/*.test.yaml -j 4 --junit report.xml
        nbs-fleet test teams/ci/*.test.yaml -k crash --repeat 20
    """
    # Checking files takes pydantic, which --help need not wait for.
    from nbs_fleet.cli import playing
    from nbs_fleet.launch import registry
    from nbs_fleet.testing import report
    from nbs_fleet.testing.outcome import exit_code
    from nbs_fleet.testing.runner import Orders, run_all

    known = registry.names()
    if driver is not None and driver not in known:
        raise UsageError(f'unknown driver "{driver}"', hint=f"drivers: {', '.join(known)}")
    scripts = [script for script in playing.load(file, known) if k is None or k(script.name)]
    if not scripts:
        raise UsageError("no test is left to play", hint="-k looks at the names that --list prints")
    if list_:
        playing.show(scripts, json=json)
        return 0
    began = time.monotonic()
    printer = playing.Printer(json=json, named=len(scripts) * repeat > 1)
    orders = Orders(at_once=jobs, repeat=repeat, driver=driver, keep=os.path.abspath(keep) if keep else None)
    outcomes = run_all(scripts, os.environ, orders, printer.step, printer.end)
    seconds = time.monotonic() - began
    code = exit_code(outcomes)
    if junit is not None:
        playing.write(junit, report.junit(outcomes, seconds))
    if json:
        output.ndjson((report.sum_event(outcomes, code, seconds),))
    else:
        playing.show_sum(outcomes, repeat, seconds)
    return code
