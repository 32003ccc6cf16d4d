"""Clients whose hooks tell of turns: hooks are believed before a screen that is behind them, for a while."""

from __future__ import annotations

from nbs_fleet.drivers.base import Capabilities, HookNews, Reading
from nbs_fleet.model import AgentState, Source
from nbs_fleet.sidecar.actions import HookSeen, Look, ScreenSeen, Ticked
from tests.sidecar.test_decide import BUSY, IDLE, TRUST, Run


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
