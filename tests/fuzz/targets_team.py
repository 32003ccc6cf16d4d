"""What a person writes: team files, files of secret variables, test files, scenarios, prompts, settings of clients."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from hypothesis import strategies as st

from nbs_fleet.drivers.deployment import AddItem, EditError, Format, SetKey
from nbs_fleet.plan import edits
from nbs_fleet.plan.templates import LIMIT, PlanProblem, Renderer, Template, includes
from nbs_fleet.sim import scenario
from nbs_fleet.spec import envfile
from nbs_fleet.spec.config import render
from nbs_fleet.spec.load import load_team
from nbs_fleet.testing.load import load_script
from tests.fuzz.inputs import of_bytes, of_json
from tests.fuzz.target import Target, told

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
DRIVERS = ("claude", "sim", "codex", "generic")
TEAM = (
    b"version: 1\nteam: t\nchats: [live]\nbus: [.nbs/events]\nstandup: {every: 15m, chat: live}\nvars: {x: '${V:-y}'}\n"
    b"roles: {r: {model: x, prompt_text: hi, dialogs: {trust: accept}}}\nagents:\n- {handle: ana, role: r, env: {A: b}}\n"
    b"- {handle: bo, count: 2, depends_on: [ana]}\n"
)
EDITS: dict[Format, tuple[bytes, ...]] = {
    "json": (b'{"a": {"b": [1, "x"]}, // c\n "mcp": {"nbs": {"command": "x"}}}\n', b'{"a": []}'),
    "toml": (b'a = 1\n[mcp.nbs]\ncommand = "x"\nlist = [1,\n 2]\n[[t]]\nb = 2\n',),
    "yaml": (b"a: {b: [1, x]}\nmcp:\n  nbs: &n {command: x}\n  o: *n\nread:\n- a\n- b\n",),
}


def seeds(*patterns: str) -> tuple[bytes, ...]:
    """The files of the checkout that match, shortest first."""
    found = {path.read_bytes() for pattern in patterns for path in CHECKOUT.glob(pattern) if path.is_file()}
    return tuple(sorted((text for text in found if len(text) < 60_000), key=lambda text: (len(text), text)))


def in_folder(name: str, read: Callable[[str], Any]) -> Callable[[bytes], None]:
    """A reader that is given the path of a file in a project directory of its own."""

    def tried(data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
            (Path(folder) / ".git").mkdir()
            path = Path(folder) / name
            path.write_bytes(data)
            read(str(path))

    return tried


def _team(path: str) -> None:
    loaded = load_team(path, {"V": "value", "HOME": "/h"}, known_drivers=DRIVERS)
    told(loaded.team)
    render(loaded).encode()


def _script(path: str) -> None:
    script = load_script(path, {"V": "value"}, known_drivers=DRIVERS)
    assert len(script.steps_at) == len(script.said.steps)


def _variables(path: str) -> None:
    Path(path).chmod(0o600)
    for name, value in envfile.read(path).items():
        assert "\0" not in name + value
        assert "=" not in name


VALUES = {
    "team": "t",
    "root": "/r",
    "handle": "ana",
    "role": "",
    "driver": "sim",
    "vars": {"x": "y"},
    "agents": [{"handle": "ana", "role": "", "driver": "sim"}],
    "chats": [],
    "bus": [],
}


def _prompt(data: bytes) -> None:
    template = Template("/r/p.md.j2", data.decode("utf-8", "replace"), "/r")
    includes(template)
    found = Renderer({"/r/p.md.j2": template.text, "/r/o": "{{ handle }}"}).render(template, VALUES)
    if isinstance(found, PlanProblem):
        str(found).encode()
    else:
        assert len(found.encode()) <= LIMIT
        # Nothing of this process is within a template's reach.
        assert "module 'os'" not in found


def _settings(fmt: Format) -> Callable[[bytes], None]:
    def tried(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        for change in (SetKey(("mcp", "nbs"), {"command": "y"}), AddItem(("a", "b"), "z")):
            after, fragment = edits.put(text, fmt, change)
            if fragment is not None:
                back = edits.take(after, fmt, change, fragment)
                assert edits.read(back, fmt) == edits.read(text, fmt) or edits.there(edits.read(text, fmt), change)

    return tried


def _toml(data: bytes, suffix: str) -> None:
    with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
        path = Path(folder) / f"s.{suffix}"
        path.write_bytes(data)
        scenario.load(str(path))


PROMPT_WORDS = (
    b"{{ handle }}",
    b"{% for a in agents %}",
    b"{% endfor %}",
    b"{% include 'o' %}",
    b"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    b"{{ ''.__class__.__mro__ }}",
    b"{{ self.__init__.__globals__ }}",
    b"{{ cycler.__init__.__globals__.os }}",
    b"{{ 'a' * 9999999 }}",
    b"{% for i in range(99999999) %}x{% endfor %}",
    b"{{ '%0999999999d' % 1 }}",
    b"{{ '{:>999999999}'.format(1) }}",
    b"{{ 9 ** 9 ** 9 }}",
    b"{{ vars | tojson | forceescape | xmlattr }}",
    b"{{ 'x' | center(999999999) }}",
    b"{{ [1] | batch(99999999, 'x') | list }}",
    b"{{ lipsum(9999) }}",
    b"{% set n = namespace(a=1) %}{% if n.a is divisibleby 0 %}",
    b"{% endif %}",
    b"{% block b %}{{ super() }}{% endblock %}",
    b"{% extends handle %}",
    b"{% import 'o' as o %}{{ o.x }}",
)


def targets() -> tuple[Target, ...]:
    """The targets of this module."""
    teams = (TEAM, *seeds("teams/*.yaml", "teams/*/*.yaml"))
    scripts = seeds("teams/**/*.test.yaml", "tests/**/*.test.yaml")
    prompts = seeds("templates/*.j2", "templates/skills/*/*")
    tomls = seeds("teams/**/*.toml", "tests/**/*.toml") or (b'[[responses]]\npattern = {type="any"}\nresponse = "x"\n',)
    env = (b"# c\nA=1\nexport API_KEY='x y'\nB=\"q\\n\"\nC=\n",)
    jsons = (
        b"""{"responses": [{"pattern": {"type": "regex", "pattern": "a+"}, "turns": [], "response": {"text": "x",
        "tool_calls": [{"tool": "Bash", "input": {"command": "ls"}}], "usage": {"input_tokens": 1}}}], "timeouts": {}}""",
    )
    return (
        Target(
            "team-file", "a team file", lambda: st.one_of(of_bytes(teams), of_json((TEAM,))), in_folder("t.yaml", _team)
        ),
        Target("env-file", "a file of secret variables", lambda: of_bytes(env), in_folder("secrets.env", _variables)),
        Target("test-file", "a test file", lambda: of_bytes(scripts), in_folder("x.test.yaml", _script)),
        Target("template", "a prompt's template", lambda: of_bytes(prompts, PROMPT_WORDS), _prompt),
        Target(
            "scenario-toml",
            "a scenario of the simulator",
            lambda: of_bytes(tomls),
            lambda data: _toml(data, "toml"),
            (scenario.ScenarioError,),
        ),
        Target(
            "scenario-json",
            "the same in JSON",
            lambda: st.one_of(of_json(jsons), of_bytes(jsons)),
            lambda data: _toml(data, "json"),
            (scenario.ScenarioError,),
        ),
        *(
            Target(
                f"settings-{fmt}",
                f"a client's settings in {fmt.upper()} that a driver adds to",
                lambda fmt=fmt: of_bytes(EDITS[fmt]),  # type: ignore[misc]
                _settings(fmt),
                (EditError,),
            )
            for fmt in get_args(Format)
        ),
    )
