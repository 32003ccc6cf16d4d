"""When a sidecar has tmux tell it that something moved in its pane."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers.base import Reading
from nbs_fleet.model import AgentState, BlockedKind
from nbs_fleet.sidecar.actions import Event, Flickered, Heed, Look, ScreenSeen, StateFileSeen, Ticked
from nbs_fleet.sidecar.heeding import heeds
from tests.support.sidecar_run import BUSY, IDLE, TRUST, Run, file

DRAFT = Reading(AgentState.BLOCKED, blocked=BlockedKind.DRAFT, draft="half a word")
EVENTS: tuple[Event, ...] = (
    file(IDLE),
    file(BUSY),
    file(Reading(AgentState.BLOCKED, blocked=BlockedKind.PERMISSION)),
    StateFileSeen(None),
    ScreenSeen(IDLE),
    ScreenSeen(BUSY),
    ScreenSeen(TRUST),
    ScreenSeen(DRAFT),
    Flickered(),
    Ticked(poll=True),
)


def heeding(run: Run) -> bool:
    """What the sidecar was last asked for."""
    asked = [action.on for action in run.actions if isinstance(action, Heed)]
    return bool(asked) and asked[-1]


def idle() -> Run:
    run = Run()
    run.tell(file(IDLE), ScreenSeen(IDLE))
    assert run.report.ready
    return run


def test_a_pane_is_heeded_from_the_first_event_until_its_client_is_ready() -> None:
    run = Run()
    assert Heed(on=True) in run.tell(file(BUSY))
    assert Heed(on=False) in run.tell(ScreenSeen(BUSY), file(IDLE), ScreenSeen(IDLE))


def test_a_client_with_a_state_file_is_not_heeded_while_it_works_and_rests() -> None:
    run = idle()
    assert not [a for a in run.tell(file(BUSY), file(IDLE), ScreenSeen(IDLE)) if isinstance(a, Heed)]
    assert not heeding(run)


def test_who_takes_back_a_draft_is_seen() -> None:
    run = idle()
    assert Heed(on=True) in run.tell(Ticked(poll=True), ScreenSeen(DRAFT))
    assert Look() in run.tell(Flickered())
    assert Heed(on=False) in run.tell(ScreenSeen(IDLE))


def test_a_client_that_loses_its_state_file_is_heeded() -> None:
    assert Heed(on=True) in idle().tell(StateFileSeen(None))


def test_a_client_known_by_its_screen_alone_is_always_heeded() -> None:
    run = Run()
    run.tell(Ticked(poll=True), ScreenSeen(IDLE), Flickered(), ScreenSeen(BUSY), Flickered(), ScreenSeen(IDLE))
    assert [a for a in run.actions if isinstance(a, Heed)] == [Heed(on=True)]


@given(st.lists(st.sampled_from(EVENTS), max_size=30))
def test_what_was_asked_for_is_what_is_needed_after_every_event(events: list[Event]) -> None:
    run = Run()
    for event in events:
        run.tell(event)
        assert heeding(run) is heeds(run.mind)
