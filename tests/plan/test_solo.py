"""What a command line and nbs-claude's variables make of one agent alone."""

from __future__ import annotations

from typing import Any

import pytest

from nbs_fleet.errors import UsageError
from nbs_fleet.plan.solo import Wish, team_file, wish

DRIVERS = ("claude", "claudeless", "sim")


def wished(*words: str, handle: str | None = None, driver: str | None = None, **environ: str) -> Wish:
    return wish(words, environ, handle=handle, root=None, driver=driver)


def agent(found: Wish) -> dict[str, Any]:
    (only,) = team_file(found, DRIVERS)["agents"]
    assert isinstance(only, dict)
    return only


def test_the_driver_goes_by_the_name_of_the_command() -> None:
    assert agent(wished("claude", "--model", "opus"))["driver"] == "claude"
    there = agent(wished("/opt/bin/claudeless", "x"))
    assert (there["driver"], there["command"], there["args"]) == ("claudeless", ["/opt/bin/claudeless"], ["x"])
    played = agent(wished("nbs-fleet", "sim", "--verbose"))
    assert (played["driver"], played["args"], "command" in played) == ("sim", ["--verbose"], False)
    assert agent(wished("./mine", driver="claude"))["command"] == ["./mine"]
    with pytest.raises(UsageError, match="vim is no client"):
        team_file(wished("vim"), DRIVERS)


def test_the_variables_of_nbs_claude_hold_where_the_command_line_says_nothing() -> None:
    variables = {"NBS_HANDLE": "bo", "NBS_ROOT": "/p", "NBS_MODEL": "opus", "NBS_INITIAL_PROMPT": "cost: $5 {{x}}"}
    found = wished("claude", **variables)
    assert (found.handle, found.root, found.team) == ("bo", "/p", "solo-bo")
    assert agent(found)["model"] == "opus"
    assert agent(found)["prompt_text"] == "{% raw %}cost: $$5 {{x}}{% endraw %}"
    assert wished("claude", handle="ana", **variables).handle == "ana"
    assert "model" not in agent(wished("claude", "--model=sonnet", **variables))
    assert wished("claude").handle == "claude"


@pytest.mark.parametrize("words", [("--resume", "abc"), ("--resume=abc",), ("-r", "abc")])
def test_a_session_to_go_on_with_is_not_passed_twice(words: tuple[str, ...]) -> None:
    found = wished("claude", *words, "-v", NBS_CONTINUE_SESSION="other")
    assert (found.words, found.session) == (("claude", "-v"), "abc")
    assert wished("claude", NBS_CONTINUE_SESSION="other").session == "other"


@pytest.mark.parametrize("words", [(), ("claude", "--continue"), ("claude", "-c"), ("claude", "--resume")])
def test_what_says_not_enough_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        wished(*words)


def test_what_follows_the_end_of_options_is_the_clients_alone() -> None:
    assert wished("claude", "--", "--resume", "x").words == ("claude", "--", "--resume", "x")


def test_an_agent_alone_is_never_restarted() -> None:
    assert agent(wished("claude"))["restart"] == {"policy": "never"}
