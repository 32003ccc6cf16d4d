"""The start of Codex: everything in flags, nothing in the person's files."""

from __future__ import annotations

import itertools
import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers.base import PROMPT, able
from nbs_fleet.drivers.codex import Codex
from nbs_fleet.drivers.recipes import TEXT, Command
from nbs_fleet.drivers.toml_text import inline, overrides
from nbs_fleet.model import AgentState, ExitKind
from nbs_fleet.spec.team import Dialogs
from tests.drivers.support import SESSION, make_facts, transcript

VALUES = st.recursive(
    st.text(st.characters(codec="utf-8")) | st.booleans() | st.integers(-(2**63), 2**63 - 1),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), below),
    max_leaves=8,
)


def launch(**given: Any) -> tuple[str, ...]:
    return Codex().launch(make_facts(driver="codex", **given)).argv


def given_by_flags(argv: tuple[str, ...]) -> dict[str, Any]:
    """What the `-c` flags say, as Codex reads them: the key split at dots, the value as TOML."""
    result: dict[str, Any] = {}
    for flag, word in itertools.pairwise(argv):
        if flag == "-c":
            key, _, value = word.partition("=")
            place = result
            *above, last = key.split(".")
            for name in above:
                place = place.setdefault(name, {})
            place[last] = tomllib.loads(f"x = {value}")["x"]
    return result


@given(VALUES)
def test_any_value_survives_as_toml(value: Any) -> None:
    assert tomllib.loads(f"x = {inline(value)}")["x"] == value


@given(st.dictionaries(st.from_regex(r"[a-z_-]{1,5}", fullmatch=True), VALUES, max_size=4))
def test_settings_of_the_team_file_arrive_whole(settings: dict[str, Any]) -> None:
    flags = tuple(word for value in overrides(settings) for word in ("-c", value))
    assert given_by_flags(flags) == settings


def test_a_table_whose_keys_need_quotes_is_one_value() -> None:
    assert list(overrides({"projects": {"/a.b": {"trust_level": "trusted"}}, "tui": {"a": {"b": 1}}})) == [
        'projects={"/a.b" = {trust_level = "trusted"}}',
        "tui.a.b=1",
    ]


def test_a_fresh_start_brings_its_hooks_and_no_daemon() -> None:
    argv = launch(model="m", permission_mode="bypassPermissions", has_prompt=True)
    assert argv[:4] == ("codex", "-m", "m", "--dangerously-bypass-approvals-and-sandbox")
    assert "--no-daemon" in argv
    assert argv[-2:] == ("--", PROMPT)
    hooks = given_by_flags(argv)["hooks"]
    assert hooks["Stop"] == [
        {"hooks": [{"type": "command", "command": "'/state/review/bin/nbs-hook' Stop", "timeout": 10}]}
    ]
    assert hooks["SessionEnd"][0]["hooks"][0]["timeout"] == 3


def test_a_later_start_resumes_by_id() -> None:
    assert launch(resume=True)[:3] == ("codex", "resume", SESSION)
    assert SESSION not in launch()


def test_trust_needs_the_team_files_word() -> None:
    assert "--dangerously-bypass-hook-trust" not in launch()
    assert "projects" not in given_by_flags(launch())
    argv = launch(dialogs=Dialogs(trust="accept"))
    assert "--dangerously-bypass-hook-trust" in argv
    assert given_by_flags(argv)["projects"] == {"/srv/project": {"trust_level": "trusted"}}


def test_an_older_release_has_neither_queue_nor_that_flag() -> None:
    facts = make_facts(driver="codex")
    older = type(facts)(**{name: getattr(facts, name) for name in facts.__struct_fields__} | {"version": "0.130.0"})
    assert "--no-daemon" not in Codex().launch(older).argv
    assert Codex().inbox(older, SESSION) is None
    assert not able(Codex(), "0.130.0").native_inbox


def test_the_inbox_is_known_once_the_session_is() -> None:
    facts = make_facts(driver="codex", command=("/opt/codex",))
    assert Codex().inbox(facts, None) is None
    assert Codex().inbox(facts, "s-1") == Command(
        ("/opt/codex", "queue", "--thread", "s-1", "--message", TEXT), keeps="s-1"
    )


@pytest.mark.parametrize(
    ("environ", "folder"),
    [({}, "/home/ana/.codex"), ({"CODEX_HOME": "/c"}, "/c"), ({"CODEX_HOME": "c"}, "/srv/project/c")],
)
def test_session_files_are_looked_for_where_this_codex_keeps_them(environ: dict[str, str], folder: str) -> None:
    places = Codex().places(make_facts(driver="codex", environ=environ))
    assert places.pattern == f"{folder}/sessions/*/*/*/rollout-*-{SESSION}.jsonl"


def test_what_a_client_cannot_do_is_named() -> None:
    facts = make_facts(driver="codex", permission_mode="plan", permissions={"allow": ["x"]}, skills=("a",))
    assert Codex().launch(facts).dropped == ("permission_mode plan", "permissions")


def test_a_rollout_tells_of_turns_and_proves_only_what_was_said_to_the_model() -> None:
    def line(kind: str, **payload: Any) -> str:
        return json.dumps({"timestamp": "t", "type": kind, "payload": payload})

    def said(role: str, text: str) -> str:
        return line("response_item", type="message", role=role, content=[{"type": "input_text", "text": text}])

    lines = [
        line("session_meta", id="s"),
        line("event_msg", type="task_started"),
        said("user", "[nbs:d-1-a] hello"),
        line("event_msg", type="user_message", message="[nbs:d-1-a] hello"),
        said("developer", "[nbs:d-2-a] from a hook"),
        said("assistant", "[nbs:d-3-a] my own words"),
        line("response_item", type="function_call_output", output="[nbs:d-4-a] a file's text"),
        line("event_msg", type="task_complete", last_agent_message="bye"),
    ]
    text = "\n".join(lines) + "\n"
    turns = Codex().read_transcript(text, text)
    assert (turns.prompts, turns.finished, turns.last_text, turns.reading.state) == (1, 1, "bye", AgentState.IDLE)
    assert Codex().read_transcript(text, "\n".join(lines[:-1])).prompts == 1
    assert Codex().proofs(text) == ("d-1-a", "d-2-a")


def test_a_session_file_as_the_client_wrote_it_tells_its_prompt_turn_and_words() -> None:
    text = transcript("others/codex_turns")
    turns = Codex().read_transcript(text, text)
    assert (turns.prompts, turns.finished, turns.last_text, turns.reading.state) == (1, 1, "done", AgentState.IDLE)
    assert Codex().read_transcript("", text).prompts == 1


def test_its_last_words_say_why_it_ended() -> None:
    assert Codex().read_exit(2, None, ("error: unexpected argument '--x' found",)) is ExitKind.REFUSED
    assert Codex().read_exit(1, None, ("Something else",)) is ExitKind.CRASH


def test_commands_run_without_a_machines_profile_unless_the_team_file_wants_it() -> None:
    assert given_by_flags(launch())["allow_login_shell"] is False
    assert given_by_flags(launch(settings={"allow_login_shell": True}))["allow_login_shell"] is True
