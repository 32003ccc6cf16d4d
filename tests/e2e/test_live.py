"""doctor --live: one agent of its own is tried, and nothing of it stays."""

from __future__ import annotations

import json

import pytest

from tests.support.fleet import Fleet


@pytest.mark.clients("sim", "claude")
def test_a_model_that_answers_something_else_is_told_with_the_way_out(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    said = fleet.run("doctor", "--live", "--driver", fleet.client.name, "--json")
    assert said.code == 1, str(said)
    found = json.loads(said.out)
    assert (found["delivered"], found["rung"], found["heeded"]) == (True, "mail", False)
    assert "delivery: keys" in found["fix"]


@pytest.mark.clients("claude")
def test_a_model_that_does_as_the_mail_says_is_told(fleet: Fleet) -> None:
    assert fleet.client.api is not None
    fleet.client.api.control.obliging = True
    fleet.write_team([fleet.client.agent("ana")])
    said = fleet.run("doctor", "--live")
    assert said.code == 0, str(said)
    assert "the model heeds fleet mail" in said.out
