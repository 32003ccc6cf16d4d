"""The command line is read, and refused, as by the real client."""

from __future__ import annotations

import pytest

from nbs_fleet.sim.args import MODES, Args, ArgsError, parse

FLEET = [
    "--session-id",
    "11111111-2222-4333-8444-555555555501",
    "--settings",
    "/run/settings.json",
    "--settings",
    '{"a":1}',
    "--permission-mode",
    "bypassPermissions",
    "--dangerously-skip-permissions",
    "--model",
    "opus",
    "--name",
    "ana",
    "--append-system-prompt",
    "You are ana.",
    "--plugin-dir",
    "/p",
    "--add-dir",
    "/a",
    "/b",
    "--",
    "--not-a-flag",
]


def test_all_that_a_launcher_passes_is_understood() -> None:
    assert parse(FLEET) == Args(
        prompt="--not-a-flag",
        session_id="11111111-2222-4333-8444-555555555501",
        settings=("/run/settings.json", '{"a":1}'),
        permission_mode="bypassPermissions",
        skip=True,
        model="opus",
        name="ana",
        system="You are ana.",
        plugin_dirs=("/p",),
        add_dirs=("/a", "/b"),
    )


def test_resume_takes_an_id_and_a_prompt_or_nothing() -> None:
    assert parse(["--resume", "U", "go on"]) == Args(resume="U", prompt="go on")
    assert parse(["--resume"]) == Args(resume="")
    assert parse(["--resume", "--verbose"]) == Args(resume="")
    assert parse(["--resume=U"]) == Args(resume="U")


def test_flags_without_a_meaning_here_are_taken_with_their_values() -> None:
    argv = ["--verbose", "--agents", "{}", "--mcp-config", "a", "b", "--effort=high", "--debug", "--", "hello"]
    assert parse(argv) == Args(prompt="hello")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--nosuch"], "error: unknown option '--nosuch'"),
        (["--version=3"], "error: unknown option '--version=3'"),
        (["--model"], "error: option '--model <model>' argument missing"),
        (["--name"], "error: option '-n, --name <name>' argument missing"),
        (
            ["--permission-mode", "x"],
            f"error: option '--permission-mode <mode>' argument 'x' is invalid. Allowed choices are {', '.join(MODES)}.",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_the_client_s_words(argv: list[str], message: str) -> None:
    with pytest.raises(ArgsError) as caught:
        parse(argv)
    assert str(caught.value) == message
