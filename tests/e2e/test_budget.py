"""A budget that is used up pauses its agent and calls a person, who lets it go on."""

from __future__ import annotations

import pytest

from tests.support.fleet import Fleet

pytestmark = [pytest.mark.long, pytest.mark.clients("sim")]


def test_an_agent_over_its_budget_is_paused_until_a_person_lets_it_go_on(fleet: Fleet) -> None:
    fleet.write_team(
        [fleet.client.agent("ana", budget={"tokens": 100, "then": "pause"}), fleet.client.agent("bo")],
        budget={"tokens": 100_000_000},
    )
    fleet.up()
    fleet.all_idle()
    assert fleet.run("send", "ana", "hello").code == 0
    seen = fleet.wait(lambda ps: "paused" in fleet.agent("ana", ps)["detail"])
    assert "paused" not in fleet.agent("bo", seen)["detail"]
    (item,) = fleet.run("queue", "--json").json()["items"]
    assert (item["handle"], item["kind"]) == ("ana", "budget")
    assert "tokens of 100 are used" in item["title"]
    assert fleet.run("send", "ana", "more").code == 0
    fleet.wait(lambda ps: fleet.agent("ana", ps)["queued"] == 1)

    fleet.kill_supervisor()
    fleet.wait(lambda ps: ps["supervisor"]["state"] == "running")
    assert [i["id"] for i in fleet.run("queue", "--json").json()["items"]] == [item["id"]]
    assert fleet.run("answer", item["id"], "go-on").code == 0
    fleet.wait(lambda ps: fleet.agent("ana", ps)["queued"] == 0 and "paused" not in fleet.agent("ana", ps)["detail"])
    assert "nothing waits for you" in fleet.run("queue").out
