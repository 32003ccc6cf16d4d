"""Sources that agree, disagree, are late or silent: what an agent is said to be doing, and on what grounds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nbs_fleet.drivers.base import Capabilities, HookNews, Reading, StateFile
from nbs_fleet.model import AgentState, BlockedKind, ErrorKind, Failure, Message, Moment, Source
from nbs_fleet.sidecar.mind import Mind, Watching
from nbs_fleet.sidecar.parcels import Means, Parcel, Post
from nbs_fleet.sidecar.weigh import HOOK_LEAD, NATIVE_SECONDS, SUBMIT_SECONDS, blocked_kind, evidence, submitted, weigh

S = AgentState
K = BlockedKind
FULL = Mind(Watching(Capabilities(state_file=True, title=True, hooks=True), expects_prompt=False))
BARE = Mind(Watching(Capabilities(hooks=True), expects_prompt=False))


def blocked(kind: BlockedKind) -> Reading:
    return Reading(S.BLOCKED, blocked=kind)


def file(reading: Reading, at: float = 10.0, mind: Mind = FULL) -> Mind:
    return replace(mind, file=StateFile(1, 1, "s", reading, at=at), file_at=at)


def screen(mind: Mind, reading: Reading, at: float) -> Mind:
    return replace(mind, screen=reading, screen_at=at)


def hook(mind: Mind, event: str, reading: Reading, at: float, tool: str | None = None) -> Mind:
    return replace(mind, hook=HookNews(event, reading, tool=tool), hook_at=at)


@pytest.mark.parametrize(
    ("mind", "state", "source"),
    [
        # all silent
        (FULL, S.UNKNOWN, None),
        # the state file alone
        (file(Reading(S.IDLE)), S.IDLE, Source.STATE_FILE),
        (file(Reading(S.BUSY)), S.BUSY, Source.STATE_FILE),
        # a busy file and an idle-looking screen: the box is always drawn while a turn runs
        (screen(file(Reading(S.BUSY)), Reading(S.IDLE), 11), S.BUSY, Source.STATE_FILE),
        # a screen from before the turn ended
        (screen(file(Reading(S.IDLE), at=12), Reading(S.BUSY), 11), S.IDLE, Source.STATE_FILE),
        # idle, but nobody is logged in: only the screen knows
        (screen(file(Reading(S.IDLE)), blocked(K.LOGIN), 11), S.BLOCKED, Source.SCREEN),
        # idle, but a person is typing
        (screen(file(Reading(S.IDLE)), blocked(K.DRAFT), 11), S.BLOCKED, Source.SCREEN),
        # a dialog that was answered since the look
        (screen(file(Reading(S.IDLE), at=12), blocked(K.PLAN), 11), S.IDLE, Source.STATE_FILE),
        # the file says busy during a compaction, the screen says which
        (screen(file(Reading(S.BUSY)), Reading(S.COMPACTING), 11), S.COMPACTING, Source.SCREEN),
        # startup dialogs: no file yet
        (screen(FULL, blocked(K.TRUST), 1), S.BLOCKED, Source.SCREEN),
        # no file, title busy, screen in between
        (replace(screen(FULL, Reading(S.IDLE), 1), title=Reading(S.BUSY), title_at=2.0), S.BUSY, Source.TITLE),
        # a client with hooks only: the newer word counts
        (hook(screen(BARE, Reading(S.UNKNOWN), 1), "Stop", Reading(S.IDLE), 2), S.IDLE, Source.HOOK),
        (screen(hook(BARE, "Stop", Reading(S.IDLE), 2), Reading(S.BUSY), 3), S.BUSY, Source.SCREEN),
        # a dialog on the screen beats a hook written at the same moment
        (hook(screen(BARE, blocked(K.PERMISSION), 5), "Stop", Reading(S.IDLE), 6), S.BLOCKED, Source.SCREEN),
        # a hook that says nothing of the state
        (hook(screen(BARE, Reading(S.IDLE), 1), "SessionEnd", Reading(S.UNKNOWN), 2), S.IDLE, Source.SCREEN),
    ],
)
def test_each_constellation_has_one_answer(mind: Mind, state: AgentState, source: Source | None) -> None:
    reading, why = weigh(mind)
    assert (reading.state, why) == (state, source)


@pytest.mark.parametrize("kind", [K.PERMISSION, K.PLAN, K.QUESTION])
def test_a_waiting_state_file_is_explained_by_hook_or_screen(kind: BlockedKind) -> None:
    waiting = file(blocked(K.PERMISSION))
    by_hook = hook(waiting, "PermissionRequest", replace(blocked(kind), detail="Bash: make"), 9.9)
    reading, _ = weigh(by_hook)
    assert blocked_kind(by_hook, reading) is kind
    assert reading.detail == "Bash: make"
    by_screen = screen(waiting, blocked(kind), 11)
    assert blocked_kind(by_screen, weigh(by_screen)[0]) is kind


@pytest.mark.parametrize("mind", [file(Reading(S.IDLE), at=5), screen(BARE, Reading(S.IDLE), 11)])
def test_a_prompt_that_a_hook_told_of_is_under_way_until_its_client_shows_more_or_is_silent_for_long(
    mind: Mind,
) -> None:
    asked = hook(mind, "UserPromptSubmit", Reading(S.BUSY), 10)
    assert submitted(asked, Moment(10.1, 0.0)) == pytest.approx(HOOK_LEAD - 0.1)
    assert submitted(asked, Moment(10.0 + HOOK_LEAD, 0.0)) is None
    assert submitted(hook(mind, "Stop", Reading(S.IDLE), 10), Moment(10.1, 0.0)) is None
    assert submitted(file(Reading(S.IDLE), at=11, mind=asked), Moment(11.1, 0.0)) is None


UNDER_WAY = Parcel(Message("d-1-x", "ana", "bo", "hello", 0.0), since=10.0)


@pytest.mark.parametrize("parcel", [replace(UNDER_WAY, typed=True), replace(UNDER_WAY, place="claimed")])
def test_a_message_that_a_client_was_given_is_under_way_until_it_shows_something(parcel: Parcel) -> None:
    mind = replace(file(Reading(S.IDLE), at=109), post=Post(Means(mail=True, stop_hook=True), (parcel,)))
    assert submitted(mind, Moment(110.5, 10.5)) == 10.0 + SUBMIT_SECONDS
    assert submitted(mind, Moment(113.0, 13.0)) is None
    assert submitted(file(Reading(S.IDLE), at=110.2, mind=mind), Moment(110.5, 10.5)) is None


@pytest.mark.parametrize(
    "parcel", [UNDER_WAY, replace(UNDER_WAY, place="mail"), replace(UNDER_WAY, place="claimed", orphan=True)]
)
def test_a_message_that_waits_makes_nobody_busy(parcel: Parcel) -> None:
    mind = replace(file(Reading(S.IDLE), at=109), post=Post(Means(mail=True, stop_hook=True), (parcel,)))
    assert submitted(mind, Moment(110.5, 10.5)) is None


def test_an_old_hook_does_not_explain_a_new_dialog() -> None:
    mind = hook(file(blocked(K.PERMISSION), at=100), "PermissionRequest", blocked(K.PLAN), 50)
    assert blocked_kind(mind, weigh(mind)[0]) is K.PERMISSION


@pytest.mark.parametrize(
    ("kind", "state", "which"),
    [
        (ErrorKind.AUTHENTICATION, S.BLOCKED, K.LOGIN),
        (ErrorKind.RATE_LIMIT, S.LIMITED, None),
        (ErrorKind.BILLING, S.LIMITED, None),
        (ErrorKind.OVERLOAD, S.IDLE, None),
        (ErrorKind.NETWORK, S.IDLE, None),
        (ErrorKind.CONTEXT_FULL, S.IDLE, None),
        (ErrorKind.REFUSAL, S.IDLE, None),
    ],
)
def test_a_failed_turn_colours_the_idle_that_follows_it(
    kind: ErrorKind, state: AgentState, which: BlockedKind | None
) -> None:
    mind = replace(file(Reading(S.IDLE)), failure=Failure(kind, 9.0, "words", until=500.0))
    reading, _ = weigh(mind)
    assert reading.state is state
    assert reading.blocked is which
    if state is S.LIMITED:
        assert reading.until == 500.0
    if state is S.IDLE:
        assert str(kind) in reading.detail


def test_a_turn_that_runs_forgets_the_failure_before_it() -> None:
    mind = replace(file(Reading(S.BUSY)), failure=Failure(ErrorKind.OVERLOAD, 9.0))
    assert weigh(mind)[0].state is S.BUSY


def test_evidence_names_the_deciding_source_first_and_every_other_after_it() -> None:
    mind = hook(screen(file(Reading(S.IDLE)), blocked(K.LOGIN), 11), "Stop", Reading(S.IDLE), 9)
    found = evidence(mind, weigh(mind)[1])
    assert [e.source for e in found] == [Source.SCREEN, Source.STATE_FILE, Source.HOOK]
    assert found[0].says == "blocked: login"


def test_the_tool_that_runs_is_named_while_a_hook_tells() -> None:
    mind = hook(file(Reading(S.BUSY)), "PreToolUse", Reading(S.BUSY), 10.5, tool="Bash")
    assert weigh(mind)[0].detail == "Bash"


def test_what_lies_in_a_clients_own_inbox_counts_as_work_until_it_has_surely_looked() -> None:
    given = replace(UNDER_WAY, place="claimed", via="native")
    mind = replace(BARE, post=Post(Means(mail=False, stop_hook=True, inbox=True), (given,)))
    assert submitted(mind, Moment(110.0 + SUBMIT_SECONDS, 10.0 + SUBMIT_SECONDS)) == 10.0 + NATIVE_SECONDS
    assert submitted(mind, Moment(110.0 + NATIVE_SECONDS, 10.0 + NATIVE_SECONDS)) is None
