"""The drawn screens are those of the real client, captured at many widths."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nbs_fleet.sim import asking, dialogs, screen, settings
from nbs_fleet.sim.dialogs import Dialog
from nbs_fleet.sim.screen import EFFORT, Box, Footer

SCREENS = Path(__file__).parent / "screens"
NARROW = (30, 40, 50, 60, 70, 80, 120)
FOCUS = re.compile(r"tmux focus-events off")
OPUS = "Opus 4.8 (1M context)"


def plain(lines: list[str]) -> list[str]:
    return [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip(" ") for line in lines]


def golden(name: str) -> list[str]:
    """A capture without trailing blanks and blank lines at its ends; lines of the terminal's own hint left out."""
    lines = [line.rstrip(" ") for line in (SCREENS / f"{name}.txt").read_text().split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return [line for line in lines if not FOCUS.search(line)]


def assert_ends_with(drawn: list[str], name: str) -> None:
    """The capture may have lost its upper lines to scrolling."""
    shown, wanted = plain(drawn), golden(name)
    count = min(len(shown), len(wanted))
    assert shown[-count:] == wanted[-count:]


@pytest.mark.parametrize("columns", NARROW)
def test_the_idle_screen_in_bypass_mode_is_the_captured_one(columns: int) -> None:
    drawn = [*screen.welcome(columns, "/home/me/cclab/pm11", OPUS, fresh=True), "", ""]
    drawn += screen.bottom(Box(name="scribe-1"), Footer(mode="bypassPermissions", right=EFFORT), columns)
    assert_ends_with(drawn, f"bypass_idle_{columns}")


@pytest.mark.parametrize("columns", NARROW)
def test_the_busy_screen_in_bypass_mode_is_the_captured_one(columns: int) -> None:
    footer = Footer(mode="bypassPermissions", busy=True)
    assert_ends_with(screen.bottom(Box(name="scribe-1"), footer, columns), f"bypass_busy_{columns}")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_first_screen_of_a_session_is_the_captured_one(columns: int) -> None:
    drawn = [*screen.welcome(columns, "/home/me/cclab/pm1", OPUS, fresh=True), "", ""]
    drawn += screen.bottom(Box(), Footer(right=EFFORT), columns)
    assert_ends_with(drawn, f"idle_fresh_{columns}")


@pytest.mark.parametrize(("name", "columns"), [("idle_plan_60", 60), ("idle_planmode_100", 100)])
def test_plan_mode_is_shown_as_captured(name: str, columns: int) -> None:
    assert_ends_with(screen.bottom(Box(), Footer(mode="plan", right=EFFORT), columns), name)


def test_with_the_fleet_s_settings_the_idle_footer_is_one_line_and_the_busy_one_two() -> None:
    idle = Footer(mode="bypassPermissions", agents=False, right=EFFORT)
    assert_ends_with(screen.bottom(Box(name="w1"), idle, 80), "quiet_settings_idle_focus_on")
    assert_ends_with(screen.bottom(Box(name="w1"), idle._replace(busy=True), 80), "quiet_settings_busy")


def test_the_welcome_box_follows_the_model_s_name() -> None:
    drawn = screen.welcome(100, "/home/me/cclab/pm6", "Sonnet 4.5", fresh=True)
    wanted = golden("named_session")
    assert plain(drawn)[1:] == wanted[: len(drawn) - 1]


def test_waiting_prompts_leave_a_hint_in_the_box() -> None:
    drawn = screen.bottom(Box(ghost=screen.QUEUE_HINT), Footer(busy=True), 120)
    assert_ends_with(drawn, "queued_120")


def test_a_stashed_draft_is_told_at_the_right() -> None:
    assert_ends_with(screen.bottom(Box(), Footer(right="› stashed"), 120), "stash_120")


def test_a_draft_hides_the_hints_of_the_default_mode() -> None:
    drawn = screen.bottom(Box(text="half typed", cursor=10), Footer(typed=True), 80)
    assert plain(drawn) == ["─" * 80, "❯\xa0half typed", "─" * 80]


def test_a_draft_of_several_lines_is_indented_and_the_cursor_is_an_inverted_cell() -> None:
    box = Box(text="one\ntwo", cursor=5)
    lines = screen.input_lines(box, 80)
    assert lines == ["❯\xa0one", "  t\x1b[7mw\x1b[0mo"]


def settings_dialog(values: str, path: str) -> Dialog:
    fault = settings.check(path, values)[2]
    assert fault is not None
    return dialogs.settings_fault(fault.path, fault.problems, fault.advice, fatal=fault.fatal)


ONE_QUESTION = {
    "question": "Which library should we use?",
    "header": "Library",
    "multiSelect": False,
    "options": [{"label": "aiohttp", "description": "async"}, {"label": "flask", "description": "sync"}],
}
DBS = {
    "question": "Which dbs?",
    "header": "DB",
    "multiSelect": True,
    "options": [{"label": "sqlite", "description": "file"}, {"label": "pg", "description": "server"}],
}
BASH = {"command": "touch made-by-mock.txt", "description": "Mock command"}
PLAN = "# Plan\n\n1. step one\n2. step two"
PLAN_PATH = "/home/me/.claude/plans/hazy-coalescing-simon.md"
DIALOGS: dict[str, tuple[Dialog, int]] = {
    "bypass_dialog_80x24": (dialogs.bypass(), 80),
    "firstrun_after_security": (dialogs.trust("/home/me/cclab/p2"), 80),
    "api_key_dialog": (dialogs.api_key("dummy-local-key"), 80),
    "mcp_approval_dialog": (dialogs.mcp_server("foo"), 80),
    "settings_bad1": (settings_dialog("{", "/home/me/cclab/bad.json"), 100),
    "settings_bad3": (settings_dialog('{"hooks": {"FooBarEvent": []}}', "/home/me/cclab/bad3.json"), 100),
    "settings_bad4": (
        settings_dialog(
            '{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}, "permissions": {"defaultMode": "yes"}}',
            "/home/me/cclab/bad4.json",
        ),
        100,
    ),
    "permission_bash_120": (asking.permission("Bash", BASH, "/home/me/pm1", []), 120),
    "askuser_80": (asking.Questions([ONE_QUESTION]), 80),
    "askuser_multi_120": (asking.Questions([{**ONE_QUESTION, "question": "Which library?"}, DBS]), 120),
    "plan_dialog_byp": (asking.plan(PLAN, PLAN_PATH, "and bypass permissions", "/home/me"), 80),
}


@pytest.mark.parametrize("name", DIALOGS)
def test_each_dialog_is_drawn_as_captured(name: str) -> None:
    dialog, columns = DIALOGS[name]
    assert_ends_with(dialog.lines(columns), name)


def test_the_security_notes_are_drawn_as_captured() -> None:
    assert plain(dialogs.security().lines(80)) == golden("firstrun_after_apikey_1")


def test_the_spinner_tells_seconds_and_tokens_once_there_are_some() -> None:
    assert screen.spinner("●", "Osmosing", 0.4, 0) == "● Osmosing…"
    assert screen.spinner("●", "Osmosing", 1.2, 2) == "● Osmosing… (1s · ↓ 2 tokens)"
    assert screen.spinner("✻", "Doing", 65, 0) == "✻ Doing… (1m 5s)"


def test_no_line_is_wider_than_the_screen() -> None:
    for columns in range(30, 130, 7):
        drawn = screen.welcome(columns, "/a/very/long/path/" * 9, OPUS, fresh=False)
        drawn += screen.bottom(
            Box(name="n" * 200, text="wörd " * 60), Footer(mode="plan", busy=True, right=EFFORT), columns
        )
        assert max(len(line) for line in plain(drawn)) <= columns
