"""Reports of a run of tests: JSON events, JUnit XML, and the rate of repeated tests. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree as ET

import msgspec

from nbs_fleet.testing.artefacts import lines_of
from nbs_fleet.testing.load import Script
from nbs_fleet.testing.outcome import Kind, Outcome, StepDone

SCHEMA = 1
_NOT_XML = {c: None for c in range(32) if c not in (9, 10, 13)}


def step_event(script: Script, run: int, done: StepDone) -> dict[str, Any]:
    """One step as a JSON line."""
    return {"schema": SCHEMA, "event": "step", "test": script.name, "run": run, **msgspec.to_builtins(done)}


def end_event(outcome: Outcome) -> dict[str, Any]:
    """The end of one test as a JSON line."""
    facts = msgspec.to_builtins(outcome)
    del facts["steps"]
    facts["test"] = facts.pop("name")
    facts["result"] = facts.pop("kind")
    return {"schema": SCHEMA, "event": "end", **facts, "steps": len(outcome.steps)}


def sum_event(outcomes: tuple[Outcome, ...], code: int, seconds: float) -> dict[str, Any]:
    """The whole run as the last JSON line."""
    counts = {str(kind): sum(1 for o in outcomes if o.kind is kind) for kind in Kind}
    return {"schema": SCHEMA, "event": "sum", "code": code, "seconds": round(seconds, 3), "results": counts}


def rates(outcomes: Iterable[Outcome]) -> list[tuple[str, int, int]]:
    """(test, passed, played) of tests that were played several times; those that were skipped are left out."""
    found: dict[str, list[bool]] = {}
    for outcome in outcomes:
        if outcome.kind is not Kind.SKIPPED:
            found.setdefault(outcome.name, []).append(outcome.kind is Kind.PASSED)
    return [(name, sum(good), len(good)) for name, good in found.items()]


def junit(outcomes: Iterable[Outcome], seconds: float) -> str:
    """The run as a JUnit file, as CI systems read it: one case per test and run."""
    every = tuple(outcomes)
    suite = ET.Element(
        "testsuite",
        name="nbs-fleet",
        tests=str(len(every)),
        failures=str(sum(1 for o in every if o.kind in (Kind.FAILED, Kind.TIMED_OUT))),
        errors=str(sum(1 for o in every if o.kind in (Kind.FILE, Kind.ENVIRONMENT, Kind.INTERRUPTED))),
        skipped=str(sum(1 for o in every if o.kind is Kind.SKIPPED)),
        time=f"{seconds:.3f}",
    )
    for outcome in every:
        name = outcome.name if outcome.run == 1 else f"{outcome.name} [{outcome.run}]"
        case = ET.SubElement(
            suite, "testcase", classname=_clean(outcome.file), name=_clean(name), time=f"{outcome.seconds:.3f}"
        )
        if outcome.kind is Kind.SKIPPED:
            ET.SubElement(case, "skipped", message=_clean(outcome.reason))
        elif outcome.kind is not Kind.PASSED:
            tag = "failure" if outcome.kind in (Kind.FAILED, Kind.TIMED_OUT) else "error"
            first = outcome.troubles[0].what if outcome.troubles else str(outcome.kind)
            found = ET.SubElement(case, tag, message=_clean(first), type=str(outcome.kind))
            found.text = _clean("\n\n".join("\n".join(lines_of(trouble)) for trouble in outcome.troubles))
    whole = ET.Element("testsuites")
    whole.append(suite)
    ET.indent(whole)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(whole, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """Without the control characters that XML can't hold."""
    return text.translate(_NOT_XML)
