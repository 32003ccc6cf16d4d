"""Skills: whose texts are taken from where, rendered for whom, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping

from nbs_fleet.plan.skills import collect, render
from nbs_fleet.plan.templates import PlanProblem, Renderer
from nbs_fleet.plan.types import Skill
from nbs_fleet.spec.team import Agent, Team


def team(*skills: str) -> Team:
    return Team(name="crew", root="/r", file="/r/team.yaml", agents=(agent(*skills),))


def agent(*skills: str) -> Agent:
    return Agent(handle="ana", base="ana", role=None, driver="sim", dir="/r", skills=skills)


def rendered(disk: Mapping[str, str], *skills: str) -> tuple[Skill | PlanProblem, ...]:
    texts = collect(team(*skills), disk.get)
    return render(team(*skills), agent(*skills), texts, Renderer(texts))


def test_a_template_is_rendered_for_its_agent_and_a_plain_text_is_taken_as_it_is() -> None:
    disk = {"/r/greet/SKILL.md.j2": "I am {{ handle }} of {{ team }}\n", "/r/plain/SKILL.md": "{{ not a mark }}\r\n"}
    assert rendered(disk, "/r/greet", "/r/plain") == (
        Skill("greet", "I am ana of crew\n", "/r/greet"),
        Skill("plain", "{{ not a mark }}\r\n", "/r/plain"),
    )


def test_a_packaged_skill_has_no_folder_whose_files_would_go_with_it() -> None:
    disk = {"template:skills/nbs-poll/SKILL.md.j2": "look, {{ handle }}"}
    assert rendered(disk, "template:skills/nbs-poll") == (Skill("nbs-poll", "look, ana", None),)


def test_a_skill_s_template_may_include_files_of_its_folder() -> None:
    disk = {"/r/s/SKILL.md.j2": '{% include "part.md" %}!', "/r/s/part.md": "hello {{ handle }}"}
    assert rendered(disk, "/r/s") == (Skill("s", "hello ana!", "/r/s"),)


def test_what_is_wrong_is_said_with_its_place() -> None:
    disk = {"/r/bad/SKILL.md.j2": "one\n{{ nobody }}\n", "/r/a/x/SKILL.md": "", "/r/b/x/SKILL.md": ""}
    found = rendered(disk, "/r/none", "/r/bad", "/r/a/x", "/r/b/x")
    assert [str(one) for one in found] == [
        "/r/none: no SKILL.md.j2 and no SKILL.md in it",
        "/r/bad/SKILL.md.j2:2: 'nobody' is undefined; there are: agents, bus, chats, driver, handle, role, root, team, vars",
        "/r/b/x: ana has two skills named x",
    ]


def test_a_skill_for_several_agents_names_none_of_them() -> None:
    texts = collect(team("/r/greet"), {"/r/greet/SKILL.md.j2": "I am {{ handle }}{{ role }}"}.get)
    assert render(team("/r/greet"), agent("/r/greet"), texts, Renderer(texts), shared=True) == (
        Skill("greet", "I am $NBS_HANDLE", "/r/greet"),
    )
