from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.claudeless import Claudeless
from nbs_fleet.model import ExitKind
from tests.drivers.support import rows


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("session_id_in_use", 1, ExitKind.SESSION_IN_USE),
        ("flag_res1", 1, ExitKind.NO_CONVERSATION),
        ("flag_resx", 1, ExitKind.NO_CONVERSATION),
        ("flag_con1", 1, ExitKind.NO_CONVERSATION),
        ("flag_sidbad", 1, ExitKind.REFUSED),
        ("root_bypass_refused", 1, ExitKind.REFUSED),
        ("settings_bad2", 1, ExitKind.REFUSED),
        ("idle_after_turn_60", 1, ExitKind.REFUSED),
        ("firstrun_1_theme", 1, ExitKind.CRASH),
        ("exit_screen", 0, ExitKind.CLEAN),
        ("exit_xterm", 143, ExitKind.CRASH),
        ("exit_xhup", 129, ExitKind.CRASH),
    ],
)
def test_the_end_of_a_real_client_is_told_by_its_status_and_last_words(
    name: str, code: int, expected: ExitKind
) -> None:
    lines = tuple(row for row in rows("claude", name) if row and not row.startswith("[exit"))
    assert Claude().read_exit(code, None, lines[-20:]) is expected


@pytest.mark.parametrize(
    ("code", "lines", "expected"),
    [
        (127, ("nbs-fleet: program not found: claude",), ExitKind.MISSING_PROGRAM),
        (127, ("bash: line 1: claude: command not found",), ExitKind.MISSING_PROGRAM),
        (127, ("● the program says: sh: x: not found",), ExitKind.CRASH),
        (126, ("nbs-fleet: not executable: /opt/claude",), ExitKind.NOT_EXECUTABLE),
        (126, ("sh: 1: /opt/claude: Permission denied",), ExitKind.NOT_EXECUTABLE),
        (126, (), ExitKind.CRASH),
        (78, ("nbs-fleet: environment values are gone; run nbs-fleet up again",), ExitKind.REFUSED),
        (78, (), ExitKind.CRASH),
        (1, ("error: unknown option '--nope'", "(Did you mean --name?)"), ExitKind.REFUSED),
        (1, ("error: option '--model <model>' argument missing",), ExitKind.REFUSED),
        (1, ("Error: Invalid MCP configuration:", "MCP config file not found: /nope.json"), ExitKind.REFUSED),
        (1, ("Error: Session ID 1111 is al", "ready in use."), ExitKind.SESSION_IN_USE),
        (1, ("  Error: Session ID 1111 is already in use.",), ExitKind.CRASH),
        (7, ("Error: Session ID 1111 is already in use.",), ExitKind.CRASH),
        (None, ("No conversation found with session ID: 1111",), ExitKind.NO_CONVERSATION),
        (None, (), ExitKind.CRASH),
        (0, ("error: unknown option '--nope'",), ExitKind.CLEAN),
        (1, (), ExitKind.CRASH),
    ],
)
def test_kinds_of_end_are_told_apart(code: int | None, lines: tuple[str, ...], expected: ExitKind) -> None:
    assert Claude().read_exit(code, None, lines) is expected


@given(st.integers(1, 64), st.none() | st.just(0))
def test_a_signal_is_a_crash_whatever_the_screen_says(signal: int, code: int | None) -> None:
    assert Claude().read_exit(code, signal, ("No conversation found with session ID: 1",)) is ExitKind.CRASH


@pytest.mark.parametrize(
    ("code", "lines", "expected"),
    [
        (130, ("  Press Ctrl-C again to exit",), ExitKind.CLEAN),
        (0, (), ExitKind.CLEAN),
        (1, ("Error: Session not found: 1111",), ExitKind.NO_CONVERSATION),
        (1, ("Error: Failed to load scenario: Failed to read scenario file",), ExitKind.REFUSED),
        (2, ("error: unexpected argument '--effort' found",), ExitKind.REFUSED),
        (2, ("error: invalid value 'acceptEdits' for '--permission-mode'",), ExitKind.REFUSED),
        (143, ("Terminated",), ExitKind.CRASH),
    ],
)
def test_the_end_of_claudeless_is_told(code: int, lines: tuple[str, ...], expected: ExitKind) -> None:
    assert Claudeless().read_exit(code, None, lines) is expected
