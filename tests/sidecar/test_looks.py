"""When the screen is looked at: one look at a time, none too few, and each as old as its beginning."""

from __future__ import annotations

from nbs_fleet.drivers.base import Reading
from nbs_fleet.model import AgentState, BlockedKind
from nbs_fleet.sidecar.actions import Faulted, Flickered, Look, ScreenSeen, Ticked
from tests.support.sidecar_run import IDLE, Run, file


def test_a_look_that_began_before_the_state_file_changed_shows_no_dialog_of_now() -> None:
    permission = Reading(AgentState.BLOCKED, blocked=BlockedKind.PERMISSION)
    run = Run()
    run.tell(file(permission), ScreenSeen(permission), Ticked(poll=True))
    run.tell(file(IDLE), after=0.1)
    # Drawn before the dialog was answered, and read after it.
    assert Look() in run.tell(ScreenSeen(permission), after=0.1)
    assert run.report.state == "idle"
    run.tell(ScreenSeen(permission), after=0.1)
    assert run.report.state == "blocked"


def test_two_wishes_to_look_are_one_look_at_a_time() -> None:
    run = Run()
    first = run.tell(Ticked(poll=True))
    assert first.count(Look()) == 1
    assert Look() not in run.tell(Ticked(poll=True))
    assert Look() in run.tell(ScreenSeen(IDLE))


def test_what_changes_during_a_look_is_looked_at_though_the_state_file_says_idle() -> None:
    draft = Reading(AgentState.BLOCKED, blocked=BlockedKind.DRAFT, draft="hm")
    run = Run()
    run.tell(file(IDLE), ScreenSeen(IDLE), Ticked(poll=True))
    # The screen was taken with the draft, which its person deletes before the look arrives here.
    run.tell(Flickered())
    assert Look() in run.tell(ScreenSeen(draft))
    run.tell(ScreenSeen(IDLE))
    assert run.report.state == "idle"
    assert Look() not in run.tell(Flickered())


def test_a_look_that_failed_does_not_keep_others_from_looking() -> None:
    run = Run()
    run.tell(Ticked(poll=True), Faulted("Look: no pane"))
    assert Look() in run.tell(Ticked(poll=True))
