"""The developer's own tools: size limits are found, and the table says what really ran."""

from __future__ import annotations

import ast
from pathlib import Path

from tests import check, suites


def test_a_long_function_is_found_with_its_line_and_length() -> None:
    text = "x = 1\ndef long():\n" + "    pass\n" * 5 + "async def short():\n    pass\n"
    assert list(check.functions_over(ast.parse(text), 4)) == [(2, "long", 6)]


def test_a_step_that_fails_shows_its_output() -> None:
    outcome = check.Step("failing", check.command("sh", "-c", "echo what is wrong; exit 3")).perform()
    assert not outcome.ok
    assert "what is wrong" in outcome.said


def test_a_step_that_succeeds_is_ok() -> None:
    assert check.Step("fine", check.command("true")).perform().ok


def test_counts_are_read_from_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    text = '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>'
    report.write_text(text, encoding="utf-8")
    assert suites.counts(report) == (6, 3, 3)


def test_the_table_is_aligned_and_names_the_client() -> None:
    line = suites.Line("end to end", "Claude Code 2.1.197", 31, 0, 0, 145.2)
    head, row = suites.table([line]).splitlines()
    assert head.index("RAN") + 3 == row.index("31") + 2
    assert "Claude Code 2.1.197" in row


def test_every_client_has_its_end_to_end_suite_and_plays_the_scripted_teams() -> None:
    every = suites.suites(long=False)
    for scripted in (False, True):
        clients = [suite.client for suite in every if suite.client and suite.scripted is scripted]
        assert clients == ["sim", "claudeless", "claude"]


def test_long_tests_run_only_when_asked_for() -> None:
    for suite in suites.suites(long=False):
        assert suite.select == "" if suite.scripted else "not long" in suite.select
    assert not any("not long" in suite.select for suite in suites.suites(long=True))
