"""Malformed team files, each with its exact message: keys and values of the wrong kind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nbs_fleet.errors import TeamFileError

T = "version: 1\nteam: t\n"
A = "agents: [{handle: ana}]\n"

CASES: dict[str, tuple[str, *tuple[str, ...]]] = {
    "a duplicate key": (
        T + "model: opus\nmodel: sonnet\n" + A,
        "4:1: model: duplicate key; it is already in line 3",
    ),
    "a duplicate key in an agent": (
        T + "agents:\n  - handle: ana\n    env:\n      A: x\n      A: y\n",
        "7:7: agents[0].env.A: duplicate key; it is already in line 6",
    ),
    "a number as key": (
        T + "vars: {1: x}\n" + A,
        '3:8: vars: the key 1 must be text; quote it: "1"',
    ),
    "a truth value as key": (
        T + "vars:\n  true: x\n" + A,
        '4:3: vars: the key true must be text; quote it: "true"',
    ),
    "a list as key": (
        T + "? [a]\n: b\n" + A,
        "3:3: a key must be text, not a list or mapping; write key: value",
    ),
    "no key before the colon": (
        T + "vars:\n  : x\n" + A,
        "4:3: wrong indentation, or text after a closing quote; keys of one mapping start in the same column",
    ),
    "an unknown key": (
        T + "agents: [{handle: ana}]\ncolour: red\n",
        "4:1: colour: unknown key; `nbs-fleet schema` lists all",
    ),
    "a misspelt key": (
        T + "agents:\n  - handle: ana\n    chat: [live]\n",
        '5:5: agents[0].chat: unknown key; did you mean "chats"?',
    ),
    "a misspelt key in a nested mapping": (
        T + "restart: {maximum: 3}\n" + A,
        '3:11: restart.maximum: unknown key; did you mean "max"?',
    ),
    "a key with the wrong separator": (
        T + "permission-mode: plan\n" + A,
        '3:1: permission-mode: unknown key; did you mean "permission_mode"?',
    ),
    "a key that belongs to an agent": (
        T + "handle: ana\n" + A,
        "3:1: handle: unknown key here; it belongs to an agent",
    ),
    "a key that belongs to the top": (
        T + "agents:\n  - {handle: ana, layout: {panes_per_window: 2}}\n",
        "4:19: agents[0].layout: unknown key here; it belongs at the top of the file",
    ),
    "a key that belongs under sidecar": (
        T + "notify_cooldown: 5s\n" + A,
        "3:1: notify_cooldown: unknown key here; it belongs under sidecar",
    ),
    "a key that belongs to an agent, in a role": (
        T + "roles: {tester: {count: 2}}\n" + A,
        "3:18: roles.tester.count: unknown key here; it belongs to an agent",
    ),
    "a key that looks strange": (
        T + '"a b\\n": 1\n' + A,
        '3:1: ["a b\\n"]: unknown key; `nbs-fleet schema` lists all',
    ),
    "keys that are missing": (
        "model: opus\n",
        "1:1: version: is missing; write version: 1",
        "1:1: team: is missing; write team: review",
        "1:1: agents: is missing; write agents: [{handle: ana}]",
    ),
    "an agent without handle": (
        T + "agents:\n  - role: x\nroles: {x: {}}\n",
        "4:5: agents[0].handle: is missing; write handle: ana",
    ),
    "a key without value": (
        T + "model:\n" + A,
        "3:1: model: has no value; give one or remove it",
    ),
    "agents without value": (
        T + "agents:\n",
        "3:1: agents: has no value; give one or remove it",
    ),
    "an empty list item": (
        T + "agents:\n  - handle: ana\n  -\n",
        "5:4: agents[1]: has no value; give one or remove it",
    ),
    "no agents": (
        T + "agents: []\n",
        "3:9: agents: must have at least 1 item, not 0; write agents: [{handle: ana}]",
    ),
    "a wrong version": (
        "version: 2\nteam: t\n" + A,
        "1:10: version: 2 is not known; write 1",
    ),
    "a version in quotes": (
        "version: '1'\nteam: t\n" + A,
        '1:10: version: "1" is not known; write 1',
    ),
    "a version that is true": (
        "version: true\nteam: t\n" + A,
        "1:10: version: true is not known; write 1",
    ),
    "a team name in upper case": (
        "version: 1\nteam: Review\n" + A,
        '2:7: team: "Review" is not a team name; did you mean "review"?',
    ),
    "a team name that is a number": (
        "version: 1\nteam: 2024\n" + A,
        '2:7: team: 2024 is a number; for text write "2024"',
    ),
    "a team name that is too long": (
        "version: 1\nteam: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" + A,
        '2:7: team: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" is not a team name; use a lower-case letter, then up to 30 lower-case letters, digits or "-"',
    ),
    "the word no as handle": (
        T + "agents: [{handle: no}]\n",
        '3:19: agents[0].handle: no means false in YAML; for text write "no"',
    ),
    "the word on as model": (
        T + "model: on\n" + A,
        '3:8: model: on means true in YAML; for text write "on"',
    ),
    "a handle with a dot": (
        T + "agents: [{handle: ana.b}]\n",
        '3:19: agents[0].handle: "ana.b" is not a handle; did you mean "ana-b"?',
    ),
    "a handle that begins with a digit": (
        T + "agents: [{handle: 9bo}]\n",
        '3:19: agents[0].handle: "9bo" is not a handle; use a letter, then up to 62 letters, digits, "_" or "-"',
    ),
    "an empty model": (
        T + "model: ''\n" + A,
        "3:8: model: is empty; give a value or remove the key",
    ),
    "a model that is a number": (
        T + "model: 4.5\n" + A,
        '3:8: model: 4.5 is a number; for text write "4.5"',
    ),
    "a model that is a list": (
        T + "model: [opus]\n" + A,
        "3:8: model: must be text, not a list; write model: opus",
    ),
    "a count of zero": (
        T + "agents: [{handle: bo, count: 0}]\n",
        "3:30: agents[0].count: must be at least 1",
    ),
    "a count that is text": (
        T + "agents: [{handle: bo, count: three}]\n",
        '3:30: agents[0].count: must be a whole number, not the text "three"; write count: 3',
    ),
    "a count that is half": (
        T + "agents: [{handle: bo, count: 1.5}]\n",
        "3:30: agents[0].count: must be a whole number, not 1.5; write count: 3",
    ),
    "a count that is true": (
        T + "agents: [{handle: bo, count: true}]\n",
        "3:30: agents[0].count: must be a whole number, not true; write count: 3",
    ),
    "a choice misspelt": (
        T + "dialogs: {trust: acept}\n" + A,
        '3:18: dialogs.trust: "acept" is not known here; did you mean "accept"?',
    ),
    "a choice that does not fit": (
        T + "dialogs: {plan: accept}\n" + A,
        '3:17: dialogs.plan: "accept" is not known here; possible are ask, approve, deny',
    ),
    "a choice that YAML reads as false": (
        T + "dialogs: {trust: no}\n" + A,
        "3:18: dialogs.trust: no means false in YAML; possible are ask, accept, deny",
    ),
    "a truth value that is text": (
        T + "restart: {resume: maybe}\n" + A,
        '3:19: restart.resume: must be true or false, not the text "maybe"; write resume: true',
    ),
    "a mapping where text goes": (
        T + "dir: {a: b}\n" + A,
        "3:6: dir: must be text, not a mapping; write dir: src",
    ),
    "a text where a list goes": (
        T + "agents:\n  - {handle: ana}\n  - {handle: bo, depends_on: ana}\n",
        "5:30: agents[1].depends_on: must be a list; write [ana]",
    ),
    "a text where a mapping goes": (
        T + "restart: never\n" + A,
        '3:10: restart: must be a mapping, not the text "never"; write restart: {max: 5}',
    ),
    "a list where a mapping goes": (
        T + "env: [A=b]\n" + A,
        "3:6: env: must be a mapping, not a list; write env: {LOG: debug}",
    ),
    "a mapping where a list goes": (
        T + "agents: {ana: {}}\n",
        "3:9: agents: must be a list, not a mapping; write agents: [{handle: ana}]",
    ),
    "text items where mappings go": (
        T + "agents: [ana, bo]\n",
        '3:10: agents[0]: must be a mapping, not the text "ana"',
        '3:15: agents[1]: must be a mapping, not the text "bo"',
    ),
    "a standup that is true": (
        T + "standup: true\nchats: [live]\n" + A,
        "3:10: standup: must be false or a mapping, not true; write standup: {chat: live, every: 15m}",
    ),
    "a recovery that is unknown": (
        T + "on_idle: nudg\n" + A,
        '3:10: on_idle: "nudg" is not known here; did you mean "nudge"?',
    ),
    "a recovery without do": (
        T + "on_dead: {attempts: 2}\n" + A,
        "3:10: on_dead.do: is missing; write do: nudge",
    ),
    "a recovery that is a list": (
        T + "on_dead: [nudge]\n" + A,
        "3:10: on_dead: must be one of nudge, resume, restart, escalate, ignore, or a mapping, not a list; write on_dead: restart",
    ),
    "a size with one number": (
        T + "layout: {size: [200]}\n" + A,
        "3:16: layout.size: must have 2 items, not 1; write size: [200, 50]",
    ),
    "a size that is too small": (
        T + "layout: {size: [200, 5]}\n" + A,
        "3:22: layout.size[1]: must be at least 10",
    ),
    "hours of infinity": (
        T + "budget: {hours: .inf}\n" + A,
        "3:17: budget.hours: must be a finite number, not .inf; write hours: 8",
    ),
    "a command with an open quote": (
        T + "command: claude 'x\n" + A,
        "3:10: command: has a quote that is never closed; close it or write a list",
    ),
    "an empty command": (
        T + "command: []\n" + A,
        "3:10: command: names no program; write command: my-client or a list",
    ),
    "a rule for an unknown occasion": (
        T + "notifications: [{on: fail, via: desktop}]\n" + A,
        '3:22: notifications[0].on: "fail" is not known here; did you mean "failed"?',
    ),
    "a quiet time in words": (
        T + "notifications: [{on: [failed], via: desktop, quiet: nights}]\n" + A,
        '3:53: notifications[0].quiet: "nights" is not a time of day; write 22:00-07:00',
    ),
    "a webhook that is no address": (
        T + "notifications: [{on: [failed], via: webhook, url: example.org}]\n" + A,
        '3:51: notifications[0].url: "example.org" is not an address; write https://host/path',
    ),
    "a webhook without address": (
        T + "notifications: [{on: [failed], via: webhook}]\n" + A,
        "3:17: notifications[0].url: is missing with via: webhook; write url: https://host/path",
    ),
    "a command for a desktop rule": (
        T + "agents:\n  - handle: ana\n    notifications: [{on: failed, via: desktop, command: x}]\n",
        "5:48: agents[0].notifications[0].command: goes with via: command only; remove it",
    ),
    "a number as text in args": (
        T + "args: [true]\n" + A,
        '3:8: args[0]: true is a truth value in YAML; for text write "true"',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_problem_is_named_with_its_place_and_what_would_be_right(name: str, load: Callable[..., object]) -> None:
    text, *lines = CASES[name]
    with pytest.raises(TeamFileError) as caught:
        load(text)
    assert caught.value.problems == tuple(f"team.yaml:{line}" for line in lines)
    assert caught.value.exit_code == 2
