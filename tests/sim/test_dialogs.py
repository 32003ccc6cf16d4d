"""Keys in dialogs do what they do in the real client."""

from __future__ import annotations

from nbs_fleet.sim import asking, dialogs
from nbs_fleet.sim.dialogs import FREE, Answer, Dialog
from nbs_fleet.sim.keys import Key

ENTER, ESC, DOWN, UP = Key("enter"), Key("esc"), Key("down"), Key("up")
BASH = {"command": "touch x"}


def press(dialog: Dialog, *keys: Key) -> Answer | None:
    answer = None
    for key in keys:
        answer = dialog.key(key)
    return answer


def digit(text: str) -> Key:
    return Key("text", text)


def test_a_digit_chooses_at_once_and_enter_takes_the_highlighted_line() -> None:
    assert press(dialogs.trust("/x"), digit("1")) == Answer("yes")
    assert press(dialogs.trust("/x"), ENTER) == Answer("yes")
    assert press(dialogs.trust("/x"), DOWN, ENTER) == Answer("exit")
    assert press(dialogs.trust("/x"), ESC) == Answer(None)


def test_the_bypass_warning_exits_by_default() -> None:
    assert press(dialogs.bypass(), ENTER) == Answer("exit")
    assert press(dialogs.bypass(), digit("2")) == Answer("yes")


def test_the_api_key_is_refused_by_default() -> None:
    assert press(dialogs.api_key("k"), ENTER) == Answer("no")


def test_text_into_an_open_dialog_is_swallowed_and_its_enter_accepts() -> None:
    dialog = asking.permission("Bash", BASH, "/p", [])
    assert press(dialog, Key("paste", "please 3 do something"), Key("text", "hello")) is None
    assert press(dialog, ENTER) == Answer("yes")


def test_digits_beyond_the_options_do_nothing() -> None:
    assert press(asking.permission("Bash", BASH, "/p", []), digit("4")) is None


def test_the_plan_s_first_option_goes_beyond_yes_and_the_second_asks_for_each_edit() -> None:
    dialog = asking.plan("# P", "/h/p.md", "and bypass permissions", "/h")
    assert [option.label for option in dialog.options] == [
        "Yes, and bypass permissions",
        "Yes, manually approve edits",
        "Tell Claude what to change",
    ]
    assert press(dialog, digit("2")) == Answer("manual")


def test_feedback_on_a_plan_is_typed_into_its_third_option() -> None:
    dialog = asking.plan("# P", "/h/p.md", "x", "/h")
    assert press(dialog, digit("3"), ENTER) is None
    assert press(dialog, Key("text", "more tests 1"), Key("backspace"), Key("backspace"), ENTER) == Answer(
        FREE, "more tests"
    )


def test_an_empty_plan_has_another_dialog() -> None:
    dialog = asking.plan("", "/h/p.md", "x", "/h")
    assert dialog.lines(80)[1] == " Exit plan mode?"
    assert press(dialog, digit("2")) == Answer("no")


ONE = {"question": "Which?", "header": "Pick", "options": [{"label": "A", "description": "a"}, {"label": "B"}]}
MANY = {"question": "Who?", "header": "Who", "multiSelect": True, "options": [{"label": "X"}, {"label": "Y"}]}


def test_one_question_is_answered_by_one_digit() -> None:
    dialog = asking.Questions([ONE])
    assert press(dialog, digit("2")) == Answer("submit")
    assert dialog.result() == {"Which?": "B"}


def test_an_own_answer_is_typed_and_talk_ends_the_question() -> None:
    dialog = asking.Questions([ONE])
    assert press(dialog, digit("3"), Key("text", "mine"), ENTER) == Answer("submit")
    assert dialog.result() == {"Which?": "mine"}
    assert press(asking.Questions([ONE]), digit("4")) == Answer(asking.CHAT)


def test_several_questions_end_in_a_review() -> None:
    dialog = asking.Questions([ONE, MANY])
    assert press(dialog, digit("1"), digit("1"), digit("2"), digit("1")) is None
    assert dialog.result() == {"Which?": "A", "Who?": "Y"}
    assert press(dialog, Key("tab")) is None
    assert "Ready to submit your answers?" in dialog.lines(80)
    assert press(dialog, Key("left"), Key("right"), ENTER) == Answer("submit")


def test_a_review_can_be_cancelled() -> None:
    dialog = asking.Questions([ONE, MANY])
    assert press(dialog, Key("right"), Key("right"), digit("2")) == Answer(None)


def test_the_security_notes_wait_for_enter_only() -> None:
    assert press(dialogs.security(), ESC) is None
    assert press(dialogs.security(), ENTER) == Answer("yes")
