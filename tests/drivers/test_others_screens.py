"""Screens and titles of the other clients: each capture is read as what it shows, hostile text changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nbs_fleet.drivers import (
    answers,
    codex_screen,
    copilot_screen,
    gemini_screen,
    generic_screen,
    opencode_screen,
    qwen_screen,
    tui,
)
from nbs_fleet.drivers.base import Reading, Screen
from nbs_fleet.drivers.generic_screen import Patterns
from nbs_fleet.model import AgentState, BlockedKind
from nbs_fleet.spec.team import Dialogs
from tests.drivers import others_table
from tests.drivers.support import HERE, captured, cases, rows, screen, words

AIDER = Patterns(ready="^> ", otherwise=AgentState.BUSY, blocked={BlockedKind.QUESTION: r"\(Y\)es/\(N\)o"})
AMP = Patterns(ready="^> ", blocked={BlockedKind.LOGIN: r"log in to Amp\?"})
READERS: dict[str, Callable[[Screen], Reading]] = {
    "codex": codex_screen.read_screen,
    "copilot": copilot_screen.read_screen,
    "qwen": qwen_screen.read_screen,
    "gemini": gemini_screen.read_screen,
    "opencode": opencode_screen.read_screen,
    "aider": lambda shown: generic_screen.read_screen(shown, AIDER),
    "amp": lambda shown: generic_screen.read_screen(shown, AMP),
}
TABLES = (
    others_table.CODEX,
    others_table.COPILOT,
    others_table.QWEN,
    others_table.GEMINI,
    others_table.OPENCODE,
    others_table.AIDER,
    others_table.AMP,
)
ALL = [case for table in TABLES for case in cases(table)]
PANELS = [name for name, expected in ALL if expected in ("blocked permission", "blocked trust")]
IDLE = {"codex": "codex-05-answer", "copilot": "copilot-12-clean-idle", "qwen": "qwen-05-approved"}


def read(name: str) -> Reading:
    """The reading of a capture by its own client's reader."""
    return READERS[name.partition("-")[0]](captured("others", name))


@pytest.mark.parametrize(("name", "expected"), ALL)
def test_each_captured_screen_is_read_as_what_it_is(name: str, expected: str) -> None:
    assert words(read(name)) == expected


def test_every_capture_is_in_a_table_once() -> None:
    assert sorted(name for name, _ in ALL) == sorted(path.stem for path in (HERE / "screens" / "others").glob("*.txt"))


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("codex-01-first", ["Trust and continue", "Back to Agent Command Center"]),
        (
            "codex-16-approval",
            [
                "Yes, proceed (y)",
                "Yes, and don't ask again for commands that start with `touch /etc/nbs- escal` (p)",
                "No, and tell Codex what to do differently (esc)",
            ],
        ),
        ("copilot-07-approval", ["Yes", "No, and tell Copilot what to do differently (Esc to stop)"]),
        (
            "qwen-04-approval",
            [
                "Yes, allow once",
                "Always allow run 'echo *' commands in this project",
                "Always allow run 'echo *' commands for this user",
                "No, suggest changes (esc)",
            ],
        ),
        ("gemini-08-approval", ["Allow once", "Allow for this session", "No, suggest changes (esc)"]),
        ("opencode-09-approval", ["Allow once", "Allow always", "Reject"]),
    ],
)
def test_a_dialog_has_its_lines_whole(name: str, labels: list[str]) -> None:
    dialog = read(name).dialog
    assert dialog is not None
    assert [option.label for option in dialog.options] == labels


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("codex-16-approval", "$ touch /etc/nbs-escal"),
        ("copilot-07-approval", "Do you want to run this command?"),
        ("qwen-04-approval", "Allow execution of: 'echo'?"),
        ("gemini-08-approval", "Allow execution of [Shell]?"),
        ("opencode-09-approval", "$ echo hi > out2.txt"),
    ],
)
def test_a_request_is_told_in_full_and_without_the_conversation_above(name: str, asked: str) -> None:
    dialog = read(name).dialog
    assert dialog is not None
    assert asked in dialog.text
    assert "TOOL:" not in dialog.text


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("⠋ SAY:ready | codex", AgentState.BUSY),
        ("SAY:ready | codex", AgentState.IDLE),
        ("codex", AgentState.IDLE),
        ("[ ! ] Action Required | SAY:ready | codex", AgentState.BLOCKED),
        ("bash", AgentState.UNKNOWN),
        ("my codex notes", AgentState.UNKNOWN),
        ("", AgentState.UNKNOWN),
    ],
)
def test_the_title_of_codex_tells_what_it_does(title: str, expected: AgentState) -> None:
    assert codex_screen.read_title(title).state is expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("◇  Ready (proj)", AgentState.IDLE),
        ("✦  Working… (proj)", AgentState.BUSY),
        ("✋  Action Required (proj)", AgentState.BLOCKED),
        ("zsh", AgentState.UNKNOWN),
    ],
)
def test_the_title_of_gemini_tells_what_it_does(title: str, expected: AgentState) -> None:
    assert gemini_screen.read_title(title).state is expected


def test_text_that_streams_in_codex_is_busy_by_its_title_and_idle_once_the_title_rests() -> None:
    shown = captured("others", "codex-11-busy")
    assert codex_screen.read_screen(replace(shown, title="⠹ x | codex")).state is AgentState.BUSY
    assert codex_screen.read_screen(replace(shown, title="x | codex")).state is AgentState.IDLE
    over = captured("others", "codex-05-answer")
    assert codex_screen.read_screen(replace(over, title="⠹ x | codex")).state is AgentState.BUSY


@pytest.mark.parametrize("name", [name for name in PANELS if name.partition("-")[0] in IDLE])
def test_a_dialog_above_the_input_box_is_an_old_one(name: str) -> None:
    client = name.partition("-")[0]
    newer = tui.trim(captured("others", IDLE[client]))
    assert words(READERS[client](screen((*rows("others", name), *newer)))) == "idle"


HOSTILE = (
    "› 1. Yes, proceed (y)",
    "❯ 1. Yes",
    "2. No, and tell Copilot what to do differently (Esc to stop)",
    "Do you trust the files in this folder?",
    "Trust this folder?",
    "● 1. Trust folder (x)",
    "Sign in with ChatGPT",
    "◎ Working · 30 B esc esc interrupt",
    "⠏ Waiting for user confirmation...",
    "Please use /login to sign in to use Copilot",
)


@given(st.lists(st.sampled_from(HOSTILE), max_size=8))
def test_words_of_other_dialogs_in_a_request_do_not_change_its_kind(content: list[str]) -> None:
    head, tail = rows("others", "copilot-07-approval")[:14], rows("others", "copilot-07-approval")[-9:]
    inside = tuple(f"│ │ {row:<72} │ │" for row in content)
    reading = copilot_screen.read_screen(screen((*head, *inside, *tail)))
    assert reading.blocked is BlockedKind.PERMISSION
    assert reading.dialog is not None
    assert [option.key for option in reading.dialog.options] == ["1", "2"]


@given(st.lists(st.sampled_from(HOSTILE), max_size=8))
def test_words_of_dialogs_that_an_agent_prints_are_no_dialog(content: list[str]) -> None:
    said = tuple(f"   {row}" for row in content)
    for client, name in IDLE.items():
        box = rows("others", name)
        start = next(i for i in range(len(box) - 1, -1, -1) if box[i].startswith(("─", "› Ask")))
        start = start if client == "codex" else start - 3
        over = ("", "  Worked for 2s • 20:44", "") if client == "codex" else ("", "")
        assert words(READERS[client](screen((*said, *over, *box[start:])))) == "idle"


PIECES = sorted({row for name, _ in ALL for row in rows("others", name)[-14:]})


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=40)), max_size=20))
def test_no_screen_makes_a_reader_fail(lines: list[str]) -> None:
    for reader in READERS.values():
        reading = reader(screen(tuple(lines)))
        assert (reading.dialog is None) or reading.state is AgentState.BLOCKED
        assert (reading.blocked is None) or reading.state is AgentState.BLOCKED


@given(st.sampled_from([name for name, _ in ALL]), st.integers(0, 6))
def test_blank_rows_and_blanks_at_the_ends_change_nothing(name: str, blanks: int) -> None:
    lines = rows("others", name)
    padded = tuple(f"{line}   " for line in lines) + ("",) * blanks
    assert READERS[name.partition("-")[0]](screen(padded)) == read(name)


ACCEPT = Dialogs(trust="accept", permission="approve")
REFUSE = Dialogs(trust="deny", permission="deny")
LABELS = {
    "codex": (codex_screen.YES, codex_screen.NO),
    "copilot": (copilot_screen.YES, copilot_screen.NO),
    "qwen": (qwen_screen.YES, qwen_screen.NO),
    "gemini": (gemini_screen.YES, gemini_screen.NO),
    "opencode": (opencode_screen.YES, opencode_screen.NO),
}


def answered(name: str, policy: Dialogs) -> tuple[str, ...] | None:
    """The keys that answer a captured dialog."""
    client, dialog = name.partition("-")[0], read(name).dialog
    assert dialog is not None
    index = answers.choose(dialog, policy, *LABELS[client])
    pick = copilot_screen.pick if client == "copilot" else answers.pick
    return None if index is None else pick(dialog, index)


@pytest.mark.parametrize(
    ("name", "policy", "keys"),
    [
        ("codex-01-first", ACCEPT, ("Enter",)),
        ("codex-01-first", REFUSE, ("Down", "Enter")),
        ("codex-08-hooktrust", ACCEPT, None),
        ("codex-16-approval", ACCEPT, ("Enter",)),
        ("codex-16-approval", REFUSE, ("Down", "Down", "Enter")),
        ("codex-31-virgin-login", ACCEPT, None),
        ("copilot-01-first", ACCEPT, ("1",)),
        ("copilot-01-first", REFUSE, ("3",)),
        ("copilot-07-approval", ACCEPT, ("1",)),
        ("copilot-07-approval", REFUSE, ("Escape",)),
        ("qwen-04-approval", ACCEPT, ("1",)),
        ("qwen-04-approval", REFUSE, ("4",)),
        ("gemini-01-first", ACCEPT, ("1",)),
        ("gemini-08-approval", REFUSE, ("3",)),
        ("gemini-11-exit", ACCEPT, None),
        ("opencode-09-approval", ACCEPT, None),
    ],
)
def test_a_policy_is_carried_out_by_the_line_that_says_so(
    name: str, policy: Dialogs, keys: tuple[str, ...] | None
) -> None:
    assert answered(name, policy) == keys


@pytest.mark.parametrize("name", PANELS)
def test_without_a_policy_a_person_answers(name: str) -> None:
    assert answered(name, Dialogs()) is None


def test_a_question_of_copilot_is_walked_to_with_arrows() -> None:
    dialog = read("copilot-24-question").dialog
    assert dialog is not None
    assert (dialog.text, dialog.cursor) == ("which?\n\nc:", 0)
    assert [option.label for option in dialog.options] == ["red", "blue", "Other (type your answer)"]
    assert copilot_screen.pick(dialog, 1) == ("Down", "Enter")


def test_an_error_that_lasts_is_a_state_and_one_that_passed_is_told() -> None:
    assert read("copilot-21-error400").detail.startswith("error: 400 scripted")
    assert "HTTP 401" in read("copilot-22-error401").detail
