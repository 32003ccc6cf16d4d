"""The Gemini driver: how a start looks, what its session file says."""

from __future__ import annotations

import json

import pytest

from nbs_fleet.drivers.base import PROMPT
from nbs_fleet.drivers.gemini import Gemini
from nbs_fleet.model import AgentState, ExitKind
from nbs_fleet.spec.team import Dialogs
from tests.drivers.support import SESSION, make_facts

LINES = (
    {"sessionId": SESSION, "startTime": "2026-11-28T14:58:42.912Z", "kind": "main"},
    {"$set": {"messages": [{"id": "d0", "type": "user", "content": [{"text": "<session_context>[nbs:d-9]"}]}]}},
    {"id": "6b", "timestamp": "2026-11-28T14:58:43.321Z", "type": "user", "content": [{"text": "[nbs:d-1] hello"}]},
    {"$set": {"lastUpdated": "2026-11-28T14:58:43.322Z"}},
    {"id": "d5", "type": "gemini", "content": "hello [nbs:d-8] there", "thoughts": [], "model": "gemini-2.5-pro"},
)
"""The shape of a session file, as measured."""
TEXT = "".join(json.dumps(line) + "\n" for line in LINES)


def test_a_fresh_start_chooses_the_session() -> None:
    launch = Gemini().launch(make_facts(driver="gemini", has_prompt=True, model="m", permission_mode="plan"))
    assert launch.argv == ("gemini", "--session-id", SESSION, "-m", "m", "--approval-mode", "plan", "-i", PROMPT)
    assert launch.env == {"GEMINI_CLI_NO_RELAUNCH": "true"}
    assert launch.files == {}


def test_a_resumed_start_names_the_session_alone() -> None:
    assert Gemini().launch(make_facts(driver="gemini", resume=True)).argv == ("gemini", "--resume", SESSION)


def test_a_folder_is_trusted_for_this_start_where_the_file_says_so() -> None:
    launch = Gemini().launch(make_facts(driver="gemini", dialogs=Dialogs(trust="accept")))
    assert launch.env["GEMINI_CLI_TRUST_WORKSPACE"] == "true"


def test_a_session_file_is_found_by_the_first_part_of_its_id() -> None:
    here = Gemini().places(make_facts(driver="gemini"))
    assert here.pattern == "/home/ana/.gemini/tmp/*/chats/session-*-11111111.jsonl"
    there = Gemini().places(make_facts(driver="gemini", environ={"GEMINI_CLI_HOME": "/srv/g"}))
    assert there.pattern == "/srv/g/.gemini/tmp/*/chats/session-*-11111111.jsonl"


def test_a_session_file_tells_prompts_turns_and_last_words() -> None:
    turns = Gemini().read_transcript(TEXT, TEXT)
    assert (turns.prompts, turns.finished, turns.last_text) == (1, 1, "hello [nbs:d-8] there")
    assert turns.reading.state is AgentState.IDLE


def test_only_a_prompt_proves_a_message() -> None:
    assert Gemini().proofs(TEXT) == ("d-1",)


@pytest.mark.parametrize(
    ("code", "line", "kind"),
    [
        (42, 'Error resuming session: Invalid session identifier "9".', ExitKind.NO_CONVERSATION),
        (1, "Unknown argument: bogus", ExitKind.REFUSED),
        (1, "something else", ExitKind.CRASH),
    ],
)
def test_an_end_is_told_by_status_and_words(code: int, line: str, kind: ExitKind) -> None:
    assert Gemini().read_exit(code, None, (line,)) is kind
