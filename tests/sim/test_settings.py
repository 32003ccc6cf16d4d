"""Settings of all sources are merged, and what is wrong with them is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.sim import settings

Json = dict[str, Any]


def hook(event: str, command: str, matcher: str | None = None, more: Json | None = None) -> Json:
    group: Json = {"hooks": [{"type": "command", "command": command, **(more or {})}]}
    if matcher is not None:
        group["matcher"] = matcher
    return {"hooks": {event: [group]}}


def put(path: Path, values: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))


def test_hooks_and_rules_of_all_sources_add_up_and_later_values_win(tmp_path: Path) -> None:
    config, project = tmp_path / "config", tmp_path / "project"
    put(config / "settings.json", {"a": 1, "b": 1, **hook("Stop", "user")})
    put(project / ".claude/settings.json", {"b": 2, "permissions": {"allow": ["Bash(ls)"]}, **hook("Stop", "project")})
    put(project / ".claude/settings.local.json", {"permissions": {"deny": ["Edit"], "defaultMode": "plan"}})
    put(tmp_path / "flag.json", {"b": 3, **hook("Stop", "flag", more={"timeout": 2})})
    found = settings.sources(
        {"CLAUDE_CONFIG_DIR": str(config)}, str(project), (str(tmp_path / "flag.json"), '{"c": 4}')
    )
    merged = settings.load(found)
    assert merged.values == {"a": 1, "b": 3, "c": 4, "defaultMode": "plan"}
    assert [h.command for h in merged.hooks] == ["user", "project", "flag"]
    assert merged.hooks[-1].timeout == 2.0
    assert (merged.allow, merged.deny) == (("Bash(ls)",), ("Edit",))
    assert merged.faults == ()


def test_bypass_is_accepted_by_every_source_but_the_project_s(tmp_path: Path) -> None:
    accept = {"skipDangerousModePermissionPrompt": True}
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    put(tmp_path / ".claude/settings.json", accept)
    assert not settings.load(settings.sources(env, str(tmp_path), ())).bypass_accepted
    assert settings.load(settings.sources(env, str(tmp_path), (json.dumps(accept),))).bypass_accepted
    put(tmp_path / ".claude/settings.local.json", accept)
    assert settings.load(settings.sources(env, str(tmp_path), ())).bypass_accepted


def test_a_settings_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(settings.MissingSettingsError, match=r"Settings file not found: /nonexistent\.json"):
        settings.sources({"HOME": str(tmp_path)}, str(tmp_path), ("/nonexistent.json",))


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"permissions": {"defaultMode": "yes"}}', '{"hooks": {"Stop": [{"hooks": [{}]}]}}']
)
def test_a_faulty_file_is_left_out_whole(text: str) -> None:
    values, hooks, fault = settings.check("f", text)
    assert (values, hooks) == ({}, [])
    assert fault is not None
    assert fault.fatal


def test_an_unknown_event_is_only_a_warning() -> None:
    values, hooks, fault = settings.check("f", json.dumps({"x": 1, **hook("Stopp", "a")}))
    assert (values["x"], hooks) == (1, [])
    assert fault is not None
    assert not fault.fatal
    assert fault.problems[0].startswith(
        'hooks.Stopp: Unknown hook event "Stopp" was ignored. Valid events: PreToolUse,'
    )


def test_background_hooks_and_their_messages_are_read() -> None:
    more = {"asyncRewake": True, "rewakeMessage": "M", "rewakeSummary": "S"}
    found = settings.check("f", json.dumps(hook("FileChanged", "drain", "/inbox", more)))[1][0]
    assert (found.background, found.rewake, found.rewake_message, found.rewake_summary) == (True, True, "M", "S")
    plain = settings.check("f", json.dumps(hook("PostToolUse", "x", more={"async": True})))[1][0]
    assert (plain.background, plain.rewake) == (True, False)


def test_a_change_of_a_file_changes_the_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    put(path, {"a": 1})
    found = [("flag", str(path)), ("inline", "{}"), ("user", str(tmp_path / "none"))]
    before = settings.fingerprint(found)
    put(path, {"a": 12})
    assert settings.fingerprint(found) != before
