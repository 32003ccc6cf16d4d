"""From a typed signature to a command line: declaration, parsing, refusals, help."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.cli import params, parsing
from nbs_fleet.cli.params import Handles, Json, Only, TeamName, arg, count, opt
from nbs_fleet.errors import UsageError
from nbs_fleet.spec.units import seconds

Wait = Annotated[bool, opt("--wait", "--no-wait", help="wait until it is ready")]
Timeout = Annotated[float, opt("--timeout", help="how long to wait", metavar="TIME", parse=seconds)]
Kind = Annotated[str, opt("--kind", help="which kind", choices=("soft", "hard"))]


def sample(
    handles: Handles,
    *,
    only: Only = (),
    wait: Wait = True,
    timeout: Timeout = 60.0,
    kind: Kind = "soft",
    n: Annotated[int, opt("-n", help="how many", parse=count)] = 3,
    team: TeamName = None,
    json: Json = False,
) -> int:
    """Do it to some agents.

    It says more here.

    For example:
        nbs-fleet sample ana
        nbs-fleet sample ana bo --kind hard
    """
    return 0


SAMPLE = params.command("sample", sample)
HELP = """\
usage: nbs-fleet sample HANDLE... [--only H,..] [--wait/--no-wait] [--timeout TIME] [--kind KIND]
                        [-n N] [--team NAME|FILE] [--json]

Do it to some agents.

It says more here.

  HANDLE...          the agents
  --only H,..        these agents only; touches nobody else
  --wait, --no-wait  wait until it is ready
  --timeout TIME     how long to wait (default 1m)
  --kind KIND        which kind: soft or hard (default soft)
  -n N               how many (default 3)
  --team NAME|FILE   the team; default: the one found from here
  --json             print JSON (one object, schema 1)
  -h, --help         show this

examples:
  nbs-fleet sample ana
  nbs-fleet sample ana bo --kind hard"""
DEFAULTS: dict[str, Any] = {
    "handles": ("ana",),
    "only": (),
    "wait": True,
    "timeout": 60.0,
    "kind": "soft",
    "n": 3,
    "team": None,
    "json": False,
}


@pytest.mark.parametrize(
    ("argv", "given"),
    [
        (["ana"], {}),
        (["ana", "bo"], {"handles": ("ana", "bo")}),
        (["ana", "--json", "bo"], {"handles": ("ana", "bo"), "json": True}),
        (["--only", "a, b,,", "--only=c", "ana"], {"only": ("a", "b", "c")}),
        (["ana", "--no-wait"], {"wait": False}),
        (["ana", "--no-wait", "--wait"], {}),
        (["ana", "--timeout", "1.5m"], {"timeout": 90.0}),
        (["ana", "-n5", "--kind=hard"], {"n": 5, "kind": "hard"}),
        (["--team", "x", "--", "ana", "-b"], {"team": "x", "handles": ("ana", "-b")}),
    ],
)
def test_words_become_typed_values(argv: list[str], given: dict[str, Any]) -> None:
    assert parsing.parse(SAMPLE, argv) == DEFAULTS | given


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "missing HANDLE..."),
        (["ana", "--jsno"], "unknown option --jsno; did you mean --json?"),
        (["ana", "--js"], "unknown option --js; did you mean --json?"),
        (["ana", "-x"], "unknown option -x"),
        (["ana", "--team"], "--team needs a value: --team NAME|FILE"),
        (["ana", "--timeout", "60"], '--timeout: "60" a duration needs a unit; did you mean 60s?'),
        (["ana", "-n", "-1"], '-n: "-1" is not a whole number'),
        (["ana", "-n", "x"], '-n: "x" is not a whole number'),
        (["ana", "--kind", "sft"], '--kind: "sft" is none of soft, hard; did you mean soft?'),
        (["ana", "--json=yes"], "--json takes no value"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_the_reason(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parsing.parse(SAMPLE, argv)
    assert refused.value.message == f"nbs-fleet sample: {message}"
    assert refused.value.hint == "see nbs-fleet sample --help"


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["ana", "--help"], ["--help", "--jsno"]])
def test_help_is_shown_even_where_the_rest_is_wrong(argv: list[str]) -> None:
    with pytest.raises(parsing.HelpWanted):
        parsing.parse(SAMPLE, argv)


def test_help_says_what_how_and_gives_the_examples() -> None:
    assert params.help_text(SAMPLE) == HELP


def attach(
    handle: Annotated[str, arg("HANDLE", "the agent")],
    words: Annotated[tuple[str, ...], arg("TEXT", "what to say")],
    last: Annotated[str | None, arg("LAST", "one more")] = None,
) -> None:
    """Take positionals of all kinds."""


POSITIONAL = params.command("attach", attach)


def test_positionals_are_filled_in_order_and_many_leaves_what_others_need() -> None:
    assert parsing.parse(POSITIONAL, ["a", "b", "c"]) == {"handle": "a", "words": ("b", "c"), "last": None}


@pytest.mark.parametrize(
    ("argv", "message"),
    [(["a"], "missing TEXT..."), ([], "missing HANDLE and TEXT..."), (["--", "a"], "missing TEXT...")],
)
def test_missing_positionals_are_named(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        parsing.parse(POSITIONAL, argv)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_after_two_dashes_any_word_is_taken_as_it_stands(words: list[str]) -> None:
    assert parsing.parse(SAMPLE, ["--json", "--", *words])["handles"] == tuple(words)
