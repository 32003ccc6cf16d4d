"""What an agent's environment holds, how it is kept, and what is masked."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.errors import FleetError
from nbs_fleet.launch.environment import (
    MASK,
    agent_environment,
    mask,
    read_values,
    secret_values,
    values_file,
    write_values,
)
from nbs_fleet.plan.script import SCRUBBED
from nbs_fleet.spec.team import Agent

CALLER = {
    "HOME": "/home/ana",
    "PATH": "/usr/bin",
    "LANG": "C.UTF-8",
    "LC_TIME": "de_DE",
    "EDITOR": "vi",
    "HTTPS_PROXY": "http://proxy",
    "ANTHROPIC_API_KEY": "sk-1234567890",
    "CLAUDE_CONFIG_DIR": "/home/ana/.claude",
    "NBS_HANDLE": "caller",
    "NBS_POLL_INTERVAL": "5",
    **dict.fromkeys(SCRUBBED, "caller's own"),
}
DRIVER_KEYS = ("ANTHROPIC_*", "CLAUDE_CONFIG_DIR")


def agent(**settings: object) -> Agent:
    return Agent(handle="ana", base="ana", role=None, driver="claude", dir="/work", **settings)  # type: ignore[arg-type]


def test_an_agent_inherits_all_but_what_describes_its_caller() -> None:
    env = agent_environment(agent(), CALLER, DRIVER_KEYS, {})
    assert env == {
        name: CALLER[name]
        for name in (
            *("HOME", "PATH", "LANG", "LC_TIME", "EDITOR", "HTTPS_PROXY", "ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR"),
        )
    }


@pytest.mark.parametrize(
    "name",
    [
        *("TMUX", "TMUX_PANE", "TERM", "COLUMNS", "LINES", "PWD", "SHLVL", "NBS_ANYTHING"),
        *("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID", "CODEX_SANDBOX", "GEMINI_CLI"),
    ],
)
def test_no_agent_inherits_a_mark_of_its_callers_session(name: str) -> None:
    assert agent_environment(agent(), {name: "x"}, (), {}) == {}


def test_a_clean_environment_begins_with_the_few_that_everybody_needs() -> None:
    env = agent_environment(agent(environment="clean"), CALLER, DRIVER_KEYS, {})
    assert sorted(env) == [
        *("ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "HOME", "HTTPS_PROXY", "LANG", "LC_TIME", "PATH"),
    ]


def test_a_driver_key_brings_no_session_mark_back() -> None:
    caller = {"CLAUDE_CODE_CHILD_SESSION": "1", "CLAUDE_CODE_MAX_RETRIES": "2"}
    assert agent_environment(agent(environment="clean"), caller, ("CLAUDE_*",), {}) == {"CLAUDE_CODE_MAX_RETRIES": "2"}


def test_env_file_then_env_pass_then_env_win() -> None:
    caller = dict.fromkeys(("A", "B", "C", "D"), "caller")
    env = agent_environment(
        agent(env={"D": "env"}, env_pass=("C", "D", "MISSING")),
        caller,
        (),
        dict.fromkeys(("B", "C", "D", "MISSING"), "file"),
    )
    assert env == {"A": "caller", "B": "file", "C": "caller", "D": "env", "MISSING": "file"}


def test_env_pass_brings_even_a_scrubbed_variable() -> None:
    wanted = agent(environment="clean", env_pass=("COLUMNS", "OWN_*"))
    assert agent_environment(wanted, {"COLUMNS": "80", "OWN_X": "1", "OTHER": "2"}, (), {}) == {
        "COLUMNS": "80",
        "OWN_X": "1",
    }


names = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True).filter(lambda n: n not in {"IFS", "PPID", "UID", "EUID"})
values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


@given(st.dictionaries(names, values, max_size=8))
def test_values_survive_the_file_whatever_they_hold(env: dict[str, str]) -> None:
    path = os.path.join(os.environ["HOME"], "values.env")
    write_values(path, env)
    assert read_values(path) == env


@pytest.mark.parametrize(
    "spoil", [lambda d: d[:-1], lambda d: d[:20], lambda d: b"", lambda d: d.replace(b"home", b"hole")]
)
def test_an_environment_that_was_changed_is_none(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "values.env"
    write_values(str(path), {"HOME": "/home/ana", "A": "# 1"})
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(OSError, match="it is damaged"):
        read_values(str(path))


def test_a_shell_reads_the_values_as_they_are(tmp_path: Path) -> None:
    env = {
        "QUOTES": 'it\'s "$HOME" `id` \\',
        "LINES2": "a\nexport X='y'\n'\n",
        "RAW": "caf\udce9",
        "EMPTY": "",
        "bad-name": "x",
        "BASH_FUNC_f%%": "() { :; }",
        "1ST": "x",
    }
    path = tmp_path / "values.env"
    write_values(str(path), env)
    out = subprocess.run(
        ["env", "-i", "/bin/sh", "-c", '. "$0"; env -0', str(path)], capture_output=True, check=True, timeout=20
    ).stdout
    seen = dict(os.fsdecode(item).split("=", 1) for item in out.split(b"\0") if item)
    seen.pop("PWD", None)
    assert seen == {name: env[name] for name in ("QUOTES", "LINES2", "RAW", "EMPTY")}
    assert read_values(str(path)) == seen


def test_the_file_is_its_owners_alone_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "values.env"
    before = os.umask(0)
    try:
        write_values(str(path), {"A": "1"})
        write_values(str(path), {"B": "2"})
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(b"export B='2'\n# ")
    assert [p.name for p in tmp_path.iterdir()] == ["values.env"]


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"can't write the environment values to .*No such file"):
        write_values(str(tmp_path / "no" / "values.env"), {"A": "1"})


def test_what_can_not_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "values.env").mkdir()
    with pytest.raises(FleetError, match="can't write"):
        write_values(str(tmp_path / "values.env"), {"A": "1"})
    assert [p.name for p in tmp_path.iterdir()] == ["values.env"]


def test_values_are_sorted_so_that_the_same_environment_is_the_same_file() -> None:
    assert values_file({"B": "2", "A": "1"}) == values_file({"A": "1", "B": "2"}) == b"export A='1'\nexport B='2'\n"


def test_secrets_are_env_file_values_and_those_with_a_telling_name() -> None:
    env = {"API_KEY": "key-value-1", "github_token": "token-value", "PASS": "short", "EDITOR": "not-a-secret"}
    assert secret_values(env, {"ANYTHING": "from-the-file", "SMALL": "tiny"}) == (
        "from-the-file",
        "key-value-1",
        "token-value",
    )


def test_a_longer_secret_is_masked_before_one_inside_it() -> None:
    secrets = secret_values({"A_KEY": "abcdefgh", "B_KEY": "abcdefgh-and-more"}, {})
    assert mask("x abcdefgh-and-more y abcdefgh z", secrets) == f"x {MASK} y {MASK} z"


def test_a_secret_is_masked_in_json_too() -> None:
    secrets = secret_values({"A_KEY": 'quo"ted\\ü'}, {})
    assert mask('{"a": "quo\\"ted\\\\\\u00fc", "b": "quo\\"ted\\\\ü"}', secrets) == f'{{"a": "{MASK}", "b": "{MASK}"}}'


def test_each_line_of_a_long_secret_is_masked() -> None:
    secrets = secret_values({}, {"PRIVATE": "first line\nsecond line\nx"})
    assert mask("on screen: second line", secrets) == f"on screen: {MASK}"
