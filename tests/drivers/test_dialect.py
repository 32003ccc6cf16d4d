"""A dialect as data: what is rendered for a client, and how its payloads become ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nbs_fleet.drivers.base import Facts, able
from nbs_fleet.drivers.codex import DIALECT as CODEX
from nbs_fleet.drivers.dialect import BLOCK, Dialect, HookEvent, policy_file
from nbs_fleet.drivers.plain import Plain
from nbs_fleet.drivers.recipes import TEXT, filled
from nbs_fleet.hooks import program
from nbs_fleet.model import AgentState
from nbs_fleet.spec.team import Dialogs
from tests.drivers.support import make_facts
from tests.support.hooked import Hooked

FLAT = Dialect(
    name="flat",
    events=(
        HookEvent("PreToolUse", "BeforeTool"),
        HookEvent("PermissionRequest", "permissionRequest"),
        HookEvent("SessionEnd", "SessionEnd", seconds=3, matcher="x"),
    ),
    context={"PreToolUse": {"additionalContext": TEXT, "of": "$EVENT"}},
    allow={"behavior": "allow"},
    deny={"behavior": "deny", "why": TEXT},
    fields={"toolName": "tool_name", "hookName": "hook_event_name", "sessionId": "session_id"},
    unit="ms",
)


class Flat(Plain):
    name, program, dialect = "flat", "flat", FLAT


def hooked(folder: Any, facts: Facts, dialect: Dialect) -> Hooked:
    ana = Hooked(folder / "run")
    (text,) = policy_file(facts.agent, str(ana.agent), dialect).values()
    (ana.agent / "hooks.json").write_text(text)
    return ana


def test_hooks_are_rendered_with_the_clients_names_and_units() -> None:
    groups = FLAT.groups("/r")
    assert groups["BeforeTool"] == [
        {"hooks": [{"type": "command", "command": "'/r/bin/nbs-hook' PreToolUse", "timeout": 10_000}]}
    ]
    assert groups["SessionEnd"][0]["matcher"] == "x"
    assert groups["SessionEnd"][0]["hooks"][0]["timeout"] == 3_000


def test_a_hook_answers_in_the_clients_own_shape(tmp_path: Any) -> None:
    ana = hooked(tmp_path, make_facts(dialogs=Dialogs(permission="deny")), FLAT)
    ana.put("inbox", "[nbs:d-1] hello")
    done = ana.call("PreToolUse", payload={"toolName": "bash"})
    assert json.loads(done.stdout) == {"additionalContext": "[nbs:d-1] hello", "of": "BeforeTool"}
    done = ana.call("PermissionRequest", payload={"hookName": "permissionRequest", "toolName": "bash"})
    said = json.loads(done.stdout)
    assert (said["behavior"], set(said)) == ("deny", {"behavior", "why"})
    assert "decline" in said["why"]


def test_a_new_session_is_told_what_the_fleet_is_and_one_that_goes_on_is_not(tmp_path: Any) -> None:
    ana = Hooked(tmp_path / "run")
    facts = make_facts()
    (text,) = policy_file(facts.agent, str(ana.agent), CODEX, "the briefing").values()
    (ana.agent / "hooks.json").write_text(text)
    ana.put("inbox", "not this")
    done = ana.call("SessionStart", payload={"hook_event_name": "SessionStart", "source": "startup"})
    said = {"hookEventName": "SessionStart", "additionalContext": "the briefing"}
    assert json.loads(done.stdout) == {"hookSpecificOutput": said}
    assert ana.call("SessionStart", payload={"source": "resume"}).stdout == b""
    assert len(ana.spooled()) == 2
    (without,) = policy_file(facts.agent, str(ana.agent), FLAT, "the briefing").values()
    assert "the briefing" not in without


def test_a_client_that_cannot_hold_a_stop_is_never_told_to(tmp_path: Any) -> None:
    ana = hooked(tmp_path, make_facts(stop="signal"), FLAT)
    ana.put("inbox", "x")
    assert ana.call("Stop", payload={"hook_event_name": "Stop"}).stdout == b""
    assert ana.claimed_ids() == []


@pytest.mark.parametrize(
    ("payload", "event", "tool"),
    [
        ({"hookName": "permissionRequest", "toolName": "bash", "sessionId": "s"}, "PermissionRequest", "bash"),
        ({"hook_event_name": "BeforeTool", "toolName": "bash"}, "PreToolUse", "bash"),
        ({"hook_event_name": "Odd"}, "Odd", None),
    ],
)
def test_a_payload_is_read_in_our_words(payload: dict[str, Any], event: str, tool: str | None) -> None:
    news = Flat().read_hook(json.dumps(payload))
    assert news is not None
    assert (news.event, news.tool) == (event, tool)
    if event == "PermissionRequest":
        assert (news.session_id, news.reading.state) == ("s", AgentState.BLOCKED)


def test_only_a_whole_value_is_replaced() -> None:
    shape = {"a": TEXT, "b": [f"x{TEXT}", TEXT], TEXT: 1}
    assert filled(shape, {TEXT: "$EVENT"}) == {"a": "$EVENT", "b": [f"x{TEXT}", "$EVENT"], TEXT: 1}
    assert program.filled(shape, "$EVENT", "e") == filled(shape, {TEXT: "$EVENT"})


def test_an_older_client_can_less() -> None:
    class Newer(Plain):
        capabilities = Plain.capabilities.__class__(native_inbox=True, stop_block=True)
        since = {"native_inbox": (0, 171)}  # noqa: RUF012

    assert able(Newer(), "0.170.9") == Newer.capabilities.__class__(stop_block=True)
    assert able(Newer(), "0.171.0") == Newer.capabilities
    assert able(Newer(), None) == Newer.capabilities


def test_a_plain_driver_starts_a_command_and_says_what_it_leaves_out() -> None:
    class Odd(Plain):
        name, program = "odd", "odd"
        auto_approve = ("--yes",)

    facts = make_facts(model="m", permission_mode="bypassPermissions", has_prompt=True, args=("-v",), skills=("a",))
    launch = Odd().launch(facts)
    assert launch.argv == ("odd", "--model", "m", "--yes", "-v", "\0prompt")
    assert launch.dropped == ("skills",)
    assert Odd().launch(make_facts(permission_mode="plan")).dropped == ("permission_mode plan",)


def test_the_block_of_claude_code_is_what_others_take_too() -> None:
    assert BLOCK == {"decision": "block", "reason": TEXT}
