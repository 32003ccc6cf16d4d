"""Notices: grace, catch-up, cooldown, urgency, reminders, and silence when nothing is new."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nbs_fleet.model import AgentState, Priority
from nbs_fleet.sidecar.notices import (
    SETTLE,
    SUMMARY_LENGTH,
    Desk,
    Noticed,
    NoticeRules,
    Notify,
    Pending,
    Unread,
    Waiting,
    notice,
    stalled,
    summary,
    wake,
)

RULES = NoticeRules()
NOTHING = Waiting()
CHAT = Waiting((Unread("live", 2, ("bo",), by_others=2, last=7),))
MORE = Waiting((Unread("live", 3, ("bo",), by_others=3, last=8),))
CHATTER = Waiting((Unread("live", 1, ("sidecar",), by_others=0, last=9),))


def events(top: Priority, *urgent: str, names: tuple[str, ...] = ("1",)) -> Waiting:
    return Waiting(pending=Pending((("chat-mention", 1),), top, urgent, (*urgent, *names)))


class Agent:
    def __init__(self, rules: NoticeRules = RULES) -> None:
        self.rules, self.noticed, self.now = rules, Noticed(), 1000.0
        self.see(NOTHING)

    def see(
        self,
        waiting: Waiting,
        after: float = 0.0,
        state: AgentState = AgentState.IDLE,
        *,
        busy: bool = False,
        lost: bool = False,
    ) -> Notify | None:
        self.now += after
        desk = Desk(state, ready=True, busy=busy, waiting=waiting, lost=lost)
        self.noticed, told = notice(self.noticed, desk, self.rules, self.now)
        at = wake(self.noticed, desk, self.rules, self.now)
        assert at is None or at > self.now
        if told is None and self.noticed.fresh_at == self.now:
            # What is new is told a moment later, together with what comes with it.
            self.now += SETTLE
            self.noticed, told = notice(self.noticed, desk, self.rules, self.now)
        return told

    def settled(self) -> Agent:
        self.see(NOTHING, after=self.rules.startup_grace)
        return self


def test_the_startup_grace_is_silent_and_one_catch_up_follows_it() -> None:
    agent = Agent()
    assert agent.see(CHAT, after=29) is None
    told = agent.see(CHAT, after=1)
    assert told is not None
    assert told.why == "catch-up"
    assert agent.see(CHAT, after=1) is None


def test_nothing_waits_and_nothing_is_sent_however_long() -> None:
    agent = Agent().settled()
    assert all(agent.see(NOTHING, after=300) is None for _ in range(100))


def test_a_new_message_is_told_at_once_when_the_cooldown_is_over() -> None:
    agent = Agent().settled()
    assert agent.see(CHAT, after=1) is not None
    assert agent.see(MORE, after=5) is None
    told = agent.see(MORE, after=10)
    assert told is not None
    assert told.why == "new"


def test_what_came_while_the_agent_was_busy_is_told_when_it_is_idle() -> None:
    agent = Agent().settled()
    assert agent.see(CHAT, after=1, state=AgentState.BUSY) is None
    assert agent.see(CHAT, after=100, state=AgentState.BLOCKED) is None
    assert agent.see(CHAT, after=1) is not None


def test_the_fleets_own_chatter_wakes_nobody() -> None:
    agent = Agent().settled()
    assert agent.see(CHATTER, after=1000) is None


def test_critical_events_and_mentions_wait_for_no_cooldown() -> None:
    agent = Agent().settled()
    agent.see(CHAT, after=1)
    told = agent.see(events(Priority.HIGH, "e1"), after=1)
    assert told is not None
    assert told.why == "urgent"
    assert agent.see(events(Priority.HIGH, "e1"), after=1) is None


def test_a_message_and_its_mention_are_one_notice() -> None:
    agent = Agent().settled()
    desk = Desk(AgentState.IDLE, ready=True, busy=False, waiting=CHAT)
    agent.noticed, told = notice(agent.noticed, desk, RULES, agent.now)
    assert told is None
    both = Waiting(CHAT.unread, events(Priority.HIGH, "e1").pending)
    agent.noticed, told = notice(agent.noticed, replace(desk, waiting=both), RULES, agent.now + SETTLE)
    assert told is not None
    assert agent.see(both, after=1) is None


def test_that_less_waits_is_no_news() -> None:
    agent = Agent().settled()
    both = Waiting(CHAT.unread, events(Priority.NORMAL, names=("1", "2")).pending)
    assert agent.see(both, after=20) is not None
    assert agent.see(CHAT, after=20) is None
    assert agent.see(events(Priority.NORMAL, names=("1",)), after=20) is None


def test_an_event_that_comes_late_with_an_early_name_is_news() -> None:
    agent = Agent().settled()
    assert agent.see(events(Priority.NORMAL, names=("5",)), after=20) is not None
    assert agent.see(events(Priority.NORMAL, names=("4", "5")), after=20) is not None


def test_a_chat_that_lost_its_end_counts_from_its_new_numbers() -> None:
    agent = Agent().settled()
    old = Waiting((Unread("live", 1, ("bo",), by_others=1, last=2000),))
    assert agent.see(old, after=20) is not None
    shrunk = Waiting((Unread("live", 1, ("bo",), by_others=1, last=1000),))
    assert agent.see(shrunk, after=20) is None
    grown = Waiting((Unread("live", 2, ("bo",), by_others=2, last=1001),))
    assert agent.see(grown, after=20) is not None


def test_reminders_come_by_priority_then_everything_is_said_once_then_a_person_is_asked() -> None:
    agent = Agent().settled()
    tray = events(Priority.CRITICAL, "e1")
    assert agent.see(tray, after=1) is not None
    seen = [agent.see(tray, after=1) for _ in range(1000)]
    told = [t for t in seen if t is not None]
    assert [t.why for t in told] == ["reminder"] * RULES.fail_threshold + ["recovery"]
    assert next(i for i, t in enumerate(seen) if t is not None) in (29, 30)
    assert stalled(agent.noticed, tray, RULES)
    assert not stalled(agent.noticed, NOTHING, RULES)
    agent.see(Waiting(CHAT.unread, tray.pending), after=60)
    assert not stalled(agent.noticed, tray, RULES)


def test_what_comes_after_all_was_read_asks_for_no_person_before_it_was_told() -> None:
    agent = Agent().settled()
    tray = events(Priority.CRITICAL, "e1")
    for _ in range(1000):
        agent.see(tray, after=1)
    assert stalled(agent.noticed, tray, RULES)
    agent.see(NOTHING, after=1, state=AgentState.BUSY)
    agent.see(CHAT, after=1, state=AgentState.BUSY)
    assert not stalled(agent.noticed, CHAT, RULES)


def test_an_acknowledged_event_is_an_effect_and_the_count_begins_anew() -> None:
    agent = Agent().settled()
    both = events(Priority.CRITICAL, "e1", names=("e2",))
    for _ in range(1000):
        agent.see(both, after=1)
    one = events(Priority.CRITICAL, "e1", names=())
    told = [t for t in (agent.see(one, after=1) for _ in range(1000)) if t is not None]
    assert [t.why for t in told] == ["reminder"] * RULES.fail_threshold + ["recovery"]


def test_no_notice_is_made_while_another_message_is_on_its_way() -> None:
    agent = Agent().settled()
    assert agent.see(CHAT, after=1, busy=True) is None
    assert agent.see(CHAT, after=1) is not None


def test_the_old_poll_is_there_for_those_who_ask_for_it() -> None:
    agent = Agent(replace(RULES, poll_always=True)).settled()
    told = [agent.see(NOTHING, after=10) for _ in range(90)]
    assert len([t for t in told if t is not None]) == 3


def test_an_agent_s_own_interval_goes_before_the_team_file_s() -> None:
    agent = Agent(replace(RULES, poll_always=True)).settled()
    told = [agent.see(Waiting(poll=60), after=10) for _ in range(90)]
    assert len([t for t in told if t is not None]) == 15
    reminded = Agent().settled()
    tray = replace(events(Priority.NORMAL), poll=20.0)
    assert reminded.see(tray, after=1) is not None
    assert reminded.see(tray, after=19) is None
    assert reminded.see(tray, after=1) is not None


def test_a_call_of_a_skill_that_the_client_does_not_know_is_made_good_at_once_and_never_repeated() -> None:
    agent = Agent().settled()
    first = agent.see(CHAT, after=1)
    assert first is not None
    assert not first.plain
    again = agent.see(CHAT, after=0.5, lost=True)
    assert again is not None
    assert (again.why, again.plain) == ("recovery", True)
    assert agent.see(CHAT, after=1, lost=True) is None
    later = agent.see(MORE, after=20)
    assert later is not None
    assert (later.why, later.plain) == ("new", True)


def test_notices_can_be_switched_off() -> None:
    agent = Agent(replace(RULES, enabled=False))
    assert agent.see(CHAT, after=1000) is None


@given(st.lists(st.builds(Unread, st.text(max_size=40), st.integers(1, 999), st.tuples(st.text(max_size=60)))))
def test_a_summary_never_exceeds_its_length(unread: list[Unread]) -> None:
    assert len(summary(Waiting(tuple(unread)))) <= SUMMARY_LENGTH


TRAYS = st.sampled_from([NOTHING, CHAT, MORE, CHATTER, events(Priority.HIGH, "e1"), events(Priority.CRITICAL, "e2")])


@given(st.lists(st.tuples(TRAYS, st.floats(0, 60), st.sampled_from(list(AgentState)), st.booleans()), max_size=60))
def test_over_any_history_only_idle_agents_are_told_and_never_for_nothing(
    history: list[tuple[Waiting, float, AgentState, bool]],
) -> None:
    agent = Agent()
    for waiting, gap, state, busy in history:
        if agent.see(waiting, gap, state, busy=busy) is not None:
            assert state is AgentState.IDLE
            assert not busy
            assert waiting.anything()
            assert agent.now >= 1000 + RULES.startup_grace
