"""What all benchmarks share: statistics, goals, the table, the kept results, the page that is made from them."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from benchmarks import page, report
from benchmarks.__main__ import NAMES, load, main
from benchmarks.figures import Beside, Figure, Spread, median, number, quantile
from benchmarks.limits import LIMITS, UNKNOWN
from benchmarks.machine import Machine
from benchmarks.report import Part, Results

MACHINE = Machine("A CPU", 2, 24, "6.1", "3.11", "tmux 3.3a", 0.25)


def one(value: float) -> Spread:
    return Spread(value, value, value)


def results(*figures: Figure, at: str = "2026-01-02T03:04:05Z") -> Results:
    return Results(at, MACHINE, (Part("idle", 1.5, figures),))


FAST = Figure("fast", "ms", one(2.0), at_most=5.0, beside=(Beside("loops", one(200.0), at_least=10),))
SLOW = Figure("slow", "ms", one(9.0), at_most=5.0, beside=(Beside("floor", one(3.0), at_most=2),))


def test_the_median_keeps_what_it_stands_for() -> None:
    assert median([3.0, 1.0, 8.0]) == Spread(3.0, 1.0, 8.0, 3)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        (range(1, 101), 0.99, 99),
        (range(1, 101), 0.5, 50),
        ([7.0], 0.99, 7.0),
        ([2.0, 1.0], 0.5, 1.0),
        (range(1, 41), 0.99, 40),
        (range(1, 11), 1.0, 10),
    ],
)
def test_a_quantile_is_the_smallest_value_that_covers_the_share(
    values: list[float], share: float, expected: float
) -> None:
    assert quantile(values, share).value == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.01234, "0.0123"), (2.0, "2"), (99.95, "100"), (12.34, "12.3"), (1234.5, "1,234"), (-0.5, "-0.5")],
)
def test_numbers_have_three_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text


def test_less_is_told_from_at_most() -> None:
    less, most = Beside("loops", one(100.0), at_least=10), Beside("floor", one(2.0), at_most=3)
    assert (less.times(5.0), less.met(5.0), less.met(20.0)) == (20.0, True, False)
    assert (most.times(5.0), most.met(5.0), most.met(7.0)) == (2.5, True, False)
    plain = Beside("nothing wished for", one(10.0))
    assert (plain.met(5.0), plain.times(5.0)) == (None, 0.5)
    assert Beside("a slower one", one(10.0), greater=True).times(5.0) == 2.0


def test_what_costs_nothing_is_any_number_of_times_less() -> None:
    assert Beside("loops", one(100.0), at_least=3500).met(0.0) is True


def test_a_floor_of_nothing_is_never_met() -> None:
    assert Beside("floor", one(0.0), at_most=10).met(1.0) is False


def test_a_figure_meets_its_goals_only_if_it_meets_all() -> None:
    assert FAST.met is True
    assert SLOW.met is False
    mixed = Figure("mixed", "ms", one(4.0), at_most=5.0, beside=SLOW.beside)
    assert (mixed.met_alone, mixed.met) == (True, True)
    assert Figure("mixed", "ms", one(8.0), at_most=9.0, beside=SLOW.beside).met is False
    assert Figure("no goal", "ms", one(8.0)).met is None
    assert Figure("all", "%", one(99.0), at_least=100.0).met is False


def test_each_comparison_is_a_line_of_its_own() -> None:
    figure = Figure(
        "x", "ms", median([1.0, 2.0, 3.0]), beside=(Beside("a", one(4.0)), Beside("b", one(8.0), at_most=1))
    )
    first, second = report.rows([figure])
    assert first == ("x", "2 ms", "1 .. 3, n=3", "", "", "a", "4 ms", "0.5 x", "", "")
    assert second == ("", "", "", "", "", "b", "8 ms", "0.25 x", "<= 1 x", "met")


def test_the_table_shows_goal_and_figure_side_by_side() -> None:
    out = StringIO()
    Console(file=out, width=200).print(report.table(results(FAST, SLOW)))
    row = next(line for line in out.getvalue().splitlines() if "slow" in line)
    assert [word for word in row.replace("│", " ").split("  ") if word.strip()] != []
    for cell in ("9 ms", "<= 5 ms", "MISSED", "floor", "3 x", "<= 2 x"):
        assert cell in row


def test_results_are_read_back_as_they_were() -> None:
    whole = results(FAST, SLOW)
    text = report.encode(whole)
    assert report.decode(text) == whole
    assert '"met": false' in text


def test_the_newest_results_count(tmp_path: Path) -> None:
    assert report.newest(tmp_path) is None
    old, new = results(SLOW), results(FAST, at="2026-03-01T00:00:00Z")
    for name, kept in (("z.json", old), ("a.json", new)):
        (tmp_path / name).write_text(report.encode(kept), encoding="utf-8")
    assert report.newest(tmp_path) == new


def test_a_file_is_named_by_its_day_and_machine() -> None:
    assert report.file_name(results()) == f"2026-01-02-{MACHINE.short}.json"


def test_the_page_says_each_missed_goal_and_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "sl", "Something stops it.")
    text = "\n".join(page.performance(results(FAST, SLOW), {"idle": "How it is made."}))
    assert "- **slow**: 9 ms, goal <= 5 ms; 3 x against floor, goal <= 2 x. Something stops it." in text
    assert "- **fast**" not in text
    assert "Of 2 figures with a goal 1 meet it." in text


def test_figures_of_a_machine_that_was_busy_say_so() -> None:
    quiet = results(FAST)
    busy = replace(quiet, machine=replace(MACHINE, load=8.7))
    said = "The machine had other things to do"
    assert said in "\n".join(page.performance(busy, {"idle": ""}))
    assert said not in "\n".join(page.performance(quiet, {"idle": ""}))


def test_an_unknown_limit_is_called_one() -> None:
    assert UNKNOWN in "\n".join(page.performance(results(SLOW), {"idle": ""}))


def test_the_list_names_each_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(report.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if "\nBENCHMARK = " in path.read_text(encoding="utf-8")}
    assert set(NAMES) == modules
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(NAMES)
    for name, line in zip(NAMES, lines, strict=True):
        assert load(name).name == name
        assert load(name).about in line


def test_a_benchmark_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "no such benchmark: nothing" in capsys.readouterr().err
