"""Startup dialogs are asked or answered as the team file says, by the lines that are really there."""

from __future__ import annotations

import json

import pytest

from tests.support.fleet import Fleet


def untrusted(fleet: Fleet) -> None:
    """Make the client ask whether it may trust the directory."""
    if fleet.client.name == "claude":
        path = fleet.client.config / ".claude.json"
        path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "projects": {}}), encoding="utf-8")


def unapproved(fleet: Fleet) -> None:
    """Make the real client ask whether it may use the API key of its environment."""
    path = fleet.client.config / ".claude.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**known, "customApiKeyResponses": {}}), encoding="utf-8")


def agent(fleet: Fleet, **fields: object) -> dict[str, object]:
    """An agent whose client asks for trust at its start."""
    if fleet.client.name == "claude":
        return fleet.client.agent("ana", **fields)
    return fleet.client.agent("ana", scenario={"trusted": False}, **fields)


def test_a_trust_dialog_waits_for_a_person(fleet: Fleet) -> None:
    untrusted(fleet)
    fleet.write_team([agent(fleet)])
    up = fleet.up()
    assert up.code == 5, str(up)
    row = fleet.agent("ana")
    assert (row["state"], row["blocked"], row["ready"]) == ("blocked", "trust", False)
    assert "attach ana" in up.out


def test_a_trust_dialog_is_accepted_where_the_file_says_so(fleet: Fleet) -> None:
    untrusted(fleet)
    fleet.write_team([agent(fleet)], dialogs={"trust": "accept"})
    up = fleet.up()
    assert up.code == 0, str(up)
    fleet.all_idle()


@pytest.mark.clients("sim", "claude")
def test_a_person_who_answers_the_dialog_sets_the_agent_free(fleet: Fleet) -> None:
    untrusted(fleet)
    fleet.write_team([agent(fleet, prompt_text="hello")])
    fleet.up()
    fleet.tmux("send-keys", "-t", fleet.agent("ana")["pane"], "1")
    session = fleet.agent("ana", fleet.all_idle())["session_id"]
    # Ready means that the client has taken its prompt; it is written down a moment later.
    fleet.until(lambda: fleet.client.prompts(session) == ["hello"], what="the prompt is in the conversation")


def test_bypass_in_the_file_itself_is_consent_to_the_warning(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana", permission_mode="bypassPermissions")])
    up = fleet.up()
    assert up.code == 0, str(up)
    fleet.all_idle()


@pytest.mark.clients("sim", "claude")
def test_a_bypass_warning_that_should_be_asked_is_not_answered(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana", permission_mode="bypassPermissions")], dialogs={"bypass": "ask"})
    up = fleet.up()
    assert up.code == 5, str(up)
    row = fleet.agent("ana")
    assert (row["state"], row["blocked"]) == ("blocked", "bypass")
    assert row["restarts"] == 0


@pytest.mark.clients("claude")
def test_an_api_key_dialog_waits_for_a_person(fleet: Fleet) -> None:
    unapproved(fleet)
    fleet.write_team([fleet.client.agent("ana")])
    up = fleet.up()
    assert up.code == 5, str(up)
    row = fleet.agent("ana")
    assert (row["state"], row["blocked"]) == ("blocked", "apikey")


@pytest.mark.clients("claude")
def test_an_api_key_dialog_is_accepted_where_the_file_says_so(fleet: Fleet) -> None:
    unapproved(fleet)
    fleet.write_team([fleet.client.agent("ana", prompt_text="hello")], dialogs={"apikey": "accept"})
    up = fleet.up()
    assert up.code == 0, str(up)
    assert fleet.client.prompts(fleet.agent("ana", fleet.all_idle())["session_id"]) == ["hello"]
