from __future__ import annotations

from typing import Any

import pytest

from nbs_fleet.drivers.base import Dialog, Option
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.claudeless import Claudeless
from nbs_fleet.model import BlockedKind
from nbs_fleet.spec.team import Dialogs
from tests.drivers.support import captured

WIDTHS = (120, 60, 40, 30)


def keys(folder: str, name: str, **policy: Any) -> tuple[str, ...] | None:
    driver = Claudeless() if folder == "claudeless" else Claude()
    dialog = driver.read_screen(captured(folder, name)).dialog
    assert dialog is not None
    return driver.answer(dialog, Dialogs(**policy))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("name", "policy", "expected"),
    [
        ("trust", {"trust": "accept"}, ("1",)),
        ("trust", {"trust": "deny"}, ("2",)),
        ("bypass", {"bypass": "accept"}, ("2",)),
        ("bypass", {"bypass": "deny"}, ("1",)),
        ("mcp", {"mcp": "accept"}, ("1",)),
        ("mcp", {"mcp": "deny"}, ("3",)),
        ("mcpmulti", {"mcp": "accept"}, ("Enter",)),
        ("mcpmulti", {"mcp": "deny"}, ("Escape",)),
        ("apikey", {"apikey": "accept"}, ("1",)),
        ("apikey", {"apikey": "deny"}, ("2",)),
        ("theme", {"setup": "accept"}, ("Enter",)),
        ("security", {"setup": "accept"}, ("Enter",)),
        ("settingserr", {"settings": "accept"}, ("3",)),
        ("settingswarn", {"settings": "accept"}, ("1",)),
        ("plan", {"plan": "approve"}, ("2",)),
        ("perm_bash", {"permission": "approve"}, ("1",)),
        ("perm_bash", {"permission": "deny"}, ("3",)),
        ("perm_fetch", {"permission": "approve"}, ("1",)),
        ("perm_fetch", {"permission": "deny"}, ("3",)),
        ("perm_write_down", {"permission": "approve"}, ("1",)),
        ("perm_write_down", {"permission": "deny"}, ("3",)),
    ],
)
def test_a_dialog_is_answered_as_the_policy_says_at_any_width(
    name: str, policy: dict[str, Any], expected: tuple[str, ...], width: int
) -> None:
    assert keys("claude_more", f"{name}_{width}", **policy) == expected


@pytest.mark.parametrize(
    "name",
    ["trust", "bypass", "mcp", "mcpmulti", "apikey", "theme", "security", "settingserr", "plan", "perm_bash", "ask1"],
)
def test_a_dialog_without_a_policy_is_left_to_a_person(name: str) -> None:
    assert keys("claude_more", f"{name}_60") is None


@pytest.mark.parametrize("name", ["ask1_60", "ask2_60", "ask3_60"])
@pytest.mark.parametrize("wish", ["accept", "approve", "deny"])
def test_a_question_is_never_answered_by_keys(name: str, wish: str) -> None:
    assert keys("claude_more", name, question=wish) is None


@pytest.mark.parametrize("name", ["login_60", "includes_60"])
def test_a_login_and_an_import_from_elsewhere_are_a_persons(name: str) -> None:
    every = dict.fromkeys(Dialogs.__struct_fields__, "accept")
    assert keys("claude_more", name, **every) is None


def test_an_approved_plan_keeps_bypass_where_that_is_offered() -> None:
    assert keys("claude", "plan_dialog_byp", plan="approve") == ("1",)


def test_an_approved_plan_widens_nothing_where_bypass_is_not_offered() -> None:
    assert keys("claude", "plan_dialog_planA", plan="approve") == ("2",)


def test_an_empty_plan_is_approved_by_its_plain_yes() -> None:
    assert keys("claude_more", "exitplan_empty_30", plan="approve") == ("1",)


def test_a_refused_plan_is_left_with_escape() -> None:
    assert keys("claude", "plan_dialog_byp", plan="deny") == ("Escape",)


def test_bypass_is_kept_where_another_line_clears_the_context_first() -> None:
    lines = ("Yes, clear context and bypass permissions", "Yes, and bypass permissions", "Yes, manually approve edits")
    dialog = Dialog(BlockedKind.PLAN, "plan", tuple(Option(line, str(i)) for i, line in enumerate(lines, 1)), 0)
    assert Claude().answer(dialog, Dialogs(plan="approve")) == ("2",)


def test_a_resumed_session_is_taken_whole() -> None:
    lines = ("Resume from summary (recommended)", "Resume full session as-is", "Don't ask me again")
    dialog = Dialog(BlockedKind.RESUME, "old", tuple(Option(line, str(i)) for i, line in enumerate(lines, 1)), 0)
    assert Claude().answer(dialog, Dialogs(resume="accept")) == ("2",)


def test_a_line_that_allows_more_than_was_asked_is_never_chosen() -> None:
    lines = ("Yes, and don't ask again", "Yes, allow all edits during this session", "No")
    dialog = Dialog(BlockedKind.PERMISSION, "x", tuple(Option(line, str(i)) for i, line in enumerate(lines, 1)), 0)
    assert Claude().answer(dialog, Dialogs(permission="approve")) is None


@pytest.mark.parametrize(
    ("name", "policy", "expected"),
    [
        ("trust_60", {"trust": "accept"}, ("y",)),
        ("trust_60", {"trust": "deny"}, ("n",)),
        ("bypass_60", {"bypass": "accept"}, ("Down", "Enter")),
        ("bypass_60", {"bypass": "deny"}, ("Enter",)),
        ("bypass_down_60", {"bypass": "accept"}, ("Enter",)),
        ("bypass_down_60", {"bypass": "deny"}, ("Up", "Enter")),
        ("perm_tool_60", {"permission": "approve"}, ("1",)),
        ("perm_write_60", {"permission": "deny"}, ("3",)),
        ("theme_60", {"setup": "accept"}, ("Enter",)),
        ("login_60", {"login": "accept"}, None),
    ],
)
def test_claudeless_gets_the_keys_that_it_knows(
    name: str, policy: dict[str, Any], expected: tuple[str, ...] | None
) -> None:
    assert keys("claudeless", name, **policy) == expected
