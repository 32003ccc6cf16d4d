"""From a typed signature to a command line, by typer: values, refusals, help."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.cli import parsing
from nbs_fleet.cli.params import MINUTE, Handles, Json, Only, TeamName, Timeout, worded


class Kind(StrEnum):
    """Which kind."""

    SOFT = "soft"
    HARD = "hard"


def even(text: str) -> str:
    """A number that is even."""
    if int(text) % 2:
        raise ValueError("is odd")
    return text


def sample(
    handles: Handles,
    *,
    only: Only = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="wait until it is ready")] = True,
    timeout: Timeout = MINUTE,
    kind: Annotated[Kind, typer.Option("--kind", help="which kind")] = Kind.SOFT,
    n: Annotated[int, typer.Option("-n", metavar="N", min=0, help="how many")] = 3,
    pairs: Annotated[str, typer.Option("--pairs", metavar="EVEN", parser=worded(even), help="how many")] = "2",
    team: TeamName = None,
    json: Json = False,
) -> dict[str, Any]:
    """Do it to some agents.

    It says more here.

    For example:
        nbs-fleet sample ana
        nbs-fleet sample ana bo --kind hard
    """
    return locals()


HELP = """\
Usage: nbs-fleet sample [OPTIONS] {HANDLE...}

  Do it to some agents.

  It says more here.

Arguments:
  HANDLE...  the agents  [required]

Options:
  --only H,..         these agents only; touches nobody else
  --wait / --no-wait  wait until it is ready  [default: wait]
  --timeout TIME      how long to wait  [default: 1m]
  --kind <soft|hard>  which kind  [default: soft]
  -n N                how many  [default: 3; x>=0]
  --pairs EVEN        how many  [default: 2]
  --team NAME|FILE    the team; default: the one found from here
  --json              print JSON (one object, schema 1)
  -h, --help          Show this message and exit.

  examples:
    nbs-fleet sample ana
    nbs-fleet sample ana bo --kind hard"""
DEFAULTS: dict[str, Any] = {
    "handles": ["ana"],
    "only": None,
    "wait": True,
    "timeout": 60.0,
    "kind": Kind.SOFT,
    "n": 3,
    "pairs": "2",
    "team": None,
    "json": False,
}


def values(argv: list[str]) -> dict[str, Any]:
    """What the function gets."""
    command = parsing.declared("sample", sample)
    with command.make_context("nbs-fleet sample", argv) as context:
        got: dict[str, Any] = command.invoke(context)
    return got


@pytest.mark.parametrize(
    ("argv", "given"),
    [
        (["ana"], {}),
        (["ana", "bo"], {"handles": ["ana", "bo"]}),
        (["ana", "--json", "bo"], {"handles": ["ana", "bo"], "json": True}),
        (["--only", "a, b,,", "--only=c", "ana"], {"only": ["a", "b", "c"]}),
        (["ana", "--no-wait"], {"wait": False}),
        (["ana", "--no-wait", "--wait"], {}),
        (["ana", "--timeout", "1.5m"], {"timeout": 90.0}),
        (["ana", "-n5", "--kind=hard"], {"n": 5, "kind": Kind.HARD}),
        (["--team", "x", "--", "ana", "-b"], {"team": "x", "handles": ["ana", "-b"]}),
        (["-", "--pairs", "4"], {"handles": ["-"], "pairs": "4"}),
    ],
)
def test_words_become_typed_values(argv: list[str], given: dict[str, Any]) -> None:
    assert values(argv) == DEFAULTS | given


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "missing argument 'HANDLE...'"),
        (["ana", "--jsno"], "no such option: --jsno; did you mean --json?"),
        (["ana", "--js"], "no such option: --js; did you mean --json?"),
        (["ana", "-x"], "no such option: -x"),
        (["ana", "--team"], "option '--team' requires an argument"),
        (
            ["ana", "--timeout", "60"],
            "invalid value for '--timeout': \"60\" a duration needs a unit; did you mean 60s?",
        ),
        (["ana", "--timeout", "1 min"], "invalid value for '--timeout': \"1 min\" is not a duration; did you mean 1m?"),
        (["ana", "-n", "-1"], "invalid value for '-n': -1 is not in the range x>=0"),
        (["ana", "-n", "x"], "invalid value for '-n': 'x' is not a valid int range"),
        (["ana", "--pairs", "3"], "invalid value for '--pairs': \"3\" is odd"),
        (["ana", "--kind", "sft"], "invalid value for '--kind': 'sft' is not one of 'soft', 'hard'"),
        (["ana", "--json=yes"], "option '--json' does not take a value"),
        (["ana", "--only", ""], "invalid value for '--only': it names nobody"),
        (["ana", "--only", " ,"], "invalid value for '--only': it names nobody"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_the_reason(argv: list[str], message: str) -> None:
    with pytest.raises(typer.TyperException) as refused:
        values(argv)
    error = parsing.refusal(refused.value, "nbs-fleet sample")
    assert error.message == f"nbs-fleet sample: {message}"
    assert error.hint == "see nbs-fleet sample --help"


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["ana", "--help"]])
def test_help_says_what_how_and_gives_the_examples(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        values(argv)
    assert capsys.readouterr().out == HELP + "\n"


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_after_two_dashes_any_word_is_taken_as_it_stands(words: list[str]) -> None:
    assert values(["--json", "--", *words])["handles"] == words
