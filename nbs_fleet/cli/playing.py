"""What `nbs-fleet test` reads and prints: test files with all their faults, progress, outcomes, the sum."""

from __future__ import annotations

import os
import sys

from nbs_fleet.cli import output
from nbs_fleet.cli.output import Span
from nbs_fleet.errors import FleetError, TeamFileError
from nbs_fleet.testing import report
from nbs_fleet.testing.artefacts import lines_of
from nbs_fleet.testing.load import Script, load_script
from nbs_fleet.testing.outcome import Kind, Outcome, StepDone

STYLE = {Kind.PASSED: "green", Kind.SKIPPED: "yellow"}


def load(files: list[str], known: tuple[str, ...]) -> list[Script]:
    """All test files, checked; raises TeamFileError with the problems of all of them."""
    scripts: list[Script] = []
    problems: list[str] = []
    for file in dict.fromkeys(files):
        try:
            scripts.append(load_script(file, os.environ, known_drivers=known))
        except TeamFileError as error:
            problems += error.problems
    if problems:
        raise TeamFileError(tuple(problems), hint="nbs-fleet schema test prints every key that a test file may have")
    for script in scripts:
        for warning in script.warnings:
            output.note(Span("warning: ", "yellow"), warning)
    return scripts


def show(scripts: list[Script], *, json: bool) -> None:
    """Print which tests there are."""
    if json:
        tests = [{"test": s.name, "file": s.file, "steps": len(s.said.steps), "agents": s.handles} for s in scripts]
        output.json({"tests": tests})
        return
    rows = [(s.name, f"{len(s.said.steps)} steps", f"{len(s.handles)} agents", s.file) for s in scripts]
    output.table(rows, right=(1, 2))


class Printer:
    """Prints as it happens; `named`: several tests are played, so each line says of which it is."""

    def __init__(self, *, json: bool, named: bool) -> None:
        self.json = json
        self.named = named

    def step(self, script: Script, run: int, done: StepDone) -> None:
        """One step was made."""
        if self.json:
            output.ndjson((report.step_event(script, run, done),))
            return
        sign = Span("ok  ", "green") if done.ok else Span("FAIL", "red")
        name = f"{script.name}: " if self.named else ""
        output.say("  ", sign, "  ", name, done.what, Span(f"  {done.seconds:.1f} s", "dim"))
        sys.stdout.flush()  # a log of CI is read while it grows

    def end(self, outcome: Outcome) -> None:
        """One test ended."""
        if self.json:
            output.ndjson((report.end_event(outcome),))
            return
        why = f": {outcome.reason}" if outcome.reason else ""
        again = f" [{outcome.run}]" if outcome.run > 1 else ""
        head = Span(str(outcome.kind), STYLE.get(outcome.kind, "red"))
        output.say(head, f"  {outcome.name}{again}{why}", Span(f"  {outcome.seconds:.1f} s", "dim"))
        for trouble in outcome.troubles:
            for line in lines_of(trouble):
                output.say("  ", line)
        if outcome.kept:
            output.say(f"  kept in {outcome.kept}")
        sys.stdout.flush()


def show_sum(outcomes: tuple[Outcome, ...], repeat: int, seconds: float) -> None:
    """Print how many ended how; of repeated tests the rate of each."""
    if repeat > 1:
        for name, good, played in report.rates(outcomes):
            output.say(Span(f"{good} of {played} passed", "green" if good == played else "red"), f"  {name}")
    counts = [(kind, sum(1 for o in outcomes if o.kind is kind)) for kind in Kind]
    output.say(", ".join(f"{number} {kind}" for kind, number in counts if number), f" in {seconds:.1f} s")


def write(path: str, text: str) -> None:
    """Write a report; FleetError if it can't be written."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FleetError(f"can't write {path}: {error.strerror}") from error
