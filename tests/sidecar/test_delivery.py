"""The ladder of delivery: cases, and any history of a small world."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbs_fleet.model import AgentState, Message, MessageKind, Outcome
from nbs_fleet.sidecar import delivery as d
from tests.support.delivery_world import World

MAIL = d.Means(mail=True, stop_hook=True)
KEYS = d.Means(mail=False, stop_hook=False, keys_only=True)
NATIVE = d.Means(mail=False, stop_hook=True, inbox=True, confirm=True)
IDLE = d.View(AgentState.IDLE, ready=True)
BUSY = d.View(AgentState.BUSY, ready=True)


def message(number: int, *, kind: MessageKind = MessageKind.DIRECTIVE, interrupt: bool = False) -> Message:
    return Message(f"d-{number}-x", "ana", "bo", f"text {number}", float(number), kind=kind, interrupt=interrupt)


def counted(*pairs: tuple[Message, d.Place]) -> d.Counted:
    return d.Counted(tuple(pairs))


def after(post: d.Post, *events: d.PostEvent, now: float = 0.0) -> d.Post:
    for event in events:
        post, _ = d.receive(post, event, now)
    return post


def renewed(post: d.Post, **more: Any) -> d.Renewed:
    """A new sidecar finds the files as they were."""
    return d.Renewed(tuple((p.message, p.place) for p in post.parcels), **more)


def waiting(means: d.Means, one: Message, *, armed: bool | None = True, place: d.Place = "queue") -> d.Post:
    return after(d.Post(means, armed=armed, probed_at=0.0), counted((one, place)))


def test_armed_mail_takes_a_message_whatever_the_agent_does() -> None:
    for state in (AgentState.IDLE, AgentState.BUSY, AgentState.BLOCKED, AgentState.COMPACTING):
        _, actions = d.dispatch(waiting(MAIL, message(1)), d.View(state, ready=True), 0.0)
        assert actions == (d.PutMail("d-1-x"),)


def test_a_clients_own_inbox_takes_a_message_once_its_session_is_known() -> None:
    post = waiting(NATIVE, message(1))
    assert d.dispatch(post, IDLE, 0.0)[1] == (d.Type("d-1-x", False, False),)
    known = d.View(AgentState.IDLE, ready=True, session=True)
    post, actions = d.dispatch(post, known, 0.0)
    assert actions == (d.Hand("d-1-x"),)
    assert d.dispatch(post, known, 0.0)[1] == ()
    for state in (AgentState.BLOCKED, AgentState.COMPACTING, AgentState.STARTING):
        assert d.dispatch(waiting(NATIVE, message(1)), d.View(state, ready=True, session=True), 0.0)[1] == ()
    no_hooks = d.Means(mail=False, stop_hook=False, inbox=True)
    busy = d.View(AgentState.BUSY, ready=True, session=True)
    assert d.dispatch(waiting(no_hooks, message(1)), busy, 0.0)[1] == (d.Hand("d-1-x"),)
    assert d.dispatch(waiting(NATIVE, message(1)), busy, 0.0)[1] == (d.PutInbox("d-1-x"),)


def test_messages_go_into_an_inbox_one_after_the_other_and_end_as_native() -> None:
    known = d.View(AgentState.IDLE, ready=True, session=True)
    post = after(d.Post(NATIVE), counted((message(1), "queue"), (message(2), "queue")))
    post, actions = d.dispatch(post, known, 0.0)
    assert actions == (d.Hand("d-1-x"),)
    post = after(post, d.Handed("d-1-x"), counted((message(1), "claimed"), (message(2), "queue")))
    assert d.dispatch(post, known, 0.1)[1] == (d.Hand("d-2-x"),)
    assert d.receive(post, d.Proved("d-1-x", "transcript"), 1.0)[1] == (
        d.Finish("d-1-x", Outcome.DELIVERED, "native", "transcript"),
    )


def test_an_inbox_that_takes_nothing_twice_is_left_for_keys_until_another_client_runs() -> None:
    known = d.View(AgentState.IDLE, ready=True, session=True)
    post = waiting(NATIVE, message(1))
    now = 0.0
    for _ in range(d.INBOX_TRIES):
        post, actions = d.dispatch(post, known, now)
        assert actions == (d.Hand("d-1-x"),)
        post = after(post, d.Handed("d-1-x", "no such thread"), now=now)
        assert d.dispatch(post, known, now)[1] == ()
        now = d.wake(post, known, now) or now
    assert d.dispatch(post, known, now)[1] == (d.Type("d-1-x", False, False),)


def test_nothing_is_sent_before_it_is_known_whether_mail_is_armed() -> None:
    post = waiting(MAIL, message(1), armed=None)
    assert d.dispatch(post, IDLE, 1.0)[1] == ()


def test_a_probe_is_put_out_once_the_client_is_ready_and_its_silence_means_keys() -> None:
    post = after(d.Post(MAIL), counted((message(1), "queue")))
    assert d.dispatch(post, d.View(AgentState.STARTING, ready=False), 0.0)[1] == ()
    post, actions = d.dispatch(post, IDLE, 0.0)
    assert actions == (d.Probe(),)
    post, actions = d.dispatch(post, IDLE, d.PROBE_SECONDS)
    assert post.armed is False
    assert actions == (d.Type("d-1-x"), d.Rehook())
    assert d.Rehook() not in d.dispatch(post, IDLE, d.PROBE_SECONDS + 1)[1]


def test_an_unarmed_busy_client_gets_it_by_its_next_hook() -> None:
    _, actions = d.dispatch(waiting(MAIL, message(1), armed=False), BUSY, 0.0)
    assert actions == (d.PutInbox("d-1-x"),)


def test_what_no_hook_took_is_taken_back_when_the_turn_is_over() -> None:
    _, actions = d.dispatch(waiting(MAIL, message(1), armed=False, place="inbox"), IDLE, 0.0)
    assert actions == (d.TakeBack("d-1-x"),)


def test_unclaimed_mail_rings_again_and_finally_counts_as_not_armed() -> None:
    post = waiting(MAIL, message(1), place="mail")
    rings = 0
    for second in range(60):
        post, actions = d.dispatch(post, IDLE, float(second))
        rings += actions.count(d.Ring())
        if post.armed is False:
            break
    assert rings == d.BELLS
    assert actions[-1] == d.Rehook()
    assert d.Probe() in actions, "a client that only hung can still show that its mail works"
    assert d.dispatch(post, IDLE, 60.0)[1] == (d.TakeBack("d-1-x"),)


@pytest.mark.parametrize("place", ["mail", "inbox"])
def test_what_lies_where_nobody_looks_any_more_is_asked_back_until_it_is_back(place: d.Place) -> None:
    post = waiting(MAIL, message(1), armed=False, place=place)
    due = d.wake(post, IDLE, 10.0)
    assert due is not None
    assert due < 10.1
    post, actions = d.dispatch(post, IDLE, due)
    assert actions == (d.TakeBack("d-1-x"),)
    assert d.dispatch(post, IDLE, due + 0.1)[1] == ()
    again = d.wake(post, IDLE, due)
    assert again == due + d.RETRY_SECONDS
    post, actions = d.dispatch(post, IDLE, again)
    assert actions == (d.TakeBack("d-1-x"),)
    back = after(post, counted((message(1), "queue")))
    assert d.dispatch(back, IDLE, again)[1] == (d.Type("d-1-x"),)


def test_mail_for_a_blocked_agent_waits_without_ringing() -> None:
    post = waiting(MAIL, message(1), place="mail")
    assert d.dispatch(post, d.View(AgentState.BLOCKED, ready=True), 100.0)[1] == ()


def test_claimed_mail_waits_for_its_proof_as_long_as_the_client_lives() -> None:
    post = waiting(MAIL, message(1), place="claimed")
    assert d.dispatch(post, IDLE, 10_000.0)[1] == ()
    post, actions = d.receive(post, d.Proved("d-1-x", "transcript"), 1.0)
    assert actions == (d.Finish("d-1-x", Outcome.DELIVERED, "mail", "transcript"),)
    assert post.parcels == ()


def test_what_a_dead_client_had_claimed_is_sought_and_put_back_only_then() -> None:
    post = waiting(MAIL, message(1), place="claimed")
    post, actions = d.receive(post, renewed(post, orphans=("d-1-x",)), 5.0)
    assert actions == (d.Seek(("d-1-x",)),)
    post, actions = d.receive(post, d.Sought(("d-1-x",)), 6.0)
    assert actions == (d.PutBack("d-1-x"),)


def test_what_a_dead_client_had_used_is_delivered_and_not_put_back() -> None:
    post = waiting(MAIL, message(1), place="claimed")
    post, _ = d.receive(post, renewed(post, orphans=("d-1-x",)), 5.0)
    post, actions = d.receive(post, d.Proved("d-1-x", "transcript"), 5.1)
    assert isinstance(actions[0], d.Finish)
    assert d.receive(post, d.Sought(("d-1-x",)), 6.0)[1] == ()


def test_a_new_supervisor_leaves_claimed_mail_with_the_live_client() -> None:
    post = waiting(MAIL, message(1), place="claimed")
    post, _ = d.receive(post, renewed(post), 5.0)
    assert d.receive(post, d.Sought(("d-1-x",)), 6.0)[1] == ()


def test_nothing_is_sent_before_the_search_for_proof_has_ended() -> None:
    post = waiting(KEYS, message(1))
    post, _ = d.receive(post, renewed(post), 5.0)
    assert d.dispatch(post, IDLE, 6.0)[1] == ()
    post = after(post, d.Sought(("d-1-x",)), now=6.0)
    assert d.dispatch(post, IDLE, 6.0)[1] == (d.Type("d-1-x"),)


@pytest.mark.parametrize("state", [s for s in AgentState if s is not AgentState.IDLE])
def test_keys_are_for_idle_agents_only(state: AgentState) -> None:
    assert d.dispatch(waiting(KEYS, message(1)), d.View(state, ready=True), 0.0)[1] == ()


def test_a_draft_is_waited_for_or_put_aside_as_the_team_file_says() -> None:
    view = d.View(AgentState.BLOCKED, ready=True, draft=True)
    assert d.dispatch(waiting(KEYS, message(1)), view, 0.0)[1] == ()
    stash = d.Means(mail=False, stop_hook=False, keys_only=True, stash=True)
    assert d.dispatch(waiting(stash, message(1)), view, 0.0)[1] == (d.Type("d-1-x", stash=True),)


def test_an_interrupt_is_typed_into_a_busy_agent_and_ends_with_escape() -> None:
    one = message(1, interrupt=True)
    assert d.dispatch(waiting(MAIL, one), BUSY, 0.0)[1] == (d.Type("d-1-x", interrupt=True),)
    assert d.dispatch(waiting(MAIL, one), IDLE, 0.0)[1] == (d.PutMail("d-1-x"),)


def test_a_command_is_always_typed() -> None:
    one = message(1, kind=MessageKind.COMMAND)
    assert d.dispatch(waiting(MAIL, one), IDLE, 0.0)[1] == (d.Type("d-1-x"),)
    assert d.dispatch(waiting(MAIL, one), BUSY, 0.0)[1] == ()


def test_one_message_at_a_time_is_typed_in_order() -> None:
    post = after(d.Post(KEYS), counted((message(1), "queue"), (message(2), "queue")))
    post, actions = d.dispatch(post, IDLE, 0.0)
    assert actions == (d.Type("d-1-x"),)
    post = after(post, d.Typed("d-1-x", "sent"), now=0.1)
    assert d.dispatch(post, IDLE, 0.2)[1] == ()
    post = after(post, d.Proved("d-1-x", "hook"), now=0.3)
    assert d.dispatch(post, IDLE, 0.4)[1] == (d.Type("d-2-x"),)


def test_typed_text_without_proof_gets_one_more_enter_and_is_then_held_and_shown() -> None:
    post = waiting(KEYS, message(1))
    seen = []
    for second in range(200):
        post, actions = d.dispatch(post, IDLE, float(second))
        seen += [type(a).__name__ for a in actions]
        for action in actions:
            if isinstance(action, d.Type):
                post = after(post, d.Typed(action.id, "sent"), now=float(second))
    assert seen == ["Type", "Seek", "Enter", "Seek"]
    assert post.parcels[0].held
    _, actions = d.receive(post, d.Proved("d-1-x", "transcript"), 300.0)
    assert actions == (d.Finish("d-1-x", Outcome.DELIVERED, "keys", "transcript"),)


def test_nothing_is_typed_while_only_a_hook_has_told_of_the_message_before() -> None:
    post = after(d.Post(KEYS), counted((message(1), "queue"), (message(2), "queue")))
    post, _ = d.dispatch(post, IDLE, 0.0)
    post = after(post, d.Typed("d-1-x", "sent"), d.Proved("d-1-x", "hook", final=False), now=0.1)
    assert d.dispatch(post, IDLE, 0.2)[1] == ()
    post = after(post, d.Proved("d-1-x", "transcript"), now=0.3)
    assert d.dispatch(post, IDLE, 0.4)[1] == (d.Type("d-2-x"),)


def test_a_held_message_does_not_hold_up_the_next_one() -> None:
    post = after(d.Post(KEYS), counted((message(1), "queue"), (message(2), "queue")))
    post, _ = d.dispatch(post, IDLE, 0.0)
    post = after(post, d.Typed("d-1-x", "sent"), now=0.0)
    for second in (10.0, 20.0):
        post, _ = d.dispatch(post, IDLE, second)
    assert d.dispatch(post, IDLE, 21.0)[1] == (d.Type("d-2-x"),)


def test_a_held_message_is_typed_again_into_a_new_client_that_does_not_know_it() -> None:
    post = waiting(KEYS, message(1))
    post, _ = d.dispatch(post, IDLE, 0.0)
    post = after(post, d.Typed("d-1-x", "sent"), now=0.0)
    for second in (10.0, 20.0):
        post, _ = d.dispatch(post, IDLE, second)
    post = after(post, renewed(post), d.Sought(("d-1-x",)), now=30.0)
    assert d.dispatch(post, IDLE, 30.0)[1] == (d.Type("d-1-x"),)


def test_what_a_hook_told_is_final_once_the_transcript_confirms_it_or_is_late() -> None:
    for place in ("queue", "claimed"):
        post = waiting(MAIL, message(1), place=place)
        post, actions = d.receive(post, d.Proved("d-1-x", "hook", final=False), 1.0)
        assert actions == ()
        assert d.dispatch(post, IDLE, 2.0)[1] == ()
        assert d.wake(post, IDLE, 2.0) == 1.0 + d.CONFIRM_SECONDS
        confirmed = d.receive(post, d.Proved("d-1-x", "transcript"), 2.0)[1]
        late = d.dispatch(post, IDLE, 1.0 + d.CONFIRM_SECONDS)[1]
        assert [type(a) for a in (*confirmed, *late)] == [d.Finish, d.Finish]


def test_what_only_a_hook_told_of_is_sought_and_sent_again_when_the_client_dies() -> None:
    post = waiting(MAIL, message(1), place="claimed")
    post, _ = d.receive(post, d.Proved("d-1-x", "hook", final=False), 1.0)
    post, actions = d.receive(post, renewed(post, orphans=("d-1-x",)), 1.1)
    assert actions == (d.Seek(("d-1-x",)),)
    assert d.receive(post, d.Sought(("d-1-x",)), 1.2)[1] == (d.PutBack("d-1-x"),)


def test_what_an_idle_client_took_and_never_used_is_shown_to_a_person() -> None:
    post = waiting(MAIL, message(1), place="claimed")
    quiet = d.View(AgentState.IDLE, ready=True, quiet=10.0)
    assert d.dispatch(post, quiet, 100.0)[1] == ()
    assert d.wake(post, quiet, 100.0) == 90.0 + d.LIMBO_SECONDS
    quiet = d.View(AgentState.IDLE, ready=True, quiet=d.LIMBO_SECONDS)
    post, actions = d.dispatch(post, quiet, 150.0)
    assert actions == (d.Seek(("d-1-x",)),)
    assert (post.parcels[0].held, post.parcels[0].note) == (True, d.UNUSED)


def test_what_may_stand_in_the_box_is_taken_further_by_keys_only_and_is_no_draft_in_its_own_way() -> None:
    post = waiting(MAIL, message(1), armed=False)
    post, actions = d.dispatch(post, IDLE, 0.0)
    assert actions == (d.Type("d-1-x"),)
    post = after(post, d.Typed("d-1-x", d.HIDDEN, pasted=True), d.ProbeTaken(), now=1.0)
    draft = d.View(AgentState.BLOCKED, ready=True, draft=True)
    assert d.dispatch(post, draft, 1.0 + d.REFUSED_SECONDS)[1] == (d.Type("d-1-x"),)
    post, _ = d.receive(post, renewed(post), 10.0)
    post = after(post, d.Sought(("d-1-x",)), now=10.0)
    assert d.dispatch(post, IDLE, 20.0)[1] == (d.Probe(),), "a new client has an empty box"


def test_a_new_sidecar_goes_on_with_what_the_one_before_had_pasted_or_entered() -> None:
    post = waiting(KEYS, message(1))
    pasted = after(post, renewed(post, pasted="d-1-x"), d.Sought(("d-1-x",)), now=10.0)
    assert d.dispatch(pasted, IDLE, 10.0)[1] == (d.Type("d-1-x"),)
    entered = after(post, renewed(post, entered="d-1-x"), d.Sought(("d-1-x",)), now=10.0)
    assert d.dispatch(entered, IDLE, 11.0)[1] == ()
    assert d.dispatch(entered, IDLE, 10.0 + d.PROOF_SECONDS)[1] == (d.Seek(("d-1-x",)), d.Enter("d-1-x"))


def test_what_a_hook_told_of_a_client_before_is_left_to_the_search() -> None:
    post = waiting(MAIL, message(1), place="claimed")
    post, _ = d.receive(post, renewed(post, orphans=("d-1-x",)), 1.0)
    post, actions = d.receive(post, d.Proved("d-1-x", "hook", final=False), 1.0)
    assert actions == ()
    assert d.receive(post, d.Sought(("d-1-x",)), 1.1)[1] == (d.PutBack("d-1-x"),)


@pytest.mark.parametrize("why", d.REFUSALS)
def test_a_refused_try_costs_nothing_and_comes_again(why: str) -> None:
    post = waiting(KEYS, message(1))
    post, _ = d.dispatch(post, IDLE, 0.0)
    post = after(post, d.Typed("d-1-x", why), now=0.1)
    assert not post.parcels[0].typed
    assert post.parcels[0].note == why
    assert d.dispatch(post, IDLE, 0.2)[1] == ()
    assert d.dispatch(post, IDLE, 0.1 + d.REFUSED_SECONDS)[1] == (d.Type("d-1-x"),)


STEPS = st.sampled_from(
    ["new", "idle", "busy", "blocked", "drain", "use", "wait", "long", "die", "takeover", "interrupt"]
)


@given(st.lists(STEPS, max_size=60), st.booleans(), st.booleans())
@settings(max_examples=400)
def test_over_any_history_nothing_is_lost_doubled_or_typed_at_a_wrong_moment(
    steps: list[str], armed: bool, keys: bool
) -> None:
    world = World(KEYS if keys else MAIL, armed)
    made: list[str] = []
    states = {"idle": AgentState.IDLE, "busy": AgentState.BUSY, "blocked": AgentState.BLOCKED}
    for step in [*steps, "idle", *["drain", "use", "wait"] * 12, "idle", *["drain", "use", "long", "idle"] * 12]:
        world.now += {"wait": 1.0, "long": 30.0}.get(step, 0.05)
        if step in ("new", "interrupt"):
            one = message(len(made) + 1, interrupt=step == "interrupt")
            made.append(one.id)
            world.disk[one.id] = (one, "queue")
            world.count()
        elif step in states:
            world.state = states[step]
            world.work()
        elif step == "drain":
            world.drain()
        elif step == "use":
            world.use()
        elif step == "die":
            world.die()
        elif step == "takeover":
            world.replace(died=False)
        world.work()
    assert sorted(world.finished) == sorted(made)
    assert len(set(world.used)) == len(world.used)


def test_what_arrived_and_could_not_be_archived_is_neither_sent_again_nor_forgotten() -> None:
    post = d.Post(MAIL, armed=True, probed_at=0.0)
    post = after(post, counted((message(1), "mail")))
    post, actions = d.receive(post, d.Proved("d-1-x", "transcript"), 0.0)
    (finish,) = actions
    for now in (0.1, 1.0):
        # The disk is full: it lies where it lay.
        post = after(post, counted((message(1), "mail")), now=now)
        post, actions = d.dispatch(post, IDLE, now)
        assert actions == ()
    assert d.wake(post, IDLE, 1.0) == d.RETRY_SECONDS
    post, actions = d.dispatch(post, IDLE, d.RETRY_SECONDS)
    assert actions == (finish,)
    post = after(post, counted(), now=6.0)
    assert d.dispatch(post, IDLE, 60.0)[1] == ()
    assert d.wake(post, IDLE, 60.0) is None
