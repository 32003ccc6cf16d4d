"""A client that nobody wrote a driver for: its team file describes it, and it gets its prompt and messages by keys."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPORT
from tests.support import line_client, private
from tests.support.clients import Client
from tests.support.fleet import Fleet

pytestmark = pytest.mark.clients("sim")
"""It brings a client of its own, so it runs once, where the simulator does."""
WITHIN = 60.0
LOOKS: dict[str, Any] = {
    "ready": "^> ",
    "blocked": {"permission": r"\[y/N\]"},
    "otherwise": "busy",
    "yes_keys": ["y", "Enter"],
    "no_keys": ["n", "Enter"],
    "submit_gap": "50ms",
}


@pytest.fixture
def fleet(request: pytest.FixtureRequest, client_name: str, tmp_path: Path, short_path: Path) -> Iterator[Fleet]:
    """A team of the generic driver; nothing of it may be left."""
    del client_name
    client = Client("generic", tmp_path, tmp_path)
    made = Fleet(tmp_path, client, private.surrounding(tmp_path, short_path), root=tmp_path / "project")
    try:
        yield made
        if any(report.failed for report in request.node.stash.get(REPORT, {}).values()):
            print(made.artefacts())
            return
        assert made.down().code == 0
        left = made.leftovers()
        assert not left, "left behind:\n" + "\n".join(left)
    finally:
        made.end()


def declare(fleet: Fleet, **fields: Any) -> Path:
    """One agent, ana; the file of all that she was told."""
    log = fleet.root / "told.jsonl"
    command = [sys.executable, str(Path(line_client.__file__)), str(log)]
    fleet.write_team([{"handle": "ana", "command": command, "client": LOOKS, **fields}])
    return log


def told(log: Path) -> list[str]:
    """What the client was told, in order."""
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


def becomes(fleet: Fleet, state: str) -> Any:
    """Wait until ana is in this state; her row of `ps`."""
    return fleet.agent("ana", fleet.wait(lambda ps: fleet.states(ps).get("ana") == state, within=WITHIN))


def delivered(fleet: Fleet, message_id: str) -> None:
    """Wait until a message has ended well."""
    path = fleet.run_dir / "agents" / "ana" / "archive" / f"{message_id}.json"
    fleet.until(path.exists, within=WITHIN, what=f"{message_id} is delivered")
    record = json.loads(path.read_text())
    assert (record["outcome"], record["rung"]) == ("delivered", "keys")


def send(fleet: Fleet, text: str) -> str:
    """Send ana a message; its id."""
    result = fleet.run("send", "ana", text, "--json")
    assert result.code == 0, str(result)
    return str(result.json()["messages"][0]["id"])


def test_a_described_client_gets_its_prompt_and_messages_once_and_comes_back(fleet: Fleet) -> None:
    log = declare(fleet, prompt_text="Begin with the readme.", dialogs={"permission": "approve"})
    up = fleet.up(within=WITHIN)
    assert up.code == 0, str(up)
    fleet.until(lambda: len(told(log)) == 1, within=WITHIN, what="the prompt is typed")
    assert told(log)[0].endswith("prompt from person: / Begin with the readme.")
    working = send(fleet, "long: " + "word " * 90 + "[[work]]")
    becomes(fleet, "busy")
    asking = send(fleet, "then [[ask]] ¿qué? @bo")
    delivered(fleet, working)
    assert len(told(log)) == 2
    log.with_suffix(".go").touch()
    delivered(fleet, asking)
    fleet.until(lambda: told(log)[-1] == "answer: y", within=WITHIN, what="the question is answered by policy")
    assert told(log)[1].endswith("word " * 90 + "[[work]]")
    assert told(log)[2].rstrip().endswith("then [[ask]] ¿qué? @bo")
    becomes(fleet, "idle")
    fleet.kill("ana", signal.SIGKILL)
    fleet.wait(lambda ps: fleet.agent("ana", ps)["restarts"] == 1, within=WITHIN)
    fleet.until(lambda: len(told(log)) == 5, within=WITHIN, what="a new client is given the prompt again")
    assert told(log)[4].endswith("Begin with the readme.")


@pytest.mark.long
def test_a_question_blocks_until_a_person_answers_and_what_comes_meanwhile_waits(fleet: Fleet) -> None:
    log = declare(fleet)
    assert fleet.up(within=WITHIN).code == 0
    delivered(fleet, send(fleet, "please [[ask]]"))
    assert becomes(fleet, "blocked")["blocked"] == "permission"
    held = send(fleet, "only after that")
    (item,) = fleet.run("queue", "--json").json()["items"]
    denied = fleet.run("deny", item["id"], within=WITHIN)
    assert denied.code == 0, str(denied)
    delivered(fleet, held)
    assert [text.split(": / ")[-1] for text in told(log)] == ["please [[ask]]", "answer: n", "only after that"]
