"""One message to an agent in each state, by mail and by keys: it arrives once, and disturbs nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.e2e.delivery import situations
from tests.e2e.delivery.crew import Crew, token

pytest_plugins = ("tests.e2e.delivery.fixtures",)

KEYS = {"delivery": "keys"}
CLAUDELESS = {
    "responses": [
        {"pattern": {"type": "contains", "text": "[[slow"}, "response": {"text": "said", "delay_ms": 4000}},
        {
            "pattern": {"type": "contains", "text": "[[tool Write"},
            "response": {"text": "", "tool_calls": [{"tool": "Bash", "input": {"command": "touch touched"}}]},
        },
        {"pattern": {"type": "any"}, "response": "ok"},
    ],
    "tool_execution": {"mode": "live"},
}
State = Callable[[Crew, str], AbstractContextManager[None]]


def declare(crew: Crew) -> None:
    """By mail: ana, pam (who plans); by keys: kim, pia (who plans), sid (who puts drafts aside)."""
    make = crew.client.agent
    agents = [make("kim", sidecar=KEYS, scenario=CLAUDELESS)]
    if crew.client.name != "claudeless":
        slow = {"scenario": {"timeouts": {"compact_delay_ms": 4000}}} if crew.client.name == "sim" else {}
        allowed = {"permissions": {"allow": ["Bash"]}, **slow}
        agents = [
            make("ana", **allowed),
            make("kim", sidecar=KEYS, **allowed),
            make("sid", sidecar={**KEYS, "draft": "stash"}, **allowed),
            make("pam", permission_mode="plan", **allowed),
            make("pia", permission_mode="plan", sidecar=KEYS, **allowed),
        ]
    crew.write(agents)


def arrives_once(crew: Crew, handle: str, text: str, message_id: str) -> str:
    """Wait for the message, and for what else may come; the rung it took."""
    rung = crew.arrives(message_id).rung
    crew.becomes(handle, "idle")
    assert crew.body(message_id).strip().startswith(text)
    assert crew.count(message_id) == 1
    assert crew.count(text) == 1
    return rung


def test_an_idle_agent_gets_a_message_by_keys(crew: Crew) -> None:
    text = token()
    assert arrives_once(crew, "kim", text, crew.send("kim", text)) == "keys"


@pytest.mark.clients("sim", "claude")
def test_an_idle_agent_gets_a_message_by_mail(crew: Crew) -> None:
    text = token()
    assert arrives_once(crew, "ana", text, crew.send("ana", text)) == "mail"


@pytest.mark.clients("claudeless")
@pytest.mark.parametrize("state", [situations.streaming, situations.permission], ids=lambda s: s.__name__)
def test_keys_wait_for_a_turn_and_a_dialog_of_claudeless(crew: Crew, state: State) -> None:
    text = token()
    with state(crew, "kim"):
        message_id = crew.drop("kim", text)
        dwell(crew, "kim", message_id)
    assert arrives_once(crew, "kim", text, message_id) == "keys"


@pytest.mark.clients("claudeless")
def test_keys_wait_for_a_draft_in_claudeless(crew: Crew) -> None:
    text = token()
    with situations.draft(crew, "kim"):
        message_id = crew.drop("kim", text)
        dwell(crew, "kim", message_id)
        crew.becomes("kim", "unknown")
        assert crew.count(message_id) == 0
    arrives_once(crew, "kim", text, message_id)


WORKING = (situations.streaming, situations.tool, situations.compacting)
ASKING = (situations.permission, situations.question)


@pytest.mark.clients("sim", "claude")
@pytest.mark.parametrize("handle", ["ana", "kim"])
@pytest.mark.parametrize("state", WORKING, ids=lambda s: s.__name__)
def test_a_working_agent_gets_a_message_once(crew: Crew, handle: str, state: State) -> None:
    text = token()
    with state(crew, handle):
        message_id = crew.drop(handle, text)
    assert arrives_once(crew, handle, text, message_id) == ("mail" if handle == "ana" else "keys")


@pytest.mark.clients("sim", "claude")
def test_mail_reaches_a_running_turn_at_its_next_tool(crew: Crew) -> None:
    text = token()
    with situations.tool(crew, "ana"):
        message_id = crew.drop("ana", text)
        crew.until(lambda: not crew.in_mail("ana"), "the client has taken its mail")
    arrives_once(crew, "ana", text, message_id)


@pytest.mark.clients("sim", "claude")
@pytest.mark.parametrize("handle", ["ana", "kim"])
@pytest.mark.parametrize("state", ASKING, ids=lambda s: s.__name__)
def test_a_message_answers_no_dialog_and_arrives_after_it(crew: Crew, handle: str, state: State) -> None:
    text = token()
    with state(crew, handle):
        message_id = crew.drop(handle, text)
        dwell(crew, handle, message_id)
        assert crew.count(message_id) == 0
    arrives_once(crew, handle, text, message_id)


@pytest.mark.clients("sim", "claude")
@pytest.mark.parametrize("handle", ["pam", "pia"])
def test_a_message_answers_no_plan_and_arrives_after_it(crew: Crew, handle: str) -> None:
    text = token()
    with situations.plan(crew, handle):
        message_id = crew.drop(handle, text)
        dwell(crew, handle, message_id)
        assert crew.count(message_id) == 0
    arrives_once(crew, handle, text, message_id)


@pytest.mark.clients("sim", "claude")
def test_mail_passes_a_draft_by(crew: Crew) -> None:
    text = token()
    with situations.draft(crew, "ana"):
        message_id = crew.drop("ana", text)
        crew.arrives(message_id)
    arrives_once(crew, "ana", text, message_id)


@pytest.mark.clients("sim", "claude")
def test_keys_wait_for_a_draft(crew: Crew) -> None:
    text = token()
    with situations.draft(crew, "kim"):
        message_id = crew.drop("kim", text)
        crew.becomes("kim", "blocked: draft")
        assert crew.count(message_id) == 0
    arrives_once(crew, "kim", text, message_id)


@pytest.mark.clients("sim", "claude")
def test_keys_put_a_draft_aside_where_the_team_file_says_so(crew: Crew) -> None:
    text = token()
    with situations.draft(crew, "sid"):
        message_id = crew.drop("sid", text)
        crew.arrives(message_id)
        crew.until(lambda: crew.draft("sid"), "the draft is back")
    arrives_once(crew, "sid", text, message_id)


def dwell(crew: Crew, handle: str, message_id: str) -> None:
    """Until the sidecar knows of the message: what it does about it now, it has decided."""
    crew.until(lambda: crew.record(handle).queued == 1, f"{message_id} is known")
