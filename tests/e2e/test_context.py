"""An agent whose context is full hands over to a fresh session of its own; one that does not is shown to a person."""

from __future__ import annotations

import json

import pytest

from tests.support.fleet import Fleet

pytestmark = [pytest.mark.long, pytest.mark.clients("sim")]

RULES = {"limit": 10_000, "warn": 50, "handover": 80, "timeout": "2s"}


def test_a_full_context_is_handed_over_and_a_late_handover_is_a_persons(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana", context=RULES)])
    fleet.up()
    first = fleet.agent("ana", fleet.all_idle())["session_id"]

    def heard(text: str, session: str = first) -> None:
        fleet.until(lambda: text in json.dumps(fleet.client.transcript(session)), what=f"it was told: {text}")

    assert fleet.run("send", "ana", "[[usage 6000 half]]").code == 0
    heard("of your context are used")
    assert fleet.run("send", "ana", "[[usage 9000 full]]").code == 0
    heard("about to begin afresh")
    fleet.until(lambda: fleet.run("queue", "--json").json()["items"], what="a person is called")
    (item,) = fleet.run("queue", "--json").json()["items"]
    assert (item["handle"], item["kind"]) == ("ana", "context")

    path = fleet.root / ".nbs" / "handover-ana.md"
    path.write_text("go on with the parser", encoding="utf-8")
    assert fleet.run("send", "ana", "are you done").code == 0
    fleet.wait(lambda ps: fleet.agent("ana", ps)["session_id"] != first and fleet.agent("ana", ps)["ready"], within=60)
    second = fleet.agent("ana", fleet.all_idle())["session_id"]
    heard("handover-ana.md", second)
    assert "nothing waits for you" in fleet.run("queue").out
    assert fleet.agent("ana")["restarts"] == 0
