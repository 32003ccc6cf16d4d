"""Malformed team files, each with its exact message: names that lead nowhere, and files that are missing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nbs_fleet.errors import TeamFileError

T = "version: 1\nteam: t\n"
A = "agents: [{handle: ana}]\n"

CASES: dict[str, tuple[str, *tuple[str, ...]]] = {
    "an unknown role": (
        T + "roles: {reviewer: {}}\nagents: [{handle: ana, role: reviewr}]\n",
        '4:30: agents[0].role: unknown role "reviewr"; did you mean "reviewer"?',
    ),
    "a role where none is declared": (
        T + "agents: [{handle: ana, role: reviewer}]\n",
        '3:30: agents[0].role: unknown role "reviewer"; no role is declared',
    ),
    "a role name with a blank": (
        T + "roles: {'a b': {}}\n" + A,
        '3:9: roles["a b"]: "a b" is not a role name; did you mean "a-b"?',
    ),
    "an unknown handle in depends_on": (
        T + "agents: [{handle: ana}, {handle: bo, depends_on: [anna]}]\n",
        '3:51: agents[1].depends_on[0]: unknown handle "anna"; did you mean "ana"?',
    ),
    "an agent that waits for itself": (
        T + "agents: [{handle: ana, depends_on: [ana]}]\n",
        "3:37: agents[0].depends_on[0]: agents wait for each other: ana -> ana; remove one of these",
    ),
    "agents that wait for each other": (
        T
        + "agents:\n  - {handle: a, depends_on: [b]}\n  - {handle: b, depends_on: [c]}\n  - {handle: c, depends_on: [a]}\n",
        "6:30: agents[2].depends_on[0]: agents wait for each other: a -> b -> c -> a; remove one of these",
    ),
    "copies that wait for one of them": (
        T + "agents: [{handle: bo, count: 2, depends_on: [bo-1]}]\n",
        "3:46: agents[0].depends_on[0]: agents wait for each other: bo -> bo; remove one of these",
    ),
    "an unknown member of a chat": (
        T + "chats: [{name: live, members: [ana, bob]}]\nagents: [{handle: ana}, {handle: bo}]\n",
        '3:37: chats[0].members[1]: unknown handle "bob"; did you mean "bo"?',
    ),
    "an unknown chat of an agent": (
        T + "chats: [live]\nagents: [{handle: ana, chats: [lives]}]\n",
        '4:32: agents[0].chats[0]: unknown chat "lives"; did you mean "live"?',
    ),
    "a chat the agent is not a member of": (
        T + "chats: [{name: live, members: [bo]}]\nagents: [{handle: ana, chats: [live]}, {handle: bo}]\n",
        '4:32: agents[0].chats[0]: "ana" is not among the members of "live"; add it there',
    ),
    "two chats of one name": (
        T + "chats: [live, {name: Live}]\n" + A,
        '3:22: chats[1].name: "Live" is already a chat in line 3; remove one',
    ),
    "two chats in one file": (
        T + "chats: [live, {name: talk, path: .nbs/chat/live.chat}]\n" + A,
        '3:34: chats[1].path: ".nbs/chat/live.chat" is already the file of the chat "live"; choose another',
    ),
    "a chat name with a slash": (
        T + "chats: [a/b]\n" + A,
        '3:9: chats[0]: "a/b" is not a chat name; did you mean "a-b"?',
    ),
    "a chat that looks like an archive": (
        T + "chats: [live-archive]\n" + A,
        '3:9: chats[0]: "live-archive" looks like an archive to the nbs tools; leave out -archive',
    ),
    "a chat without name": (
        T + "chats: [{path: x.chat}]\n" + A,
        "3:9: chats[0].name: is missing; write name: live",
    ),
    "a standup without chat": (
        T + "standup: {every: 15m}\n" + A,
        "3:10: standup: needs a chat to post in; declare one under chats",
    ),
    "a standup in an unknown chat": (
        T + "chats: [live, talk]\nstandup: {every: 15m, chat: hall}\n" + A,
        '4:29: standup.chat: unknown chat "hall"; there are live, talk',
    ),
    "a Pythia with several agents": (
        T + "bus: [ev]\npythia: {agent: bo}\nagents: [{handle: bo, count: 2}]\n",
        '4:17: pythia.agent: "bo" stands for 2 agents; name one, such as "bo-1"',
    ),
    "a Pythia with an unknown agent": (
        T + "bus: [ev]\npythia: {agent: oracel}\nagents: [{handle: oracle}]\n",
        '4:17: pythia.agent: unknown handle "oracel"; did you mean "oracle"?',
    ),
    "a Pythia without bus": (
        T + "pythia: {every: 5}\n" + A,
        "3:9: pythia: needs a bus; write bus: [.nbs/events] at the top of the file",
    ),
    "a Pythia on an unknown bus": (
        T + "bus: [ev]\npythia: {bus: evv}\n" + A,
        '4:15: pythia.bus: unknown bus "evv"; did you mean "ev"?',
    ),
    "an unknown driver": (
        T + "driver: cluade\n" + A,
        '3:9: driver: unknown driver "cluade"; did you mean "claude"?',
    ),
    "the same handle twice": (
        T + "agents:\n  - {handle: ana}\n  - {handle: ana}\n",
        '5:14: agents[1].handle: "ana" is already the handle of an agent in line 4; each agent needs its own',
    ),
    "handles that differ in case": (
        T + "agents:\n  - {handle: ana}\n  - {handle: Ana}\n",
        '5:14: agents[1].handle: "Ana" differs from "ana" in line 4 only in case; choose another handle',
    ),
    "handles that differ in dash and underscore": (
        T + "agents:\n  - {handle: a-b}\n  - {handle: a_b}\n",
        '5:14: agents[1].handle: "a_b" differs from "a-b" in line 4 only in "-" and "_"; choose another handle',
    ),
    "a handle like a copy": (
        T + "agents:\n  - {handle: bo, count: 2}\n  - {handle: bo-2}\n",
        '5:14: agents[1].handle: "bo-2" is already the handle of an agent in line 4; each agent needs its own',
    ),
    "a base handle twice": (
        T + "agents:\n  - {handle: bo, count: 2}\n  - {handle: bo}\n",
        '5:14: agents[1].handle: "bo" is already a base handle; choose another or raise its count',
    ),
    "a reserved handle": (
        T + "agents: [{handle: Team}]\n",
        '3:19: agents[0].handle: "Team" is reserved for the nbs tools; choose another handle',
    ),
    "a handle that takes a sidecar's file": (
        T + "agents: [{handle: bo}, {handle: sidecar-bo}]\n",
        '3:33: agents[1].handle: "sidecar-bo" would share a file with the sidecar of "bo"; choose another handle',
    ),
    "a handle too long for its number": (
        T + "agents: [{handle: " + "a" * 62 + ", count: 1}]\n",
        '3:19: agents[0].handle: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..." with its number is longer than 63 characters; choose a shorter handle',
    ),
    "too many agents": (
        T + "agents: [{handle: a, count: 300}, {handle: b, count: 300}]\n",
        "3:44: agents[1].handle: more than 500 agents; split the team",
    ),
    "a root that is missing": (
        T + "root: nowhere\n" + A,
        '3:7: root: "nowhere": no such directory; it is taken from the folder of this file',
    ),
    "a root that is a file": (
        T + "root: team.yaml\n" + A,
        '3:7: root: "team.yaml": is not a directory; it is taken from the folder of this file',
    ),
    "a directory that is missing": (
        T + "agents: [{handle: ana, dir: src}]\n",
        '3:29: agents[0].dir: "src": no such directory; it is taken from the root',
    ),
    "a directory below ~": (
        T + "agents: [{handle: ana, dir: ~/src}]\n",
        '3:29: agents[0].dir: "~/src": no such directory; ~ is not expanded, write ${HOME}',
    ),
    "a directory that is a file": (
        T + "roles: {r: {dir: team.yaml}}\n" + A,
        '3:18: roles.r.dir: "team.yaml": is not a directory; it is taken from the root',
    ),
    "a prompt that is missing": (
        T + "agents: [{handle: ana, prompt: no-such-thing.md.j2}]\n",
        '3:32: agents[0].prompt: no prompt "no-such-thing.md.j2" beside this file or packaged; there are pythia.md.j2, tester.md.j2',
    ),
    "a prompt that is a directory": (
        T + "agents: [{handle: ana, prompt: .}]\n",
        '3:32: agents[0].prompt: ".": is not a regular file; a prompt is a text file',
    ),
    "both kinds of prompt": (
        T + "agents:\n  - handle: ana\n    prompt_text: hi\n    prompt: team.yaml\n",
        "5:5: agents[0].prompt_text: stands beside prompt; keep one of them",
    ),
    "a prompt for the whole team": (
        T + "prompt: team.yaml\n" + A,
        "3:1: prompt: unknown key here; it belongs to a role or an agent",
    ),
    "a prompt text that is too long": (
        T + "agents: [{handle: ana, prompt_text: " + "x" * 100_001 + "}]\n",
        "3:37: agents[0].prompt_text: is longer than 100000 bytes; put it in a file the agent reads",
    ),
    "an env_file that is missing": (
        T + "env_file: secrets.env\n" + A,
        '3:11: env_file: "secrets.env": no such file; create it with mode 0600 or remove the key',
    ),
    "a skill that is missing": (
        T + "skills: [fly]\n" + A,
        '3:10: skills[0]: no skill "fly" beside this file or packaged; there are nbs-notify, nbs-poll',
    ),
    "a bus that is a file": (
        T + "bus: [team.yaml]\n" + A,
        '3:7: bus[0]: "team.yaml": is not a directory; a bus is one, such as .nbs/events',
    ),
    "an include that is text": (
        T + "include: base.yaml\n" + A,
        "3:10: include: must be a list; write [base.yaml]",
    ),
    "an include that is missing": (
        T + "include: [base.yaml]\n" + A,
        '3:11: include[0]: "base.yaml": no such file; did you mean "team.yaml"?',
    ),
    "a file that includes itself": (
        T + "include: [team.yaml]\n" + A,
        "3:11: include[0]: includes itself; remove this line",
    ),
    "an include that is a number": (
        T + "include: [5]\n" + A,
        "3:11: include[0]: must be the path of a file; write [base.yaml]",
    ),
    "an include that is a directory": (
        T + "include: [.]\n" + A,
        '3:11: include[0]: ".": is a directory; name a file in it, such as team.yaml',
    ),
    "several problems": (
        "version: 1\nteam: T\nstandup: {every: 15}\nagents:\n  - {handle: no, role: x}\n  - {handle: ana, colour: red}\n",
        '2:7: team: "T" is not a team name; did you mean "t"?',
        "3:18: standup.every: a duration needs a unit; did you mean 15s?",
        '5:14: agents[0].handle: no means false in YAML; for text write "no"',
        '5:24: agents[0].role: unknown role "x"; no role is declared',
        "6:19: agents[1].colour: unknown key; `nbs-fleet schema` lists all",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_problem_is_named_with_its_place_and_what_would_be_right(name: str, load: Callable[..., object]) -> None:
    text, *lines = CASES[name]
    with pytest.raises(TeamFileError) as caught:
        load(text)
    assert caught.value.problems == tuple(f"team.yaml:{line}" for line in lines)
    assert caught.value.exit_code == 2
