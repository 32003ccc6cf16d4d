from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.claudeless import Claudeless
from nbs_fleet.drivers.sim import Sim
from nbs_fleet.model import AgentState, BlockedKind
from tests.drivers.screens_table import CLAUDE, CLAUDE_MORE, CLAUDELESS
from tests.drivers.support import HERE, captured, cases, rows, screen, words

FOLDERS = {"claude": CLAUDE, "claude_more": CLAUDE_MORE, "claudeless": CLAUDELESS}
DIALOGS = [
    ("claude", name)
    for name, expected in cases(CLAUDE)
    if expected.startswith("blocked") and expected not in ("blocked draft", "blocked login")
]
IDLE = [name for name, expected in cases(CLAUDE) if expected == "idle"]


@pytest.mark.parametrize(("name", "expected"), cases(CLAUDE))
def test_each_captured_screen_is_read_as_what_it_is(name: str, expected: str) -> None:
    assert words(Claude().read_screen(captured("claude", name))) == expected


@pytest.mark.parametrize(("name", "expected"), cases(CLAUDE_MORE))
def test_dialogs_and_drafts_are_read_alike_at_any_width(name: str, expected: str) -> None:
    assert words(Claude().read_screen(captured("claude_more", name))) == expected


@pytest.mark.parametrize(("name", "expected"), cases(CLAUDELESS))
def test_screens_of_claudeless_are_read_in_its_own_dialect(name: str, expected: str) -> None:
    assert words(Claudeless().read_screen(captured("claudeless", name))) == expected


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_capture_is_in_its_table_once(folder: str) -> None:
    listed = sorted(name for name, _ in cases(FOLDERS[folder]))
    assert listed == sorted(path.stem for path in (HERE / "screens" / folder).glob("*.txt"))


@pytest.mark.parametrize(("folder", "name"), DIALOGS)
def test_a_dialog_in_the_output_above_the_box_is_not_taken_for_one(folder: str, name: str) -> None:
    quoted = tuple(f"     {row}" if row else "" for row in rows(folder, name))
    shown = (*quoted, "", *rows("claude", "bypass_idle_120"))
    assert words(Claude().read_screen(screen(("● Bash(cat dialog.txt)", *shown)))) == "idle"


@pytest.mark.parametrize("name", IDLE)
def test_a_dialog_below_an_older_box_is_the_one_that_counts(name: str) -> None:
    below = rows("claude", "permission_bash_120")
    start = next(i for i, row in enumerate(below) if row.startswith("──"))
    both = (*rows("claude", name), *below[start:])
    assert words(Claude().read_screen(screen(both))) == "blocked permission"


@given(st.lists(st.text(max_size=60).map(lambda text: text.replace("\n", " ").replace("\r", " ")), max_size=12))
def test_a_permission_stays_one_whatever_the_file_holds_that_is_to_be_written(content: list[str]) -> None:
    shown = tuple(f"  {number} {line}" for number, line in enumerate(content, 1))
    head = ("─" * 80, " Create file", " new.txt", "╌" * 80)
    tail = ("╌" * 80, " Do you want to create new.txt?", " ❯ 1. Yes", "   2. Yes, allow all edits", "   3. No", "")
    reading = Claude().read_screen(screen((*head, *shown, *tail, " Esc to cancel · Tab to amend")))
    assert reading.blocked is BlockedKind.PERMISSION
    assert reading.dialog is not None
    assert [option.label for option in reading.dialog.options] == ["Yes", "Yes, allow all edits", "No"]


HOSTILE = (
    "Do you want to use this API key? Would you like to proceed?",
    "WARNING: Claude Code running in Bypass Permissions mode",
    "Accessing workspace: Do you trust the files in this folder?",
    "❯ 1. Yes, I trust this folder",
    "  2. Yes, I accept",
    "  3. No (recommended)",
    "Exit plan mode?",
    "Select login method:",
    "Settings Error",
)


@given(st.lists(st.sampled_from(HOSTILE), max_size=12))
def test_words_of_other_dialogs_inside_a_permission_do_not_change_its_kind(content: list[str]) -> None:
    tail = ("", " Do you want to proceed?", " ❯ 1. Yes", "   2. No", "", " Esc to cancel")
    reading = Claude().read_screen(screen(("─" * 80, " Bash command", *(f"   {row}" for row in content), *tail)))
    assert reading.blocked is BlockedKind.PERMISSION


PIECES = sorted({row for name, _ in cases(CLAUDE) for row in rows("claude", name)[-14:]})


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=40)), max_size=20))
def test_no_screen_makes_a_reader_fail(lines: list[str]) -> None:
    for driver in (Claude(), Claudeless(), Sim()):
        reading = driver.read_screen(screen(tuple(lines)))
        assert (reading.dialog is None) or reading.state is AgentState.BLOCKED
        assert (reading.blocked is None) or reading.state is AgentState.BLOCKED


@given(st.sampled_from([name for name, expected in cases(CLAUDE) if expected != "idle"]), st.integers(0, 6))
def test_blank_rows_and_blanks_at_the_ends_change_nothing(name: str, blanks: int) -> None:
    lines = rows("claude", name)
    padded = tuple(f"{line}   " for line in lines) + ("",) * blanks
    assert Claude().read_screen(screen(padded)) == Claude().read_screen(screen(lines))


def test_a_repaint_seen_half_way_is_no_dialog() -> None:
    """As seen on the real client: the first rows of the next screen above the rest of an answered dialog."""
    new, old = rows("claude", "idle_fresh_120"), rows("claude", "settings_bad3")
    line = old.index("  ❯ 1. Continue")
    half = (*new[:9], *old[line - 6 : line + 2])
    assert Claude().read_screen(screen(half)).state is AgentState.UNKNOWN


def test_a_draft_typed_during_a_turn_is_reported_beside_it() -> None:
    reading = Claude().read_screen(captured("claude_more", "busydraft_60"))
    assert (reading.state, reading.draft) == (AgentState.BUSY, "half typed")


def test_a_draft_of_several_rows_is_reported_whole() -> None:
    reading = Claude().read_screen(captured("claude", "stash_restored_120"))
    assert reading.draft == "user half typed\nsecond line"


def test_an_error_is_told_in_the_words_of_the_client() -> None:
    reading = Claude().read_screen(captured("claude", "apierr_500"))
    assert reading.detail.startswith("error: API Error: 500 Internal server error. This is a server-side issue")


def test_an_interrupted_turn_is_idle_and_says_so() -> None:
    assert Claude().read_screen(captured("claude", "esc_mid_tool")).detail == "interrupted"


def test_a_frozen_turn_of_claudeless_shows_its_text_as_draft_but_is_unknown() -> None:
    reading = Claudeless().read_screen(captured("claudeless", "turn_60"))
    assert (reading.state, reading.draft) == (AgentState.UNKNOWN, "slow")
