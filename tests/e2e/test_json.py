"""What programs read: `ps --json` and the story keep the documented form."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.fleet import Fleet

pytestmark = pytest.mark.clients("sim")

TEAM_KEYS = {"schema", "team", "root", "supervisor", "file_changed", "agents"}
AGENT_KEYS = [
    "handle",
    "role",
    "driver",
    "state",
    "since",
    "blocked",
    "ready",
    "until",
    "rung",
    "age",
    "pid",
    "pane",
    "window",
    "session_id",
    "restarts",
    "last_exit",
    "sidecar",
    "unread",
    "events",
    "queued",
    "signal",
    "attention",
]
# What came later: readers of schema 1 may meet it, and need not know it.
ADDED = {"tmux", "alarm", "detail", "pending", "tokens", "context", "model"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")


def test_ps_has_exactly_the_documented_keys(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    fleet.up()
    ps = fleet.all_idle()
    assert set(ps) - ADDED == TEAM_KEYS
    assert set(ps["supervisor"]) - ADDED == {"state", "pid", "since"}
    assert [key for key in ps["agents"][0] if key not in ADDED] == AGENT_KEYS


def test_ps_tells_what_is_so(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana", role="scribe", prompt_text="hello")], roles={"scribe": {}})
    fleet.up()
    fleet.wait(lambda ps: fleet.agent("ana", ps)["tokens"] > 0)
    ps = fleet.all_idle()
    row = fleet.agent("ana", ps)
    assert (ps["schema"], ps["team"], ps["root"], ps["file_changed"]) == (1, "crew", str(fleet.root.resolve()), False)
    assert ps["supervisor"]["state"] == "running"
    assert (row["role"], row["driver"], row["state"], row["ready"]) == ("scribe", "sim", "idle", True)
    assert (row["tokens"], row["context"]) == (120, 120)
    assert (row["restarts"], row["last_exit"], row["blocked"], row["until"]) == (0, None, None, None)
    assert row["pane"].startswith("%")
    assert TIME.fullmatch(row["since"])
    assert TIME.fullmatch(ps["supervisor"]["since"])
    assert row["age"] >= 0


def test_every_story_line_says_when_and_what(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana", prompt_text="hello")])
    fleet.up()
    fleet.all_idle()
    fleet.down()
    story = fleet.story("ana")
    assert all(isinstance(line["at"], float) and isinstance(line["what"], str) for line in story)
    assert [line["at"] for line in story] == sorted(line["at"] for line in story)
    assert {"started", "ended"} <= {line["what"] for line in story}


def test_logs_as_json_is_one_object_per_line(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    fleet.up()
    out = fleet.run("logs", "ana", "--json").out
    assert [json.loads(line)["what"] for line in out.splitlines()]


def test_ls_lists_the_team_from_anywhere(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    fleet.up()
    answer = json.loads(fleet.run("ls", "--json").out)
    assert [(team["team"], team["root"]) for team in answer["teams"]] == [("crew", str(fleet.root.resolve()))]


def test_nothing_is_coloured_when_piped(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    del fleet.env["NO_COLOR"]
    texts = [fleet.up().out, fleet.run("ps").out, fleet.run("why", "ana").out, fleet.run("logs", "ana").out]
    assert [text for text in texts if "\x1b" in text] == []


def test_attach_without_a_terminal_prints_the_command(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    fleet.up()
    out = fleet.run("attach", "ana").out
    assert re.search(r"\btmux .*-S .*attach-session", out)
