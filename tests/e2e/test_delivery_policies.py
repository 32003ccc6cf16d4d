"""Dialogs are answered as the team file says and by nothing else; a stop without a signal is held back once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.delivery import situations
from tests.e2e.delivery.crew import Crew

pytest_plugins = ("tests.e2e.delivery.fixtures",)
pytestmark = pytest.mark.clients("sim", "claude")

DIALOG = """\
 Claude has written up a plan and is ready to execute. Would you like to
 proceed?

 ❯ 1. Yes, and bypass permissions
   2. Yes, manually approve edits
   3. Tell Claude what to change
      shift+tab to approve with this feedback

 ctrl+g to edit in  Vim  · ~/.claude/plans/x.md
"""
HELD = "nobody knows whether you are done"


def declare(crew: Crew) -> None:
    """Bypassing with plans approved; planning and asking with none; permissions approved, and denied; signalling."""
    make = crew.client.agent
    allowed = {"permissions": {"allow": ["Bash"]}}
    everything = {"plan": "approve", "permission": "approve"}
    crew.write(
        [
            make("byp", permission_mode="bypassPermissions", dialogs={"plan": "approve"}),
            make("pam", permission_mode="plan"),
            make("yes", dialogs=everything, **allowed),
            make("no", dialogs={"permission": "deny"}),
            make("sig", stop="signal", **allowed),
        ]
    )


def write(crew: Crew, handle: str) -> Path:
    """Let the agent write a file outside what it may; returns the path."""
    path = situations.fresh(crew, "written")
    crew.type(handle, f"[[tool Write {json.dumps({'file_path': str(path), 'content': 'x'})}]]")
    return path


def presses(crew: Crew, handle: str) -> int:
    """How often the sidecar pressed keys at this agent's dialogs."""
    return sum(a["type"] == "Press" for r in crew.fleet.told(handle, "decided") for a in r["actions"])


def held(crew: Crew, handle: str) -> int:
    """How often a stop of this agent was held back."""
    texts = crew.client.prompts(str(crew.record(handle).session_id))
    return sum(HELD in text for text in texts)


def test_an_approved_plan_in_a_bypassing_agent_goes_on_bypassing(crew: Crew) -> None:
    path = situations.fresh(crew, "made")
    crew.type(
        "byp", f"[[tool EnterPlanMode {{}}]] [[plan # The plan]] [[tool ExitPlanMode {{}}]] [[bash touch {path.name}]]"
    )
    crew.until(path.exists, "the agent goes on without a question")
    crew.becomes("byp", "idle")
    assert crew.shows("byp", "bypass permissions on")


def test_a_plan_that_should_be_asked_is_shown_and_left_alone(crew: Crew) -> None:
    with situations.plan(crew, "pam"):
        row = crew.fleet.agent("pam")
        assert (row["state"], row["blocked"]) == ("blocked", "plan")
        assert presses(crew, "pam") == 0


def test_a_permission_that_should_be_asked_is_shown_and_left_alone(crew: Crew) -> None:
    with situations.permission(crew, "sig"):
        row = crew.fleet.agent("sig")
        assert (row["state"], row["blocked"]) == ("blocked", "permission")
        assert presses(crew, "sig") == 0


def test_an_approved_permission_opens_no_dialog(crew: Crew) -> None:
    path = write(crew, "yes")
    crew.until(path.exists, "it is written")
    crew.becomes("yes", "idle")
    assert presses(crew, "yes") == 0


def test_a_denied_permission_is_told_to_the_model(crew: Crew) -> None:
    path = write(crew, "no")
    crew.until(lambda: crew.shows("no", "Denied by PermissionRequest hook"), "the denial shows")
    crew.becomes("no", "idle")
    assert not path.exists()
    assert presses(crew, "no") == 0


def test_a_pane_that_only_displays_a_dialog_gets_no_key(crew: Crew) -> None:
    shown = crew.fleet.root / "captured.txt"
    shown.write_text(DIALOG, encoding="utf-8")
    before = presses(crew, "yes")
    gate = situations.fresh(crew, "gate")
    crew.type("yes", f"[[bash cat {shown.name}; until [ -e {gate.name} ]; do sleep 0.1; done]]")
    crew.becomes("yes", "busy")
    crew.until(lambda: crew.shows("yes", gate.name), "the tool runs")
    gate.touch()
    crew.becomes("yes", "idle")
    # The whole of it, as the model's own last words.
    crew.type("yes", "[[say " + " ".join(DIALOG.split("\n")[3:6]) + "]]")
    crew.until(lambda: crew.shows("yes", "● 1. Yes") or crew.shows("yes", "❯ 1. Yes"), "the reply shows")
    crew.becomes("yes", "idle")
    message_id = crew.send("yes", "still there?")
    crew.arrives(message_id)
    assert presses(crew, "yes") == before
    assert crew.draft("yes") is None


def test_a_stop_without_a_signal_is_held_back_once(crew: Crew) -> None:
    before = held(crew, "sig")
    crew.type("sig", "[[say all done]]")
    crew.until(lambda: held(crew, "sig") == before + 1, "the stop is held back")
    crew.becomes("sig", "idle")
    assert held(crew, "sig") == before + 1


def test_a_stop_after_a_signal_is_let_go(crew: Crew) -> None:
    before = held(crew, "sig")
    crew.type("sig", "[[bash nbs-fleet signal complete tested]] [[say all done]]")
    crew.until(lambda: crew.record("sig").signal == "complete", "the signal is known")
    crew.becomes("sig", "idle")
    assert held(crew, "sig") == before
