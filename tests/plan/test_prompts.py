"""Prompt templates: bytes survive, mistakes have a file and a line, and no template runs for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.plan import templates
from nbs_fleet.plan.prompts import collect, find, variables
from nbs_fleet.plan.sandbox import Renderer, includes
from nbs_fleet.plan.templates import LIMIT, PlanProblem, Template
from nbs_fleet.spec.team import Agent, Chat, Team

VALUES = {"handle": "ana", "vars": {"project": "Widget"}, "agents": [{"handle": "ana"}, {"handle": "bo"}]}


def said(text: str, prompts: dict[str, str] | None = None, **more: object) -> str:
    """The rendered text, or the problem's line."""
    return str(Renderer(prompts or {}).render(Template("/p/main.j2", text, "/p"), VALUES | more))


def test_names_are_filled_in() -> None:
    text = (
        "{{ handle }} on {{ vars.project }}: {% for a in agents %}{{ a.handle }}{{ ', ' if not loop.last }}{% endfor %}"
    )
    assert said(text) == "ana on Widget: ana, bo"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "a\n\n\n",
        "a\r\nb\r\n",
        "a\rb",
        "\r\n\r\n",
        "mixed\r\nends\nhere\r",
        "  leading\n\ttabs\n",
        "quotes ' \" $HOME \\ `x` %s <&>",
        "🙂 é\u0301 \u2028 \x0b\x0c\x1c\x85\u205f",
        "{ single } braces } }",
    ],
)
def test_text_without_marks_survives_byte_for_byte(text: str) -> None:
    assert said(text) == text


plain = st.text(st.sampled_from("ab {}\r\n\t'\"$\\%#é🙂\u205f\u1680\x1c"), max_size=40).filter(
    lambda t: not any(mark in t for mark in ("{{", "{%", "{#"))
)


@given(
    st.text(st.sampled_from("ab }\r\n\t'\"$\\%#é🙂\0\ud800\u205f\u1680\x1c"), max_size=40),
    st.sampled_from([1, 3_000, 9_000]),
)
def test_a_text_without_braces_is_rendered_without_the_sandbox_as_with_it(text: str, times: int) -> None:
    template = Template("/p/main.j2", text * times, "/p")
    made, wanted = templates.Renderer({}).render(template, VALUES), Renderer({}).render(template, VALUES)
    assert made == wanted or (isinstance(made, PlanProblem) and isinstance(wanted, PlanProblem))
    assert templates.includes(template) == includes(template) == ()


@given(plain, plain)
def test_text_around_marks_survives_byte_for_byte(before: str, after: str) -> None:
    assert said(before + "\n{{ handle }}\n" + after) == before + "\nana\n" + after


@given(st.text(st.sampled_from("ab\r\n\u205f\u1680\u2000\x1c"), max_size=20))
def test_values_survive_byte_for_byte(value: str) -> None:
    assert said("<{{ v }}>\r\n", v=value) == f"<{value}>\r\n"


def test_returns_survive_even_where_every_stand_in_is_taken() -> None:
    every = "\u205f\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u3000\x1c\x1d\x1e\x1f"
    assert said(every + "\n") == every + "\n"


def test_a_mark_may_span_crlf_lines_and_trim_them() -> None:
    assert said("a\r\n{%- if\r\nhandle -%}\r\nb\r\n{% endif %}c") == "ab\r\nc"


def test_line_numbers_are_right_in_crlf_files() -> None:
    assert said("a\r\nb\r\n{{ nope }}").startswith("/p/main.j2:3: ")


def test_an_undefined_name_is_told_with_the_nearest_there_is() -> None:
    assert said("x\n{{ hande }}") == "/p/main.j2:2: 'hande' is undefined; did you mean 'handle'?"
    assert said("{{ zzz }}") == "/p/main.j2:1: 'zzz' is undefined; there are: agents, handle, vars"


def test_a_missing_key_is_told() -> None:
    assert said("{{ vars.projekt }}") == "/p/main.j2:1: there is no key 'projekt'; did you mean 'project'?"
    assert said("{{ vars['x'] }}") == "/p/main.j2:1: there is no key 'x'; there are: project"


def test_a_name_may_be_asked_for_before_use() -> None:
    assert said("{% if nope is defined %}x{% endif %}{{ vars.x | default('y') }}") == "y"


def test_a_syntax_error_has_its_line() -> None:
    assert said("a\n\n{% if handle %}x") == (
        "/p/main.j2:3: Unexpected end of template. Jinja was looking for the following tags: "
        "'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'."
    )
    assert said("a\n{{ a b }}").startswith("/p/main.j2:2: ")
    assert said("a\n{{ handle | nofilter }}") == "/p/main.j2:2: No filter named 'nofilter'."


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__ }}",
        "{{ handle.__class__.__mro__[1].__subclasses__() }}",
        "{{ agents.append(1) }}",
        "{{ vars.update(a=1) }}",
        "{{ self.__init__.__globals__ }}",
        "{{ lipsum() }}",
        "{{ agents | random }}",
        "{{ '{0.__class__}'.format(handle) }}",
        "{{ 1 / 0 }}",
        "{{ [1][5] + 1 }}",
        "{{ 'x' + 1 }}",
        "{{ handle | int('x', 1, 2, 3) }}",
        "{% for x in 5 %}{% endfor %}",
        "{{ [1] | dictsort }}",
    ],
)
def test_what_the_sandbox_or_the_template_forbids_has_its_line(text: str) -> None:
    assert said("one\n" + text).startswith("/p/main.j2:2: ")


@pytest.mark.parametrize(
    "text",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in 'x' * 99999 %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{% for i in 'ab' recursive %}{{ loop('ab') }}{% endfor %}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ 'x' * 10000000000 }}",
        "{{ 10000000000 * [1] }}",
        "{% include 'main.j2' %}",
        "{% for a in 'x' %}" * 30 + "{% endfor %}" * 30,
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% for i in range(99999) %}xxxxx{% endfor %}",
    ],
)
def test_no_template_runs_for_ever(text: str) -> None:
    assert isinstance(Renderer({"/p/main.j2": text}).render(Template("/p/main.j2", text, "/p"), VALUES), PlanProblem)


def test_ordinary_loops_know_their_length_and_place() -> None:
    assert said("{% for a in agents %}{{ loop.index }}/{{ loop.length }} {% endfor %}") == "1/2 2/2 "
    assert said("{% for k, v in vars.items() if v %}{{ k }}{% else %}none{% endfor %}") == "project"


def test_an_include_is_looked_for_beside_the_prompt_then_among_the_packaged() -> None:
    prompts = {"/p/a.j2": "beside\r\n", "template:a.j2": "packaged", "template:b.j2": "b", "/p/sub/c.j2": "c"}
    assert said("{% include 'a.j2' %}", prompts) == "beside\r\n"
    assert said("{% include 'template:a.j2' %}", prompts) == "packaged"
    assert said("{% include 'b.j2' %}{% include './sub/c.j2' %}", prompts) == "bc"


@pytest.mark.parametrize("name", ["../x.j2", "/p/x.j2", "sub/../../x.j2", "nope.j2", ""])
def test_an_include_stays_in_the_prompts_folder(name: str) -> None:
    prompts = {"/x.j2": "x", "/p/x.j2": "x", "x.j2": "x", "": "x", "nope.j2": "x"}
    problem = said(f"\n{{% include '{name}' %}}", prompts)
    assert problem == f"/p/main.j2:2: no template {name!r} beside the prompt or among the packaged ones"


def test_a_mistake_in_an_included_template_names_that_one() -> None:
    prompts = {"/p/a.j2": "x\n{{ nope }}", "/p/b.j2": "x\n\n{% if %}"}
    assert said("{% include 'a.j2' %}", prompts).startswith("/p/a.j2:2: 'nope' is undefined")
    assert said("{% include 'b.j2' %}", prompts).startswith("/p/b.j2:3: ")


def test_the_size_limit_is_in_bytes() -> None:
    assert said("é" * (LIMIT // 2)) == "é" * (LIMIT // 2)
    assert said("é" * (LIMIT // 2) + "x") == "/p/main.j2: the prompt is 100001 bytes long; at most 100000 (100 kB)"
    assert said("{{ v }}", v="x" * 200_000) == "/p/main.j2: the prompt is longer than 100 kB"


def test_what_no_program_can_be_given_is_refused() -> None:
    assert said("a\0b") == "/p/main.j2: the prompt holds a NUL character, which no program can be given"
    assert said("{{ v }}", v="\udce9") == "/p/main.j2: the prompt holds characters that are no valid UTF-8"


def test_the_same_template_gives_the_same_text() -> None:
    text = "{% for a in agents %}{{ a }}{{ vars }}{% endfor %}"
    assert said(text) == said(text)


TEAM = Team(
    name="review",
    file="/project/teams/review.yaml",
    root="/project",
    vars={"project": "Widget"},
    chats=(Chat("live", "/project/.nbs/chat/live.chat", ("ana", "bo")), Chat("other", "/o.chat", ("bo",))),
    agents=(
        Agent(
            "ana", "ana", "reviewer", "claude", "/project", prompt="/project/teams/a.j2", chats=("live",), bus=("/ev",)
        ),
        Agent("bo", "bo", None, "sim", "/project", prompt_text="{% include 'part.j2' %}", chats=("live", "other")),
        Agent("cy", "cy", None, "sim", "/project", prompt="template:worker.md.j2"),
        Agent("di", "di", None, "sim", "/project"),
    ),
)


def test_a_prompt_knows_its_team_and_its_own_chats() -> None:
    values = variables(TEAM, TEAM.agents[0])
    assert values == {
        "team": "review",
        "root": "/project",
        "handle": "ana",
        "role": "reviewer",
        "driver": "claude",
        "vars": {"project": "Widget"},
        "agents": [
            {"handle": "ana", "role": "reviewer", "driver": "claude"},
            {"handle": "bo", "role": "", "driver": "sim"},
            {"handle": "cy", "role": "", "driver": "sim"},
            {"handle": "di", "role": "", "driver": "sim"},
        ],
        "chats": [{"name": "live", "path": "/project/.nbs/chat/live.chat", "members": ["ana", "bo"]}],
        "bus": ["/ev"],
    }


def test_a_template_is_found_by_path_name_or_in_the_file_itself() -> None:
    prompts = {"/project/teams/a.j2": "A", "template:worker.md.j2": "W"}
    ana, bo, cy, di = TEAM.agents
    assert find(TEAM, ana, prompts) == Template("/project/teams/a.j2", "A", "/project/teams")
    assert find(TEAM, bo, prompts) == Template(
        "/project/teams/review.yaml: bo: prompt_text", "{% include 'part.j2' %}", "/project/teams"
    )
    assert find(TEAM, cy, prompts) == Template("template:worker.md.j2", "W", None)
    assert find(TEAM, di, prompts) is None
    assert str(find(TEAM, cy, {})) == "template:worker.md.j2: no such prompt template, and cy needs it"


def test_all_templates_that_a_team_needs_are_collected() -> None:
    files = {
        "/project/teams/a.j2": "{% include 'part.j2' %}{% import 'sub/m.j2' as m %}",
        "/project/teams/part.j2": "{% include 'a.j2' %}{% include 'base.j2' %}",
        "/project/teams/sub/m.j2": "m",
        "template:base.j2": "b",
        "template:worker.md.j2": "{% include ['none.j2', 'base.j2'] %}",
        "template:unused.j2": "u",
        "/none": "n",
    }
    assert collect(TEAM, files.get) == {k: v for k, v in files.items() if k not in ("template:unused.j2", "/none")}


def test_a_template_that_does_not_parse_asks_for_nothing() -> None:
    assert includes(Template("/p/x", "{% include 'a' %}{% if %}", "/p")) == ()
    assert includes(Template("/p/x", "\r\n{% include\r\n'a' %}", "/p")) == ("/p/a", "template:a")
