"""The packaged skills: each renders for any agent, names itself, and holds only commands that the command line has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nbs_fleet.cli import app, parsing
from nbs_fleet.plan.prompts import variables
from nbs_fleet.plan.templates import Renderer, Template
from nbs_fleet.resources import data_dir
from nbs_fleet.spec.team import Agent, Chat, Team

SKILLS = Path(data_dir("templates/skills"))
NAMES = sorted(path.name for path in SKILLS.iterdir())
VALUES = {
    "ID": "d-1",
    "EVENT": "1-a-x-1.event",
    "CHAT": "live",
    "NAME": "debug",
    "FILE": "x.chat",
    "HANDLE": "bo",
    '"TEXT"': "text",
    '"WORD"': "word",
    '"WHAT"': "what",
    '"WHY"': "why",
}


def rendered(name: str, chats: tuple[str, ...], bus: tuple[str, ...]) -> str:
    agent = Agent("ana", "ana", "reviewer", "sim", "/project", chats=chats, bus=bus)
    known = tuple(Chat(chat, f"/project/.nbs/chat/{chat}.chat", ("ana",)) for chat in ("live", "review"))
    team = Team(name="t", file="/t.yaml", root="/project", agents=(agent,), chats=known)
    path = SKILLS / name / "SKILL.md.j2"
    text = Renderer({}).render(Template(str(path), path.read_text(), None), variables(team, agent))
    assert isinstance(text, str), text
    return text


def commands(text: str) -> list[list[str]]:
    """All `nbs-fleet ...` commands in a text, placeholders filled in."""
    found = re.findall(r"`nbs-fleet ([a-z][^`]*)`", text)
    for placeholder, value in VALUES.items():
        found = [command.replace(placeholder, value) for command in found]
    return [re.sub(r'"[^"]*"', "text", command).split() for command in found]


def test_the_skills_that_a_sidecar_needs_are_there() -> None:
    assert NAMES == ["nbs-notify", "nbs-poll", "nbs-recovery", "nbs-teams-chat"]


@pytest.mark.parametrize("bus", [(), ("/project/.nbs/events",)])
@pytest.mark.parametrize("chats", [(), ("live",), ("live", "review")])
@pytest.mark.parametrize("name", NAMES)
def test_each_skill_renders_for_any_agent(name: str, chats: tuple[str, ...], bus: tuple[str, ...]) -> None:
    text = rendered(name, chats, bus)
    head, front, body = text.split("---\n", 2)
    assert head == ""
    assert re.fullmatch(rf"name: {name}\ndescription: [^\n:]+\n", front)
    assert body.startswith("\n# ")
    assert "\n\n\n" not in text
    assert text.endswith("\n")
    assert "ana" in body
    assert all(chat in body for chat in chats)
    assert all(folder in body for folder in bus)
    assert ("/nbs/events" in body or ".nbs/events" in body) is bool(bus)


@pytest.mark.parametrize("name", NAMES)
def test_each_command_in_a_skill_is_one_that_exists(name: str) -> None:
    found = commands(rendered(name, ("live",), ("/project/.nbs/events",)))
    assert found
    for words in found:
        double = " ".join(words[:2])
        meant = double if double in app.COMMANDS else words[0]
        if words == ["--help"]:
            continue
        command = parsing.command(meant)
        command.make_context(meant, words[len(meant.split()) :])  # raises what it refuses


def test_a_notice_s_summary_has_its_place() -> None:
    assert "$ARGUMENTS" in rendered("nbs-notify", ("live",), ())
