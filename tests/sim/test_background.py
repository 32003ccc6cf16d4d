"""Compaction, and commands in the background."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sim.conftest import Begin

BYPASS = "--dangerously-skip-permissions"


def test_compact_leaves_a_summary(begin: Begin) -> None:
    client = begin()
    client.turn("[[say remembered]]")
    client.turn("[[say enough to sum up]]")
    client.send("/compact\r")
    client.until_text("Compacted (ctrl+o to see full summary)")
    client.until_status("idle")
    client.turn("[[say more]]")
    assert "remembered" not in client.heard()
    assert "summary" in client.heard()


def test_too_little_is_not_summed_up(begin: Begin) -> None:
    client = begin()
    client.turn("[[say remembered]]")
    client.send("/compact\r")
    client.until_text("Not enough messages to compact.")
    client.until_status("idle")
    client.turn("[[say more]]")
    assert "remembered" in client.heard()


def test_escape_takes_a_compaction_back_into_the_box(begin: Begin, tmp_path: Path) -> None:
    scenario = tmp_path / "slow.json"
    scenario.write_text(json.dumps({"timeouts": {"compact_delay_ms": 60_000}}), encoding="utf-8")
    client = begin("--scenario", str(scenario))
    client.turn("[[say one]]")
    client.turn("[[say two]]")
    client.send("/compact\r")
    client.until_text("Compacting conversation")
    client.send("\x1b")
    client.until_text("/compact  <optional custom summarization instructions>")
    client.until_status("idle")


def test_a_background_command_shows_as_shell_and_its_end_starts_a_turn(begin: Begin) -> None:
    client = begin(BYPASS)
    client.say("[[bg sleep 0.8]] [[say started]]")
    client.until_status("shell")
    client.until_text("bypass permissions on · 1 shell · ↓ to manage")
    client.until_text(" · 1 shell still running")
    client.until(lambda: client.ended() == 2)
    assert "<task-notification>" in client.heard()
    client.until_status("idle")


def test_what_a_background_command_prints_is_in_the_file_that_is_named(begin: Begin, tmp_path: Path) -> None:
    client = begin(BYPASS, env={"CLAUDE_CODE_TMPDIR": str(tmp_path / "t")})
    client.say("[[bg echo printed; until test -e go; do sleep 0.1; done]] [[say started]]")
    client.until_status("shell")
    found = client.until(lambda: list(tmp_path.glob("t/claude-*/*/*/tasks/*.output")))
    client.until(lambda: found[0].read_text(encoding="utf-8") == "printed\n")
    (client.project / "go").write_text("", encoding="utf-8")
    client.until(lambda: client.ended() == 2)
    assert f"<output-file>{found[0]}</output-file>" in client.heard()
    client.send("/exit\r")
    client.wait()
    assert not found[0].exists()
