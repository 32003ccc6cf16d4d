"""Malformed team files, each with its exact message: durations, environment and variables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nbs_fleet.errors import TeamFileError

T = "version: 1\nteam: t\n"
A = "agents: [{handle: ana}]\n"

CASES: dict[str, tuple[str, *tuple[str, ...]]] = {
    "a duration without unit": (
        T + "standup: {every: 15}\nchats: [live]\n" + A,
        "3:18: standup.every: a duration needs a unit; did you mean 15s?",
    ),
    "a duration in quotes without unit": (
        T + "sidecar: {poll: '300'}\n" + A,
        "3:17: sidecar.poll: a duration needs a unit; did you mean 300s?",
    ),
    "a duration in words": (
        T + "sidecar: {poll: 5 minutes}\n" + A,
        '3:17: sidecar.poll: "5 minutes" is not a duration; did you mean 5m?',
    ),
    "a duration with units the wrong way round": (
        T + "sidecar: {poll: 30m1h}\n" + A,
        '3:17: sidecar.poll: "30m1h" is not a duration; write 90s, 15m or 1h30m',
    ),
    "a negative duration": (
        T + "sidecar: {notify_cooldown: -5s}\n" + A,
        "3:28: sidecar.notify_cooldown: a duration can't be negative; write 0s for none",
    ),
    "a duration of nothing": (
        T + "standup: {every: 0s}\nchats: [live]\n" + A,
        "3:18: standup.every: must be longer than nothing; write 1s or more",
    ),
    "a duration that is true": (
        T + "sidecar: {poll: true}\n" + A,
        "3:17: sidecar.poll: must be a duration; write 90s, 15m or 1h30m",
    ),
    "a duration of a century": (
        T + "restart: {within: 36500d}\n" + A,
        '3:19: restart.within: "36500d" is longer than 3650 days; write less',
    ),
    "a truth value in env": (
        T + "env: {DEBUG: true}\n" + A,
        '3:14: env.DEBUG: true is a truth value in YAML; for text write "true"',
    ),
    "the word off in env": (
        T + "env: {DEBUG: off}\n" + A,
        '3:14: env.DEBUG: off means false in YAML; for text write "off"',
    ),
    "nothing in env": (
        T + "env:\n  DEBUG:\n" + A,
        '4:3: env.DEBUG: has no value; write "" for an empty one',
    ),
    "a list in env": (
        T + "env: {PATHS: [a, b]}\n" + A,
        "3:14: env.PATHS: must be text, not a list",
    ),
    "a bad name in env": (
        T + "env: {MY-VAR: x}\n" + A,
        "3:7: env.MY-VAR: \"MY-VAR\" can't be a variable's name; use letters, digits and _, not a digit first",
    ),
    "a reserved name in env": (
        T + "env: {NBS_HANDLE: bo}\n" + A,
        "3:7: env.NBS_HANDLE: NBS_HANDLE is set by nbs-fleet in each pane; remove it",
    ),
    "a bad name in env_pass": (
        T + "env_pass: [A*B]\n" + A,
        '3:12: env_pass[0]: "A*B" is not a variable\'s name; write NAME or PREFIX_*',
    ),
    "a variable that is not set": (
        T + "model: ${MODEL}\n" + A,
        "3:8: model: MODEL is not set; set it, or write ${MODEL:-default}",
    ),
    "a variable with its own message": (
        T + "model: ${MODEL:?say which model}\n" + A,
        "3:8: model: MODEL is not set: say which model",
    ),
    "a variable without name": (
        T + "model: a${}\n" + A,
        "3:8: model: ${} is not a variable; write ${NAME}, ${NAME:-default}, ${NAME:?message}, or $$ for a dollar",
    ),
    "a variable that is not closed": (
        T + "model: ${MODEL\n" + A,
        "3:8: model: ${MODEL is not a variable; write ${NAME}, ${NAME:-default}, ${NAME:?message}, or $$ for a dollar",
    ),
    "a variable within a default": (
        T + "model: ${MODEL:-${OTHER}}\n" + A,
        "3:8: model: ${MODEL:-$ is not a variable; write ${NAME}, ${NAME:-default}, ${NAME:?message}, or $$ for a dollar",
    ),
    "an ambiguous word in vars": (
        T + "vars: {answer: yes}\n" + A,
        '3:16: vars.answer: yes may be text or a truth value; write "yes" or true',
    ),
    "no number in settings": (
        T + "settings: {size: .nan}\n" + A,
        "3:18: settings.size: .nan is no finite number; quote it for text",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_problem_is_named_with_its_place_and_what_would_be_right(name: str, load: Callable[..., object]) -> None:
    text, *lines = CASES[name]
    with pytest.raises(TeamFileError) as caught:
        load(text)
    assert caught.value.problems == tuple(f"team.yaml:{line}" for line in lines)
    assert caught.value.exit_code == 2
