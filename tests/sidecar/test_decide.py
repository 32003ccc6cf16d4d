"""What a sidecar concludes from its sources, and what it asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nbs_fleet.drivers.base import Capabilities, Dialog, HookNews, Option, Reading, StateFile, Turns
from nbs_fleet.model import AgentState, BlockedKind, ErrorKind, Message, Priority, Source
from nbs_fleet.sidecar.actions import (
    SETTLED,
    Action,
    Event,
    Faulted,
    Flickered,
    Heed,
    HookSeen,
    Look,
    Paused,
    Press,
    Pressed,
    ReadTranscript,
    Report,
    ScreenSeen,
    Settled,
    Signalled,
    StateFileSeen,
    Ticked,
    TitleSeen,
    TranscriptSeen,
    WaitingSeen,
)
from nbs_fleet.sidecar.decide import ANSWER_LIMIT, HOOK_SECONDS
from nbs_fleet.sidecar.delivery import HIDDEN, RETRY_SECONDS, Counted, Type, Typed
from nbs_fleet.sidecar.notices import NoticeRules, Notify, Pending, Waiting
from nbs_fleet.sidecar.recovery import Nudge, Rules
from nbs_fleet.sidecar.reporting import SUBMITTED
from nbs_fleet.sidecar.states import TRANSITIONS, allowed
from nbs_fleet.sidecar.weigh import HOOK_LEAD, SUBMIT_SECONDS
from nbs_fleet.spec.team import Recovery
from tests.support.sidecar_run import BUSY, IDLE, TRUST, Run, file


def test_nothing_is_reported_before_anything_was_seen() -> None:
    run = Run()
    assert not [a for a in run.tell(Flickered(), Ticked(poll=True)) if isinstance(a, Report)]


def test_an_idle_client_without_prompt_is_ready_after_one_look() -> None:
    run = Run()
    assert Look() in run.tell(file(IDLE))
    assert run.report.state is AgentState.IDLE
    assert not run.report.ready
    run.tell(ScreenSeen(IDLE))
    assert run.report.ready


def test_a_prompt_must_be_acknowledged_before_ready() -> None:
    run = Run(prompt=True)
    assert ReadTranscript() in run.tell(file(IDLE))
    run.tell(ScreenSeen(IDLE))
    assert not run.report.ready
    run.tell(TranscriptSeen(Turns(prompts=1)))
    assert run.report.ready


def test_a_turn_that_runs_acknowledges_the_prompt() -> None:
    run = Run(prompt=True)
    run.tell(file(BUSY), ScreenSeen(BUSY))
    assert run.report.ready
    assert run.report.state is AgentState.BUSY


def test_a_client_that_takes_its_prompt_by_keys_is_ready_once_it_was_idle() -> None:
    run = Run(can=Capabilities(prompt=False))
    run.tell(ScreenSeen(BUSY))
    assert not run.report.ready
    run.tell(ScreenSeen(IDLE), ScreenSeen(BUSY))
    assert run.report.ready


def test_an_idle_state_file_does_not_hide_that_nobody_is_logged_in() -> None:
    login = Reading(AgentState.BLOCKED, blocked=BlockedKind.LOGIN)
    run = Run()
    run.tell(file(IDLE), ScreenSeen(login))
    assert run.report.state is AgentState.BLOCKED
    assert run.report.blocked is BlockedKind.LOGIN
    assert not run.report.ready


def test_a_state_file_that_is_newer_than_the_screen_wins() -> None:
    run = Run()
    run.tell(ScreenSeen(BUSY), file(IDLE))
    assert run.report.state is AgentState.IDLE


MESSAGE = Message("d-1-x", "ana", "bo", "hello", 0.0)


def typed(run: Run) -> list[Action]:
    """A message is typed into an idle client."""
    run.tell(file(IDLE), ScreenSeen(IDLE), Counted(((MESSAGE, "queue"),)))
    return run.tell(Typed(MESSAGE.id, "sent"))


def test_a_client_that_was_just_given_a_prompt_is_busy_before_it_shows_anything() -> None:
    run = Run()
    typed(run)
    assert (run.report.state, run.report.detail) == (AgentState.BUSY, SUBMITTED)
    run.tell(ScreenSeen(IDLE))
    assert run.report.state is AgentState.BUSY


def test_a_client_that_shows_nothing_of_a_prompt_is_idle_again_in_time() -> None:
    run = Run()
    typed(run)
    assert run.mind.wake_at == pytest.approx(run.now + SUBMIT_SECONDS)
    run.tell(Ticked(), after=SUBMIT_SECONDS)
    assert run.report.state is AgentState.IDLE


def test_it_becomes_idle_in_time_while_paused_too() -> None:
    run = Run()
    typed(run)
    run.tell(Paused(paused=True))
    assert run.mind.wake_at is not None
    run.tell(Ticked(), after=SUBMIT_SECONDS)
    assert run.report.state is AgentState.IDLE


def test_a_turn_shorter_than_the_time_a_client_has_ends_with_its_own_word() -> None:
    run = Run()
    typed(run)
    run.tell(file(BUSY))
    run.tell(StateFileSeen(StateFile(1, 1, "s", IDLE, at=run.now + 0.1)))
    assert run.report.state is AgentState.IDLE


def test_text_that_shows_after_it_was_given_up_is_submitted_though_it_looks_like_a_turn() -> None:
    bare = Capabilities(hooks=True, paste=False)
    run = Run(can=bare)
    run.tell(ScreenSeen(IDLE), Counted(((MESSAGE, "queue"),)), Typed(MESSAGE.id, HIDDEN, pasted=True))
    frozen = ScreenSeen(Reading(AgentState.UNKNOWN, draft=f"[nbs:{MESSAGE.id}] message from bo: / hello"))
    run.tell(frozen, after=1.0)
    assert [a.id for a in run.tell(Ticked(), after=RETRY_SECONDS) if isinstance(a, Type)] == [MESSAGE.id]
    # Once Enter was pressed it may be a turn.
    run.tell(Typed(MESSAGE.id, "sent"), frozen)
    assert not [a for a in run.tell(Ticked(), after=RETRY_SECONDS) if isinstance(a, Type)]


def test_a_frozen_screen_with_the_text_of_another_is_left_alone() -> None:
    run = Run(can=Capabilities(hooks=True, paste=False))
    run.tell(ScreenSeen(IDLE), Counted(((MESSAGE, "queue"),)), Typed(MESSAGE.id, HIDDEN, pasted=True))
    run.tell(ScreenSeen(Reading(AgentState.UNKNOWN, draft="a person's words")), after=1.0)
    assert not [a for a in run.tell(Ticked(), after=RETRY_SECONDS) if isinstance(a, Type)]


def test_what_was_signalled_is_over_when_the_turn_begins_not_when_it_is_asked_for() -> None:
    run = Run()
    run.tell(file(IDLE), ScreenSeen(IDLE), Signalled("complete"))
    typed(run)
    assert run.report.signal == "complete"
    run.tell(file(BUSY))
    assert run.report.signal is None


def test_nobody_is_noticed_between_a_prompt_and_the_first_sign_of_it() -> None:
    rules = NoticeRules(startup_grace=0.0, cooldown=0.0)
    run = Run()
    run.mind = replace(run.mind, watching=replace(run.mind.watching, notices=rules))
    run.tell(file(IDLE), ScreenSeen(IDLE))
    news = HookNews("UserPromptSubmit", BUSY, prompt="a person's")
    seen = run.tell(HookSeen(news, run.now), WaitingSeen(Waiting(pending=Pending((("task", 1),), names=("e",)))))
    assert not [action for action in seen if isinstance(action, Notify)]
    # Nothing came of it.
    late = run.tell(Ticked(), Ticked(), after=HOOK_LEAD)
    assert [action for action in late if isinstance(action, Notify)]


def test_the_screen_says_which_dialog_the_state_file_means() -> None:
    waiting = Reading(AgentState.BLOCKED, blocked=BlockedKind.PERMISSION)
    plan = Reading(AgentState.BLOCKED, blocked=BlockedKind.PLAN)
    run = Run()
    run.tell(file(waiting))
    assert run.report.blocked == "permission"
    run.tell(ScreenSeen(plan))
    assert run.report.blocked == "plan"


def test_a_startup_dialog_is_seen_before_there_is_a_state_file() -> None:
    run = Run()
    run.tell(Ticked(poll=True), ScreenSeen(TRUST))
    assert run.report.state is AgentState.BLOCKED
    assert run.report.blocked is BlockedKind.TRUST


def test_a_dialog_without_a_policy_gets_no_key() -> None:
    run = Run()
    assert not [a for a in run.tell(ScreenSeen(TRUST)) if isinstance(a, Press)]


def test_a_dialog_with_a_policy_gets_its_keys_once_and_not_again_at_once() -> None:
    run = Run()
    assert run.tell(ScreenSeen(TRUST, ("1",))) == [Press(("1",), "trust?"), Heed(on=True)]
    assert not [a for a in run.tell(ScreenSeen(TRUST, ("1",))) if isinstance(a, Press)]
    run.tell(Pressed(ok=True))
    assert not [a for a in run.tell(ScreenSeen(TRUST, ("1",))) if isinstance(a, Press)]
    assert [a for a in run.tell(ScreenSeen(TRUST, ("1",)), after=5.0) if isinstance(a, Press)]


def test_a_dialog_that_shows_our_key_behind_it_is_the_one_that_was_answered() -> None:
    run = Run()
    run.tell(ScreenSeen(TRUST, ("1",)), Pressed(ok=True))
    assert TRUST.dialog is not None
    echo = replace(TRUST, dialog=replace(TRUST.dialog, text="trust? 1"))
    assert not [a for a in run.tell(ScreenSeen(echo, ("1",))) if isinstance(a, Press)]
    assert run.report.state == "starting"
    # It stays: its client did not take the key.
    assert [a for a in run.tell(ScreenSeen(echo, ("1",)), after=5.0) if isinstance(a, Press)]


def test_nobody_is_called_to_a_dialog_that_is_being_answered_unless_it_stays() -> None:
    run = Run()
    run.tell(ScreenSeen(TRUST, ("1",)), Pressed(ok=True), ScreenSeen(TRUST, ("1",)))
    assert run.report.state == "starting"
    assert run.mind.wake_at is not None
    run.now = run.mind.wake_at
    assert Look() in run.tell(Ticked(), after=0.0)
    run.tell(ScreenSeen(TRUST))
    assert run.report.state == "blocked"


PLAN = Reading(
    AgentState.BLOCKED,
    blocked=BlockedKind.PLAN,
    dialog=Dialog(BlockedKind.PLAN, "proceed?", (Option("Yes, and bypass permissions", "1"),), 0),
)
HOOKS = Capabilities(state_file=True, title=True, permission_hook=True)


def test_a_dialog_that_a_hook_answers_gets_no_key_and_calls_nobody() -> None:
    run = Run(can=HOOKS)
    run.tell(ScreenSeen(IDLE), ScreenSeen(PLAN, ("1",)), ScreenSeen(PLAN, ("1",)), ScreenSeen(IDLE))
    assert not [a for a in run.actions if isinstance(a, Press)]
    assert run.report.state == "idle"


def test_a_hook_that_does_not_answer_leaves_the_dialog_to_the_keys() -> None:
    run = Run(can=HOOKS)
    run.tell(ScreenSeen(PLAN, ("1",)))
    assert run.mind.wake_at == run.now + HOOK_SECONDS
    run.now = run.mind.wake_at
    assert Look() in run.tell(Ticked(), after=0.0)
    assert Press(("1",), "proceed?") in run.tell(ScreenSeen(PLAN, ("1",)))


def test_the_time_a_hook_has_begins_anew_with_the_next_dialog_of_the_same_words() -> None:
    run = Run(can=HOOKS)
    answered = HookNews("PermissionRequest", Reading(AgentState.BUSY), answer="allow")
    run.tell(ScreenSeen(PLAN, ("1",)))
    run.tell(HookSeen(answered, 1.0), after=HOOK_SECONDS - 1)
    run.tell(ScreenSeen(PLAN, ("1",)), after=2.0)
    assert not [a for a in run.actions if isinstance(a, Press)]


def test_a_dialog_that_does_not_go_away_is_left_to_a_person() -> None:
    run = Run()
    for _ in range(10):
        run.tell(ScreenSeen(TRUST, ("1",)), Pressed(ok=True), after=5.0)
    assert len([a for a in run.actions if isinstance(a, Press)]) == ANSWER_LIMIT


def test_a_removed_state_file_leaves_the_screen_to_speak() -> None:
    run = Run()
    run.tell(file(IDLE), ScreenSeen(IDLE), StateFileSeen(None))
    assert run.report.evidence[0].source is Source.SCREEN


def test_without_a_state_file_the_title_says_busy() -> None:
    run = Run(can=Capabilities(title=True))
    run.tell(ScreenSeen(IDLE), TitleSeen("x", BUSY))
    assert run.report.state is AgentState.BUSY
    assert run.report.evidence[0].source is Source.TITLE


def test_a_silent_screen_is_unknown_once_ready_and_starting_before() -> None:
    silent = Reading(AgentState.UNKNOWN)
    run = Run(can=Capabilities())
    run.tell(ScreenSeen(silent))
    assert run.report.state == "starting"
    run.tell(ScreenSeen(IDLE), ScreenSeen(silent))
    assert run.report.state == "unknown"
    # Once it was ready it does not start again, whatever came in between.
    run.tell(ScreenSeen(IDLE), ScreenSeen(Reading(AgentState.BLOCKED, blocked=BlockedKind.LOGIN)), ScreenSeen(silent))
    assert run.report.state == "unknown"


READINGS = st.sampled_from(
    [IDLE, BUSY, TRUST, Reading(AgentState.UNKNOWN), Reading(AgentState.BLOCKED, blocked=BlockedKind.LOGIN)]
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(ScreenSeen, READINGS, st.sampled_from([None, ("1",)])),
    st.builds(file, READINGS),
    st.just(StateFileSeen(None)),
    st.builds(TitleSeen, st.just("t"), READINGS),
    st.builds(lambda n: TranscriptSeen(Turns(prompts=n)), st.integers(0, 2)),
    st.just(Flickered()),
    st.builds(Pressed, ok=st.booleans()),
    st.just(Faulted("x")),
    st.just(Ticked(poll=True)),
)


@given(st.lists(st.tuples(EVENTS, st.floats(0, 20)), max_size=40), st.booleans())
def test_over_any_history_keys_are_bounded_and_answer_only_what_was_read(
    history: list[tuple[Event, float]], prompt: bool
) -> None:
    run = Run(prompt=prompt)
    state = AgentState.STARTING
    for event, gap in history:
        for action in run.tell(event, after=gap):
            if isinstance(action, Press):
                assert isinstance(event, ScreenSeen)
                assert event.answer == action.keys
                assert event.reading.dialog is not None
                assert event.reading.dialog.text == action.dialog
            if isinstance(action, Report):
                assert allowed(state, action.state), (state, action.state)
                state = action.state
    assert len([a for a in run.actions if isinstance(a, Press)]) <= ANSWER_LIMIT


def test_the_table_of_transitions_leads_out_of_every_state() -> None:
    for state in AgentState:
        ways = [after for after in AgentState if after is not state and allowed(state, after)]
        assert ways, f"{state} is a dead end"
    assert len(set(TRANSITIONS)) == len(TRANSITIONS)


def test_no_second_notice_is_made_before_the_first_is_among_the_agents_messages() -> None:
    run = Run()
    run.mind = replace(run.mind, watching=replace(run.mind.watching, notices=NoticeRules(startup_grace=0.0)))
    run.tell(file(IDLE), ScreenSeen(IDLE))
    first, second = (Waiting(pending=Pending((("x", 1),), Priority.CRITICAL, (n,), (n,))) for n in ("e1", "e2"))
    run.tell(WaitingSeen(first), Ticked())
    assert len([a for a in run.actions if isinstance(a, Notify)]) == 1
    run.tell(WaitingSeen(second), Ticked())
    assert len([a for a in run.actions if isinstance(a, Notify)]) == 1
    run.tell(Counted(()), Ticked())
    assert len([a for a in run.actions if isinstance(a, Notify)]) == 2


def test_what_a_person_settled_is_over_and_comes_back_only_with_a_new_failure() -> None:
    failed = HookNews("StopFailure", IDLE, error=ErrorKind.AUTHENTICATION)
    run = Run()
    run.tell(file(IDLE), ScreenSeen(IDLE), HookSeen(failed, at=100.0))
    assert run.report.blocked is BlockedKind.LOGIN
    run.tell(Settled(), Ticked(poll=True))
    assert run.report.state is AgentState.IDLE
    assert run.report.failure is None
    run.tell(HookSeen(failed, at=run.now))
    assert run.report.blocked is BlockedKind.LOGIN


def test_a_signal_that_a_person_dismissed_is_over() -> None:
    run = Run()
    run.tell(file(IDLE), ScreenSeen(IDLE), Signalled("escalate", "which schema?"))
    assert run.report.signal == "escalate"
    run.tell(Settled())
    report = run.report
    assert not report.signal
    assert not report.signal_text


@pytest.mark.parametrize("first", [0, 1])
def test_an_agent_whose_silence_a_person_settled_is_not_asked_again_until_its_next_turn(first: int) -> None:
    run = Run(rules=Rules(on_idle=Recovery("nudge"), must_signal=True, grace=60.0))
    run.tell(file(IDLE), ScreenSeen(IDLE))
    words = [Signalled(SETTLED), Settled()]
    run.tell(*(words if first else reversed(words)))
    run.wait(3_600.0)
    assert not [a for a in run.actions if isinstance(a, Nudge)]
    run.tell(file(BUSY), file(IDLE), Signalled(None))
    run.wait(61.0)
    assert [a for a in run.actions if isinstance(a, Nudge)]
