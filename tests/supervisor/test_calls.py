"""Queries and interrupts: answered once, acknowledged after it, and nobody is called by a screen."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, cast

import pytest

from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import Priority
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.nbs.mentions import mentions
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import Plan
from nbs_fleet.spec.team import Layout
from nbs_fleet.supervisor.calls import Calls, caller, shown
from nbs_fleet.supervisor.desk import Desk
from nbs_fleet.supervisor.story import Story


class Team:
    def __init__(self, tmp_path: Path) -> None:
        (tmp_path / "events").mkdir()
        self.bus = Bus(str(tmp_path / "events"))
        self.chat = Chat(str(tmp_path / "live.chat"))
        self.chat.create()
        self.interrupts: list[tuple[str, str]] = []
        self.calls = self.supervisor(began=0.0)

    def supervisor(self, began: float) -> Calls:
        return Calls(
            rows=self.rows,
            interrupt=lambda handle, event: self.interrupts.append((handle, caller(event))),
            chat=lambda _handle: self.chat.path,
            tell=lambda *_a, **_k: None,
            began=began,
        )

    async def rows(self, _handle: str) -> tuple[str, ...]:
        return ("mail @team now", "", "❯ ")

    async def look(self) -> None:
        """What the board does at each change, until all that follows is done."""
        self.calls.see("ana", self.bus, self.bus.pending().events)
        await asyncio.gather(*self.calls._tasks)


async def test_a_query_shows_the_screen_and_is_acknowledged(tmp_path: Path) -> None:
    team = Team(tmp_path)
    team.bus.publish("nbs-chat", "chat-query", Priority.HIGH, "@ana from bo: @ana?", dedup_window=0)
    await team.look()
    await team.look()
    (message,) = team.chat.messages()
    assert message.handle == "sidecar"
    assert message.text.startswith("session output for ana:\n")
    assert not mentions(message.text)
    assert team.bus.pending().events == ()


async def test_a_query_whose_supervisor_was_killed_before_it_acknowledged_is_answered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise NbsFileError("killed")

    team = Team(tmp_path)
    team.bus.publish("nbs-chat", "chat-query", Priority.HIGH, "@ana from bo: @ana?", dedup_window=0)
    with monkeypatch.context() as patch:
        patch.setattr(Bus, "ack", killed)
        await team.look()
    assert len(team.bus.pending().events) == 1
    team.calls = team.supervisor(began=time.time() + 1.0)
    await team.look()
    assert len(team.chat.messages()) == 1
    assert team.bus.pending().events == ()
    # What is asked from now on is asked anew.
    team.calls = team.supervisor(began=0.0)
    team.bus.publish("nbs-chat", "chat-query", Priority.HIGH, "@ana from bo: @ana?", dedup_window=0)
    await team.look()
    assert len(team.chat.messages()) == 2


def test_an_interrupt_that_can_not_be_acknowledged_is_one_message(tmp_path: Path) -> None:
    plan = Plan("t", "t.yaml", str(tmp_path), "", RunPaths(str(tmp_path / "run"), "", "", ""), Layout(), ())
    desk = Desk(
        plan,
        cast("Watcher", None),
        tell=lambda *_: None,
        all_idle=lambda: False,
        rows=cast("Any", None),
        story=lambda handle: Story(str(tmp_path / f"{handle}.jsonl")),
    )
    bus = Team(tmp_path).bus
    for _ in range(2):
        bus.publish("nbs-chat", "chat-interrupt", Priority.CRITICAL, "@ana from bo: stop", dedup_window=0)
    first, second = bus.pending().events
    for event in (first, first, second):
        desk._interrupt("ana", event)
    waiting = Mailbox(plan.paths.agent("ana")).waiting()
    assert [(p.message.interrupt, p.message.text.split()[0]) for p in waiting] == [(True, "bo")] * 2


async def test_an_interrupt_names_who_called_and_is_acknowledged(tmp_path: Path) -> None:
    team = Team(tmp_path)
    team.bus.publish("nbs-chat", "chat-interrupt", Priority.CRITICAL, "@ana from bo: stop: now", dedup_window=0)
    await team.look()
    await team.look()
    assert team.interrupts == [("ana", "bo")]
    assert team.bus.pending().events == ()


async def test_other_events_are_left_to_the_agent(tmp_path: Path) -> None:
    team = Team(tmp_path)
    team.bus.publish("nbs-chat", "chat-mention", Priority.HIGH, "@ana from bo: hi", dedup_window=0)
    await team.look()
    assert len(team.bus.pending().events) == 1


def test_a_screen_is_bounded() -> None:
    assert len(shown("ana", tuple(f"row {n}" for n in range(500))).splitlines()) == 41


def test_the_caller_is_read_from_the_payload(tmp_path: Path) -> None:
    bus = Team(tmp_path).bus
    bus.publish("x", "chat-query", Priority.HIGH, "@ana from bo-2: what: now", dedup_window=0)
    assert caller(bus.pending().events[0]) == "bo-2"
