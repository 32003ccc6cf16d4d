"""Dialogs are answered as the team file says, or shown at once; what only looks like a dialog gets no key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.delivery import situations
from tests.e2e.delivery.crew import Crew, token
from tests.support.fleet import Json

pytest_plugins = ("tests.e2e.delivery.fixtures",)

SCREENS = Path(__file__).parent.parent / "drivers" / "screens"
SHOWN = ("permission_bash_120", "plan_dialog_byp", "askuser_1", "bypass_dialog_80x24", "api_key_dialog")
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
    """Answered by policy: pat (who bypasses permissions), del (who refuses); asked: ask (bypassing), amy."""
    make = crew.client.agent
    bypass = {"permission_mode": "bypassPermissions"}
    said = {"responses": [{"pattern": {"type": "any"}, "response": screen("permission_bash_120")}]}
    agents = [make("pat", dialogs=EVERYTHING, **bypass, scenario=said)]
    if crew.client.name != "claudeless":
        agents = [
            make("pat", dialogs=EVERYTHING, **bypass),
            make("ann", dialogs={"permission": "approve"}),
            make("dan", dialogs={"permission": "deny", "question": "deny"}),
            make("ask", **bypass),
            make("amy"),
        ]
    crew.write(agents)


def screen(name: str) -> str:
    """The text of a captured screen."""
    (path,) = SCREENS.rglob(f"{name}.txt")
    return path.read_text(encoding="utf-8").strip("\n")


def plans(crew: Crew, handle: str) -> Path:
    """Have an agent in plan mode hand in a plan, and touch a file afterwards; the file."""
    while not crew.shows(handle, "plan mode on"):
        before = crew.rows(handle)
        crew.press(handle, "BTab")
        crew.until(lambda seen=before: crew.rows(handle) != seen, "another mode")  # type: ignore[misc]
    path = situations.fresh(crew, "built")
    crew.type(handle, f"[[plan # Build it]] [[tool ExitPlanMode {{}}]] [[bash touch {path.name}]]")
    return path


def delay(crew: Crew, handle: str, blocked: str) -> float:
    """Seconds from the hook that told of the last dialog to the state that followed from it."""
    state = [r for r in crew.fleet.told(handle, "state") if r["blocked"] == blocked][-1]
    hooks = [r["event"]["at"] for r in crew.fleet.told(handle, "decided") if told(r) == "PermissionRequest"]
    return float(state["at"] - hooks[-1])


def told(record: Json) -> str:
    """The hook event that a record is about."""
    return str(record["event"].get("news", {}).get("event", ""))


def pressed(crew: Crew, handle: str) -> list[Json]:
    """Keys that were decided on for a dialog."""
    decided = crew.fleet.told(handle, "decided")
    return [action for record in decided for action in record["actions"] if action["type"] == "Press"]


@pytest.mark.clients("sim", "claude")
def test_a_plan_that_is_approved_by_policy_goes_on_in_bypass_mode(crew: Crew) -> None:
    path = plans(crew, "pat")
    crew.until(path.exists, "the work after the plan")
    crew.becomes("pat", "idle")
    assert crew.shows("pat", "bypass permissions on")


@pytest.mark.clients("sim", "claude")
def test_a_plan_that_is_asked_for_is_shown_at_once_with_its_text(crew: Crew) -> None:
    path = plans(crew, "ask")
    crew.becomes("ask", "blocked: plan")
    assert delay(crew, "ask", "plan") < PROMPTLY
    row = crew.fleet.agent("ask")
    assert (row["state"], row["blocked"]) == ("blocked", "plan")
    assert "Build it" in crew.fleet.run("why", "ask").out
    assert not path.exists()
    crew.press("ask", "1")
    crew.until(path.exists, "the work after a person's approval")
    assert crew.shows("ask", "bypass permissions on")


@pytest.mark.clients("sim", "claude")
def test_a_permission_that_is_asked_for_is_shown_at_once_with_its_command(crew: Crew) -> None:
    path = situations.fresh(crew, "touched")
    crew.type("amy", f"[[bash touch {path.name}]]")
    crew.becomes("amy", "blocked: permission")
    assert delay(crew, "amy", "permission") < PROMPTLY
    assert f"touch {path.name}" in crew.fleet.run("why", "amy").out
    assert f"touch {path.name}" in crew.fleet.run("ps").out
    assert not path.exists()
    crew.press("amy", "1")
    crew.until(path.exists, "the command after a person's answer")


@pytest.mark.clients("sim", "claude")
def test_permissions_are_given_and_refused_by_policy(crew: Crew) -> None:
    given, refused = situations.fresh(crew, "given"), situations.fresh(crew, "refused")
    crew.type("ann", f"[[bash touch {given.name}]]")
    crew.type("dan", f"[[bash touch {refused.name}]] [[say I looked for another way]]")
    crew.until(given.exists, "the command that was permitted")
    crew.until(lambda: crew.shows("dan", "I looked for another way"), "the turn goes on after the refusal")
    assert not refused.exists()
    crew.becomes("dan", "idle")


@pytest.mark.clients("sim", "claude")
def test_a_question_that_is_refused_by_policy_opens_no_dialog(crew: Crew) -> None:
    crew.type("dan", f"[[tool AskUserQuestion {json.dumps(situations.QUESTION)}]] [[say I decided myself]]")
    crew.until(lambda: crew.shows("dan", "I decided myself"), "the turn goes on")
    assert not [r for r in crew.fleet.told("dan", "state") if r["blocked"] == "question"]


@pytest.mark.clients("sim", "claude")
@pytest.mark.parametrize("name", SHOWN)
def test_a_dialog_that_a_tool_or_a_reply_shows_gets_no_key(crew: Crew, name: str) -> None:
    before = len(pressed(crew, "pat"))
    gate = situations.fresh(crew, "gate")
    (crew.fleet.root / "shown.txt").write_text(screen(name) + "\n", encoding="utf-8")
    end = token()
    crew.type("pat", f"[[bash tail -5 shown.txt; until [ -e {gate.name} ]; do sleep 0.1; done]] [[say {end}]]")
    crew.becomes("pat", "busy")
    crew.until(lambda: gate.name in "".join(crew.rows("pat")), "the tool runs")
    crew.arrives(crew.drop("amy", "time goes by"))
    gate.touch()
    crew.until(lambda: crew.shows("pat", end), "the tool has ended")
    crew.arrives(crew.drop("pat", f"[[say {screen(name)}\n\n{end}]]"))
    crew.becomes("pat", "idle")
    assert crew.draft("pat") is None
    assert len(pressed(crew, "pat")) == before
    assert not [r for r in crew.fleet.told("pat", "state") if r["blocked"]]


@pytest.mark.clients("claudeless")
def test_a_dialog_that_a_reply_of_claudeless_shows_gets_no_key(crew: Crew) -> None:
    before = len(pressed(crew, "pat"))
    crew.arrives(crew.drop("pat", f"show me a dialog {token()}"))
    crew.until(lambda: crew.shows("pat", "Do you want to proceed?"), "the reply")
    crew.becomes("pat", "idle")
    assert crew.draft("pat") in (None, "")
    assert len(pressed(crew, "pat")) == before
