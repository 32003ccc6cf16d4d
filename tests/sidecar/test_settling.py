"""What a screen shows and does not mean: it is behind the hooks for a while, and shows what we type ourselves."""

from __future__ import annotations

from nbs_fleet.drivers.base import Capabilities, HookNews, Reading
from nbs_fleet.model import AgentState, BlockedKind, Message, Source
from nbs_fleet.sidecar.actions import HookSeen, Look, ScreenSeen, Ticked
from nbs_fleet.sidecar.delivery import LIMBO_SECONDS, UNUSED, Counted
from nbs_fleet.sidecar.mind import Mind, Watching
from nbs_fleet.sidecar.parcels import Means, Parcel, Post, Proved
from nbs_fleet.sidecar.weigh import HOOK_LEAD, PROMPT_SECONDS, SCREEN_LAG, SUBMIT_SECONDS, WHOLE_LAG, weigh
from tests.support.sidecar_run import BUSY, IDLE, TRUST, Run


def hooked(event: str, reading: Reading, at: float) -> HookSeen:
    return HookSeen(HookNews(event, reading), at, ())


def test_a_screen_that_is_behind_a_turns_end_makes_nobody_busy_again() -> None:
    run = Run(can=Capabilities(hooks=True, turn_hooks=True))
    run.tell(ScreenSeen(IDLE), ScreenSeen(BUSY))
    run.tell(hooked("Stop", IDLE, run.now), ScreenSeen(BUSY))
    assert run.report.state is AgentState.IDLE
    assert run.report.evidence[0].source is Source.HOOK


def test_a_screen_that_stays_as_it_is_has_its_say_once_it_must_have_caught_up() -> None:
    run = Run(can=Capabilities(hooks=True, turn_hooks=True))
    run.tell(ScreenSeen(IDLE), hooked("UserPromptSubmit", BUSY, run.now), ScreenSeen(IDLE))
    assert run.report.state == "busy"
    due = run.mind.wake_at
    assert due is not None
    assert run.tell(Ticked(), after=due - run.now) == [Look()]
    run.tell(ScreenSeen(IDLE))
    assert run.report.state == "idle"
    assert run.tell(Ticked()) == []


def test_a_dialog_on_the_screen_counts_at_once_whatever_a_hook_said() -> None:
    run = Run(can=Capabilities(hooks=True, turn_hooks=True))
    run.tell(ScreenSeen(IDLE), hooked("UserPromptSubmit", BUSY, run.now), ScreenSeen(TRUST))
    assert run.report.state is AgentState.BLOCKED


def test_a_client_whose_hooks_do_not_tell_of_turns_is_seen_on_its_screen() -> None:
    run = Run(can=Capabilities(hooks=True))
    run.tell(ScreenSeen(IDLE), hooked("Stop", IDLE, run.now), ScreenSeen(BUSY))
    assert run.report.state is AgentState.BUSY


OURS = Message("d-1-x", "ana", "bo", "hello", 0.0)


def seen(text: str, *, typing: bool = False, typed: bool = False) -> AgentState:
    """What is said of a client with this text in its box while a message of ours is on its way."""
    draft = Reading(AgentState.BLOCKED, blocked=BlockedKind.DRAFT, draft=text)
    post = Post(Means(mail=False, stop_hook=True, keys_only=False), (Parcel(OURS, typing=typing, typed=typed),))
    mind = Mind(Watching(Capabilities(hooks=True), expects_prompt=False), screen=draft, screen_at=10.0, post=post)
    return weigh(mind)[0].state


def test_a_message_that_is_being_typed_is_nobodys_draft() -> None:
    assert seen("[nbs:d-1-x] message from ana:\nhello", typing=True) is AgentState.IDLE
    assert seen("[nbs:d-1-x] message from ana:\nhello", typed=True) is AgentState.IDLE


def test_any_other_text_in_the_box_is_a_persons() -> None:
    assert seen("half typed", typing=True) is AgentState.BLOCKED
    assert seen("[nbs:d-2-x] another one", typing=True) is AgentState.BLOCKED
    assert seen("[nbs:d-1-x] message from ana:\nhello") is AgentState.BLOCKED


def test_hooks_that_miss_no_end_of_a_turn_are_believed_for_longer() -> None:
    run = Run(can=Capabilities(hooks=True, turn_hooks=True, whole_turns=True))
    run.tell(ScreenSeen(IDLE), hooked("UserPromptSubmit", BUSY, run.now))
    run.tell(ScreenSeen(IDLE), after=SCREEN_LAG + 1.0)
    assert run.report.state == "busy"
    run.tell(ScreenSeen(IDLE), after=WHOLE_LAG)
    assert run.report.state is AgentState.IDLE


DRAFT = Reading(AgentState.BLOCKED, blocked=BlockedKind.DRAFT, draft="read the readme")


def test_a_text_in_the_box_of_a_client_that_starts_with_a_prompt_is_the_prompt_for_a_while() -> None:
    run = Run(prompt=True, can=Capabilities(hooks=True))
    run.tell(ScreenSeen(Reading(AgentState.UNKNOWN)), ScreenSeen(DRAFT))
    assert run.report.state == "starting"
    run.tell(ScreenSeen(DRAFT), after=PROMPT_SECONDS)
    assert run.report.state is AgentState.BLOCKED


def test_without_a_prompt_it_is_a_persons() -> None:
    run = Run(can=Capabilities(hooks=True))
    run.tell(ScreenSeen(Reading(AgentState.UNKNOWN)), ScreenSeen(DRAFT))
    assert run.report.state is AgentState.BLOCKED


def test_a_text_that_was_submitted_since_it_was_seen_blocks_nobody() -> None:
    run = Run(can=Capabilities(hooks=True, turn_hooks=True))
    run.tell(ScreenSeen(DRAFT))
    run.tell(hooked("UserPromptSubmit", BUSY, run.now + 0.05))
    assert run.report.state is AgentState.BUSY


PERMISSION = Reading(AgentState.BLOCKED, blocked=BlockedKind.PERMISSION)


def test_a_permission_that_a_hook_answers_is_drawn_for_a_moment_and_blocks_nobody() -> None:
    run = Run(can=Capabilities(hooks=True, turn_hooks=True, whole_turns=True, permission_hook=True))
    answered = HookNews("PermissionRequest", BUSY, answer="allow")
    run.tell(ScreenSeen(IDLE), HookSeen(answered, run.now, ()), ScreenSeen(PERMISSION))
    assert run.report.state == "busy"
    run.tell(ScreenSeen(PERMISSION), after=HOOK_LEAD + 1.0)
    assert run.report.state == "blocked"


def test_a_permission_that_no_hook_answers_blocks_at_once() -> None:
    run = Run(can=Capabilities(hooks=True, turn_hooks=True, whole_turns=True, permission_hook=True))
    run.tell(ScreenSeen(IDLE), hooked("PermissionRequest", PERMISSION, run.now), ScreenSeen(PERMISSION))
    assert run.report.state is AgentState.BLOCKED


def test_a_client_without_hooks_counts_as_busy_after_a_proof_until_its_screen_has_surely_followed() -> None:
    run = Run(can=Capabilities(session_id=True))
    run.tell(ScreenSeen(IDLE), Proved("d-1-x", "transcript"))
    assert run.report.state == "busy"
    run.tell(Ticked(), after=SUBMIT_SECONDS)
    assert run.report.state == "idle"
    run = Run(can=Capabilities(hooks=True))
    run.tell(ScreenSeen(IDLE), Proved("d-1-x", "transcript"))
    assert run.report.state is AgentState.IDLE


def test_what_a_client_took_and_never_used_is_said_with_the_number_of_messages() -> None:
    run = Run(can=Capabilities(hooks=True))
    run.tell(ScreenSeen(IDLE), hooked("SessionStart", IDLE, run.now))
    assert run.report.state is AgentState.IDLE
    taken = [(Message(f"d-{n}-x", "ana", "bo", "hello", float(n)), "claimed") for n in (1, 2, 3)]
    run.tell(Counted((taken[0],)))  # type: ignore[arg-type]
    run.wait(2 * LIMBO_SECONDS)
    assert run.report.attention == f"message d-1-x: {UNUSED}"
    run.tell(Counted(tuple(taken)))  # type: ignore[arg-type]
    run.wait(2 * LIMBO_SECONDS)
    assert run.report.attention == f"message d-1-x and 2 more: {UNUSED}"
