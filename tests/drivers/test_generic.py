"""The generic driver: a start and a screen as the team file describes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers.base import PROMPT, Dialog, Driver, Option, Reading, Screen
from nbs_fleet.drivers.generic import Generic
from nbs_fleet.launch import registry
from nbs_fleet.model import AgentState, BlockedKind
from nbs_fleet.spec.team import Agent, Client, Dialogs
from nbs_fleet.testing.driver_suite import DriverSuite
from tests.drivers.support import make_facts

WORDY = Client(
    ready="^> ",
    busy=r"^Thinking",
    blocked={"permission": r"\[y/N\]", "question": r"^\? "},
    yes_keys=("y", "Enter"),
    no_keys=("n", "Enter"),
    placeholder="^Type a message",
    prompt_args=("--prompt",),
    model_args=("-m",),
    auto_approve=("--yes",),
    submit_gap=0.1,
)


def read(*rows: str, client: Client = WORDY, width: int = 40) -> Reading:
    """What these rows say."""
    return Generic(client).read_screen(Screen(rows, width, 24))


class TestDescribed(DriverSuite):
    @pytest.fixture
    def driver(self) -> Driver:
        return Described()


class Described(Generic):
    """As a team file describes it, made without arguments like any driver."""

    def __init__(self) -> None:
        super().__init__(WORDY)


def test_an_agents_driver_is_fitted_to_what_the_team_file_says_of_its_client() -> None:
    agent = Agent(handle="ana", base="ana", role=None, driver="generic", dir="/srv", client=WORDY)
    driver = registry.of(agent)
    assert isinstance(driver, Generic)
    assert driver.client == WORDY
    assert driver.submit.gap == pytest.approx(0.1)
    assert registry.get("generic").capabilities.prompt is False


def test_a_start_has_the_words_of_the_team_file_in_a_fixed_order() -> None:
    facts = make_facts(
        driver="generic",
        command=("my-client", "chat"),
        args=("--quiet",),
        model="big",
        permission_mode="bypassPermissions",
        has_prompt=True,
    )
    launch = Generic(WORDY).launch(facts)
    assert launch.argv == ("my-client", "chat", "-m", "big", "--yes", "--quiet", "--prompt", PROMPT)
    assert launch.dropped == ()


def test_a_client_without_a_flag_for_it_is_never_started_as_if_it_asked_for_nothing() -> None:
    launch = Generic(Client(ready="^> ")).launch(make_facts(permission_mode="bypassPermissions"))
    assert launch.dropped == ("permission_mode bypassPermissions",)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((">",), AgentState.IDLE),
        (("hello", ">", "", ""), AgentState.IDLE),
        (("> Type a message",), AgentState.IDLE),
        (("> half a sentence",), AgentState.BLOCKED),
        (("Thinking about it",), AgentState.BUSY),
        (("> hello", "some words"), AgentState.UNKNOWN),
        (("Run it? [y/N]",), AgentState.BLOCKED),
        (("Run it? [y/N]", "> "), AgentState.IDLE),
        ((), AgentState.UNKNOWN),
    ],
)
def test_the_last_row_decides(rows: tuple[str, ...], expected: AgentState) -> None:
    assert read(*rows).state is expected


def test_text_in_the_input_is_a_draft_however_many_rows_it_fills() -> None:
    text = "[nbs:d-1] message from bo: " + "x" * 90
    shown = "> " + text
    rows = [shown[n : n + 40] for n in range(0, len(shown), 40)]
    reading = read("an answer", *rows)
    assert (reading.blocked, reading.draft) == (BlockedKind.DRAFT, text)


def test_rows_that_do_not_fill_the_pane_belong_to_no_input() -> None:
    assert read("> said before", "an answer").state is AgentState.UNKNOWN


def test_more_rows_are_looked_at_where_the_input_is_not_the_last() -> None:
    boxed = Client(ready=r"^│ > ", busy="esc to stop", rows=4)
    box = ("│ >                  │", "╰────╯", "  some footer")
    assert read(*box, client=boxed).state is AgentState.IDLE
    assert read("⠋ esc to stop", *box, client=boxed).state is AgentState.BUSY
    assert read("│ > my words         │", *box[1:], client=boxed).draft == "my words"
    assert read(*box, "a", "b", "c", client=boxed).state is AgentState.UNKNOWN


def test_what_fits_no_pattern_is_work_only_where_the_team_file_says_so() -> None:
    assert read("words", client=Client(ready="^> ", otherwise="busy")).state is AgentState.BUSY
    assert read("words", client=Client(ready="^> ")).state is AgentState.UNKNOWN


@pytest.mark.parametrize(
    ("policy", "keys"),
    [
        (Dialogs(permission="approve"), ("y", "Enter")),
        (Dialogs(permission="deny"), ("n", "Enter")),
        (Dialogs(), None),
    ],
)
def test_a_question_of_a_kind_is_answered_by_the_keys_of_the_team_file(
    policy: Dialogs, keys: tuple[str, ...] | None
) -> None:
    dialog = read("Run it? [y/N]").dialog
    assert dialog is not None
    assert dialog.kind is BlockedKind.PERMISSION
    assert Generic(WORDY).answer(dialog, policy) == keys
    assert [option.label for option in dialog.options] == ["Yes", "No"]
    assert [Generic(WORDY).pick(dialog, n) for n in (0, 1)] == [("y", "Enter"), ("n", "Enter")]


def test_without_keys_a_person_must_answer() -> None:
    bare = Generic(Client(ready="^> ", blocked={"permission": r"\[y/N\]"}))
    dialog = bare.read_screen(Screen(("Run it? [y/N]",), 40, 24)).dialog
    assert dialog is not None
    assert dialog.options == ()
    assert bare.answer(dialog, Dialogs(permission="approve")) is None


def test_an_agents_question_to_a_person_is_never_answered_by_policy() -> None:
    dialog = Dialog(BlockedKind.QUESTION, "? which", (Option("Yes"), Option("No")))
    assert Generic(WORDY).answer(dialog, Dialogs(question="approve")) is None


@given(st.lists(st.text(alphabet=st.characters(blacklist_characters="\n"), max_size=50), max_size=30))
def test_any_screen_has_a_reading(rows: list[str]) -> None:
    reading = read(*rows)
    assert (reading.state is AgentState.BLOCKED) == (reading.blocked is not None)


@given(
    st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=300), st.integers(20, 80)
)
def test_a_text_without_blanks_is_read_back_whole_from_any_width(text: str, width: int) -> None:
    shown = "> " + text
    rows = tuple(shown[n : n + width] for n in range(0, len(shown), width))
    assert (read(*rows, client=Client(ready="^> "), width=width).draft or "") == text.rstrip("│┃|║▌▐")
