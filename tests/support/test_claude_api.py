"""The scripted API: which directive is due, what goes over the wire, and that the real client works against it."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.sim.scenario import check
from tests.clients.install import CLAUDE
from tests.support import clients
from tests.support.claude_api import ScriptedApi, scenarios
from tests.support.claude_api.directives import Directive, pick, side_request, strip_reminders
from tests.support.private import surrounding

TOOLS = [{"name": "Bash"}]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def due(*messages: dict[str, Any]) -> tuple[str, str]:
    step = pick({"messages": list(messages), "tools": TOOLS})
    return step.verb, step.arg


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ScriptedApi]:
    with ScriptedApi(tmp_path / "log") as served:
        yield served


def post(api: ScriptedApi, text: str, **more: Any) -> bytes:
    body = {"model": "m", "messages": [user(text)], "tools": TOOLS, **more}
    request = urllib.request.Request(f"{api.url}/v1/messages?beta=true", json.dumps(body).encode())
    request.add_header("x-claude-code-session-id", "s1")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


def test_each_assistant_message_makes_the_next_directive_due() -> None:
    script = user("[[say one]] then [[bash ls -l]]")
    assert due(script) == ("say", "one")
    assert due(script, assistant("one")) == ("bash", "ls -l")


def test_after_the_last_directive_it_says_ok() -> None:
    assert due(user("[[say one]]"), assistant("one"), user("and\nnow")) == ("say", "ok: and now")


def test_the_last_message_with_directives_is_the_script() -> None:
    assert due(user("[[say one]]"), assistant("one"), user("[[say two]]")) == ("say", "two")


def test_a_subagents_prompt_may_use_round_brackets() -> None:
    assert due(user("((say inner)) please")) == ("say", "inner")


def test_reminders_are_dropped_unless_they_carry_directives() -> None:
    kept = "<system-reminder>mail: [[say hello]]</system-reminder>"
    assert strip_reminders(f"<system-reminder>the date</system-reminder>hi {kept}") == f"hi {kept}"


def test_directives_that_arrive_as_mail_are_followed() -> None:
    assert due(user("<system-reminder>mail: [[say hello]]</system-reminder>")) == ("say", "hello")


def test_a_request_without_tools_gets_a_side_answer() -> None:
    assert side_request({"messages": [user("a title please")]}, compact_seconds=0) == Directive(
        "say", '{"title": "A title"}'
    )


def test_a_compaction_request_gets_a_summary() -> None:
    wanted = {"messages": [user("write a detailed summary of the conversation")], "tools": TOOLS}
    answer = side_request(wanted, compact_seconds=0)
    assert answer is not None
    assert "<summary>" in answer.arg


def test_a_reply_is_streamed_as_events(api: ScriptedApi) -> None:
    stream = post(api, "[[say hello there]]", stream=True).decode()
    assert stream.index("message_start") < stream.index("hello ") < stream.index("message_stop")


def test_an_error_step_fails_as_often_as_it_says_and_then_recovers(api: ScriptedApi) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(api, "[[err 529 1]]")
    refused.value.close()
    assert refused.value.code == 529
    assert b"recovered after 1 errors" in post(api, "[[err 529 1]]")


def test_a_forced_directive_holds_for_so_many_turns(api: ScriptedApi) -> None:
    api.force("[[say forced]]", 1)
    assert b"forced" in post(api, "[[say mine]]")
    assert b"mine" in post(api, "[[say mine]]")


def test_every_request_is_kept_whole(api: ScriptedApi) -> None:
    text = "quotes \" ' $HOME \\n emoji \U0001f9d1\u200d\U0001f680 and\ttabs\n"
    post(api, text)
    (request,) = api.turns()
    assert request.user_texts == [text]
    assert request.session == "s1"


def test_numbering_goes_on_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        with ScriptedApi(tmp_path) as served:
            post(served, "hello")
    assert [request.number for request in served.requests()] == [1, 2]


def test_a_silent_reply_ends_when_the_server_closes(tmp_path: Path) -> None:
    served = ScriptedApi(tmp_path).start()
    body = json.dumps({"messages": [user("[[hang 600]]")], "tools": TOOLS, "stream": True}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{served.url}/v1/messages", body), timeout=10) as answer:
        assert b"message_start" in answer.readline()
        served.close()
        assert b"message_stop" not in answer.read()


@pytest.mark.real
@pytest.mark.skipif(not CLAUDE.present, reason="Claude Code is not installed")
def test_the_real_client_takes_its_replies(tmp_path: Path, short_path: Path) -> None:
    with clients.running("claude", tmp_path / "client", trusted=(str(tmp_path),)) as client:
        env = {**surrounding(tmp_path, short_path), **client.environment}
        argv = [str(CLAUDE.executable), "-p", "[[bash echo from-the-tool]] [[say all done]]"]
        argv += ["--permission-mode", "bypassPermissions"]
        done = subprocess.run(
            argv,
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        assert done.stdout.strip() == "all done", done.stderr
        assert client.api is not None
        assert "from-the-tool" in json.dumps(client.api.turns()[-1].body["messages"])


SCENARIO = check(
    {
        "responses": [
            {
                "pattern": {"type": "contains", "text": "Post"},
                "response": {"text": "Posted.", "tool_calls": [{"tool": "Bash", "input": {"command": "post"}}]},
            },
            {"pattern": {"type": "contains", "text": "limit"}, "failure": {"type": "rate_limit", "retry_after": 1}},
        ],
        "default_response": "Ready.",
    },
    "x.toml",
    lambda path: path,
)
MAIL = "<system-reminder>\nMessage from nbs-fleet: [nbs:d-1-2] Post it.\n</system-reminder>"


def test_a_scenario_answers_the_last_prompt_with_its_calls_first() -> None:
    def answer(*messages: dict[str, Any]) -> str:
        return str(scenarios.pick(SCENARIO, {"messages": list(messages)}))

    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "done"}]}
    noise = user("<system-reminder>Post nothing.</system-reminder>")
    assert answer(user("hello"), noise) == "[[say Ready.]]"
    assert answer(user("Post it")) == '[[tools [["Bash", {"command": "post"}]]]]'
    assert answer(user("Post it"), assistant("..."), result) == "[[say Posted.]]"
    assert answer(user("Post it"), assistant("..."), result, assistant("Posted."), user("x")) == "[[say Ready.]]"
    assert answer(user("x"), assistant("..."), {"role": "system", "content": MAIL}).startswith("[[tools ")
    assert answer(user("limit")) == "[[err 429 99]]"
