"""When output is listened to, and when the clock of tmux is cheaper."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.model import Moment
from nbs_fleet.supervisor.hearing import (
    CALM,
    LONG_PAUSE,
    LOUD,
    OVERLAP,
    PAUSE,
    Action,
    Deaf,
    Event,
    Heard,
    Hearing,
    Hush,
    Listen,
    Listening,
    Mode,
    Subscribe,
    Ticked,
    Unsubscribe,
    Wanted,
    decide,
)


class Run:
    """The ears of one team; its panes are subscribed to at first, as they are when the first of them is heard."""

    def __init__(self) -> None:
        self.hearing = Hearing()
        self.now = 1000.0
        self.subscribed, self.listening = True, False

    def tell(self, *events: Event, after: float = 0.0) -> list[Action]:
        self.now += after
        answer: list[Action] = []
        for event in events:
            self.hearing, actions = decide(self.hearing, event, Moment(self.now, self.now))
            answer.extend(actions)
        for action in answer:
            match action:
                case Listen() | Hush():
                    self.listening = isinstance(action, Listen)
                case Subscribe() | Unsubscribe():
                    self.subscribed = isinstance(action, Subscribe)
        return answer

    def wait(self) -> list[Action]:
        assert self.hearing.wake_at is not None
        return self.tell(Ticked(), after=self.hearing.wake_at - self.now)

    def noise(self) -> list[Action]:
        return self.tell(*[Heard()] * (LOUD + 1))


def listening() -> Run:
    run = Run()
    run.tell(Wanted(on=True), Listening())
    run.wait()
    assert run.hearing.mode is Mode.OUTPUT
    return run


def test_who_needs_no_screen_is_not_listened_to() -> None:
    assert Run().tell(Wanted(on=False), Ticked(), Heard(), Deaf(), Listening()) == []


def test_both_tell_for_a_while_before_the_clock_is_let_go() -> None:
    run = Run()
    assert run.tell(Wanted(on=True)) == [Listen()]
    assert run.tell(Listening(), Wanted(on=True)) == []
    assert run.tell(Ticked(), after=OVERLAP - 0.1) == []
    assert run.tell(Ticked(), after=0.2) == [Unsubscribe()]


def test_a_few_lines_a_second_are_listened_to_for_ever() -> None:
    run = listening()
    for _ in range(100):
        assert run.tell(*[Heard()] * LOUD, after=1.0) == []


def test_who_is_loud_is_heard_by_the_clock_and_then_listened_to_again() -> None:
    run = listening()
    assert run.noise() == [Subscribe(), Hush()]
    assert run.tell(Wanted(on=True), Ticked(), after=PAUSE - 0.1) == []
    assert run.tell(Ticked(), after=0.2) == [Listen()]


def test_each_pause_is_twice_as_long_up_to_a_limit_until_there_was_calm() -> None:
    run = listening()
    pauses = []
    for _ in range(10):
        run.noise()
        assert run.hearing.wake_at is not None
        pauses.append(run.hearing.wake_at - run.now)
        run.wait()
        run.tell(Listening())
    assert pauses[:3] == [PAUSE, 2 * PAUSE, 4 * PAUSE]
    assert pauses[-1] == LONG_PAUSE
    run.wait()
    run.tell(Heard(), after=CALM)
    run.noise()
    assert run.hearing.wake_at == run.now + PAUSE


def test_a_listener_that_is_lost_at_once_leaves_the_clock_alone() -> None:
    run = Run()
    assert run.tell(Wanted(on=True), Deaf()) == [Listen(), Hush()]
    assert run.subscribed


def test_when_the_last_such_pane_is_gone_nobody_listens() -> None:
    run = listening()
    assert run.tell(Wanted(on=False)) == [Hush()]
    assert run.hearing.wake_at is None


EVENTS = st.sampled_from((Wanted(on=True), Wanted(on=False), Listening(), Deaf(), Heard(), Ticked()))


@given(st.lists(st.tuples(EVENTS, st.sampled_from((0.0, 0.01, 0.5, 3.0, 70.0)), st.integers(1, 2 * LOUD)), max_size=40))
def test_whatever_happens_something_tells_of_the_panes(history: list[tuple[Event, float, int]]) -> None:
    run = Run()
    for event, after, times in history:
        run.tell(*[event] * times, after=after)
        if run.hearing.wanted:
            assert run.listening or run.subscribed
        if not run.hearing.wanted:
            # Who is subscribed next has the clock, as nobody listens.
            assert not run.listening
            run.subscribed = True
        assert run.subscribed or run.hearing.mode is Mode.OUTPUT
