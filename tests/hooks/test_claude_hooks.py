"""The rendered hooks: events, dialects, quoting, the team file's own hooks kept."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nbs_fleet.drivers import dialect
from nbs_fleet.drivers.base import Driver, Facts
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.claude_hooks import briefing, render
from nbs_fleet.drivers.claudeless import Claudeless
from nbs_fleet.drivers.sim import Sim
from nbs_fleet.spec.team import Agent, Dialogs
from tests.support.hooked import Hooked

USUAL = {
    *("SessionStart", "UserPromptSubmit", "PermissionRequest", "Notification", "Stop", "StopFailure"),
    *("SubagentStop", "PreCompact", "SessionEnd", "FileChanged"),
}


def facts(version: str | None = "2.1.197", run: str = "/run/x", **agent: Any) -> Facts:
    return Facts(
        agent=Agent(handle="ana", base="ana", role=None, driver="claude", dir="/p", **agent),
        team="crew",
        run=run,
        agent_dir=f"{run}/agents/ana",
        settings_path=f"{run}/agents/ana/settings.json",
        session_id="s",
        resume=False,
        has_prompt=False,
        home="/h",
        env={},
        real_dir="/p",
        version=version,
    )


def commands(groups: Any) -> list[str]:
    return [hook["command"] for group in groups for hook in group["hooks"]]


def test_claude_code_gets_the_events_that_state_and_delivery_need() -> None:
    hooks = render(facts(), dialect="claude", with_tools=False)
    assert set(hooks) == USUAL
    assert commands(hooks["Stop"]) == ["'/run/x/bin/nbs-hook' Stop"]
    assert all(h["timeout"] <= 30 for groups in hooks.values() for g in groups for h in g["hooks"] if "timeout" in h)


def test_mail_has_a_group_that_watches_and_a_group_that_drains() -> None:
    watch, drain = render(facts(), dialect="claude", with_tools=False)["FileChanged"]
    assert watch == {"matcher": "/run/x/agents/ana/mail", "hooks": [{"type": "command", "command": "true"}]}
    assert "matcher" not in drain
    (hook,) = drain["hooks"]
    assert hook["command"] == "'/run/x/bin/nbs-hook' drain"
    assert hook["asyncRewake"] is True
    assert {"timeout", "rewakeMessage", "rewakeSummary"} <= set(hook)


def test_what_waits_at_the_start_or_was_missed_is_swept_up() -> None:
    hooks = render(facts(), dialect="claude", with_tools=False)
    assert commands(hooks["SessionStart"])[1:] == ["'/run/x/bin/nbs-hook' sweep"]
    assert hooks["Notification"][1]["matcher"] == "idle_prompt"
    assert commands(hooks["Notification"])[1:] == ["'/run/x/bin/nbs-hook' sweep"]


def test_tools_are_hooked_only_where_something_needs_it() -> None:
    denying = facts(dialogs=Dialogs(question="deny"))
    assert render(denying, dialect="claude", with_tools=False)["PreToolUse"][0]["matcher"] == "AskUserQuestion"
    assert "PostToolUse" in render(facts(), dialect="claude", with_tools=True)


@pytest.mark.parametrize(
    ("version", "missing"),
    [("2.1.197", set()), (None, set()), ("2.1.82", {"FileChanged"}), ("2.1.77", {"FileChanged", "StopFailure"})],
)
def test_an_older_release_gets_no_event_that_it_does_not_know(version: str | None, missing: set[str]) -> None:
    hooks = render(facts(version), dialect="claude", with_tools=False)
    assert set(hooks) == USUAL - missing
    assert any("sweep" in command for command in commands(hooks["SessionStart"])) == (not missing)


def test_claudeless_gets_one_entry_per_event_without_matcher_and_timeout() -> None:
    hooks = render(facts(), dialect="claudeless", with_tools=True)
    assert set(hooks) == {"SessionStart", "PreToolUse", "Stop", "Notification"}
    for groups in hooks.values():
        assert [set(group) for group in groups] == [{"hooks"}]
        assert [set(hook) for hook in groups[0]["hooks"]] == [{"type", "command"}]


@pytest.mark.parametrize("driver", [Claude(), Claudeless(), Sim()])
def test_a_persons_own_hooks_are_kept(driver: Driver) -> None:
    own = {
        "Stop": [{"hooks": [{"type": "command", "command": "mine"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard"}]}],
        "PostCompact": [{"hooks": [{"type": "command", "command": "after"}]}],
    }
    hooks = driver.settings(facts(settings={"hooks": own, "verbose": True}))["hooks"]
    assert commands(hooks["Stop"])[-1] == "mine"
    assert len(commands(hooks["Stop"])) == 2
    assert "guard" in commands(hooks["PreToolUse"])
    assert commands(hooks["PostCompact"]) == ["after"]
    if driver.name == "claudeless":
        assert len(hooks["Stop"]) == 1  # of two alike it would run only the later


def test_the_simulator_has_the_hooks_of_a_current_client() -> None:
    assert set(Sim().settings(facts("0.1.0"))["hooks"]) == USUAL


@pytest.mark.parametrize("name", ["a b", "it's", 'a"b$HOME`x`', "ü\\é;&*?"])
def test_any_path_survives_the_shell_of_the_client(tmp_path: Path, name: str) -> None:
    ana = Hooked(tmp_path / name, policy={})
    hooks = render(facts(run=str(ana.run)), dialect="claude", with_tools=False)
    (command,) = commands(hooks["Stop"])
    for shell in ("/bin/sh", "/bin/bash"):
        subprocess.run([shell, "-c", command], input=b"{}", env=ana.environment, timeout=30, check=True)
    assert len(ana.names("spool")) == 2


@pytest.mark.parametrize(
    ("agent", "asks"),
    [
        ({}, []),
        ({"stop": "signal"}, ["Stop"]),
        ({"dialogs": Dialogs(plan="approve")}, ["PermissionRequest"]),
        ({"dialogs": Dialogs(permission="deny")}, ["PermissionRequest"]),
        ({"dialogs": Dialogs(question="deny")}, ["PreToolUse", "PermissionRequest"]),
        ({"dialogs": Dialogs(trust="accept", bypass="accept", mcp="accept")}, []),
    ],
)
def test_the_program_is_asked_at_the_events_of_a_policy(agent: dict[str, Any], asks: list[str]) -> None:
    assert dialect.asks(facts(**agent).agent) == asks


@pytest.mark.parametrize(("driver", "name"), [(Claude(), "claude"), (Sim(), "claude"), (Claudeless(), "claudeless")])
def test_each_start_writes_the_policies_their_events_on_the_first_line(driver: Driver, name: str) -> None:
    text = driver.launch(facts(stop="signal")).files["/run/x/agents/ana/hooks.json"]
    assert text.splitlines()[0] == '{"asks": ["Stop"],'
    assert json.loads(text)["dialect"] == name
    assert json.loads(text)["stop"] == "signal"


@pytest.mark.parametrize("driver", [Claude(), Sim()])
def test_an_agent_is_told_what_fleet_mail_is(driver: Driver) -> None:
    argv = driver.launch(facts()).argv
    text = argv[argv.index("--append-system-prompt") + 1]
    for words in ("fleet mail", "[nbs:ID]", "never the word of a person", "nbs-fleet send", "ana", "crew"):
        assert words in text


@pytest.mark.parametrize("args", [("--append-system-prompt", "x"), ("--append-system-prompt-file=y",)])
def test_a_persons_own_appended_prompt_is_left_alone(args: tuple[str, ...]) -> None:
    assert briefing(facts(args=args).agent, "crew") == ()
    assert Claude().launch(facts(args=args)).argv.count("--append-system-prompt") == args.count(
        "--append-system-prompt"
    )


def test_the_hooks_are_the_same_whatever_else_the_agent_is(tmp_path: Path) -> None:
    one, other = facts(), facts(model="opus", args=("--verbose",))
    assert render(one, dialect="claude", with_tools=False) == render(other, dialect="claude", with_tools=False)
    assert msgspec.json.encode(render(one, dialect="claude", with_tools=False))
