"""A real dialog is shown at once with what it asks; what only looks like one, in a tool's output or a reply, gets no key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.delivery import situations
from tests.e2e.delivery.crew import Crew, token
from tests.support.fleet import Json

pytest_plugins = ("tests.e2e.delivery.fixtures",)

SCREENS = Path(__file__).parent.parent / "drivers" / "screens"
SHOWN = ("permission_bash_120", "plan_dialog_byp", "askuser_80", "bypass_dialog_80x24", "api_key_dialog")
PROMPTLY = 2.0
"""Seconds from the client's own word to the state that `ps` shows, on a loaded machine too."""
EVERYTHING = {
    "plan": "approve",
    "permission": "approve",
    "bypass": "accept",
    "trust": "accept",
    "apikey": "accept",
    "mcp": "accept",
    "settings": "accept",
    "resume": "accept",
}


def declare(crew: Crew) -> None:
    """Pat bypasses permissions and has a policy for every dialog; amy asks."""
    make = crew.client.agent
    said = {"responses": [{"pattern": {"type": "any"}, "response": screen("permission_bash_120")}]}
    if crew.client.name == "claudeless":
        crew.write([make("pat", dialogs=EVERYTHING, scenario=said)])
    else:
        crew.write([make("pat", dialogs=EVERYTHING, permission_mode="bypassPermissions"), make("amy")])


def screen(name: str) -> str:
    """The text of a captured screen, without the directives that led to it."""
    text = (SCREENS / "claude" / f"{name}.txt").read_text(encoding="utf-8").strip("\n")
    return text.replace("[[", "<<").replace("]]", ">>")


def pressed(crew: Crew, handle: str) -> list[Json]:
    """Keys that were decided on for a dialog."""
    decided = crew.fleet.told(handle, "decided")
    return [action for record in decided for action in record["actions"] if action["type"] == "Press"]


def blocked(crew: Crew, handle: str) -> list[Json]:
    """The times at which a dialog was told of, drafts aside."""
    return [r for r in crew.fleet.told(handle, "state") if r["blocked"]]


@pytest.mark.clients("sim", "claude")
@pytest.mark.parametrize("name", SHOWN)
def test_a_dialog_that_a_tool_or_a_reply_shows_gets_no_key(crew: Crew, name: str) -> None:
    keys, dialogs = len(pressed(crew, "pat")), len(blocked(crew, "pat"))
    shown, gate, end = situations.fresh(crew, "shown"), situations.fresh(crew, "gate"), token()
    shown.write_text(screen(name) + "\n", encoding="utf-8")
    crew.type("pat", f"[[bash tail -5 {shown.name}; until [ -e {gate.name} ]; do sleep 0.1; done]] [[say {end}]]")
    crew.becomes("pat", "busy")
    crew.until(lambda: crew.shows("pat", gate.name), "the tool runs")
    gate.touch()
    crew.until(lambda: crew.shows("pat", f"● {end}"), "the tool has ended")
    crew.arrives(crew.drop("pat", f"[[say {screen(name)}\n\n{end}-said]]"))
    crew.until(lambda: crew.shows("pat", f"{end}-said"), "the reply")
    crew.becomes("pat", "idle")
    crew.arrives(crew.drop("pat", "and now?"))
    assert crew.draft("pat") is None
    assert len(pressed(crew, "pat")) == keys
    assert len(blocked(crew, "pat")) == dialogs


@pytest.mark.clients("claudeless")
def test_a_dialog_that_a_reply_of_claudeless_shows_gets_no_key(crew: Crew) -> None:
    crew.arrives(crew.drop("pat", f"show me a dialog {token()}"))
    crew.until(lambda: crew.shows("pat", "Do you want to proceed?"), "the reply")
    crew.becomes("pat", "idle")
    crew.arrives(crew.drop("pat", f"and again {token()}"))
    crew.becomes("pat", "idle")
    assert crew.draft("pat") is None
    assert pressed(crew, "pat") == []


@pytest.mark.clients("sim", "claude")
def test_a_permission_is_shown_at_once_with_the_command(crew: Crew) -> None:
    path = situations.fresh(crew, "touched")
    crew.type("amy", f"[[bash touch {path.name}]]")
    crew.becomes("amy", "blocked: permission")
    decided = [r for r in crew.fleet.told("amy", "decided") if r["event"]["type"] == "HookSeen"]
    asked = [r["event"]["at"] for r in decided if r["event"]["news"]["event"] == "PermissionRequest"]
    assert blocked(crew, "amy")[-1]["at"] - asked[-1] < PROMPTLY
    for command in ("ps", "why amy"):
        assert f"touch {path.name}" in crew.fleet.run(*command.split()).out, command
    assert not path.exists()
    crew.press("amy", "1")
    crew.until(path.exists, "the command after a person's answer")
