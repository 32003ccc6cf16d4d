"""What waits for whom: what counts as newest, and which events call."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import Priority
from nbs_fleet.nbs.bus_format import Event
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.supervisor.board import Board, Tray, is_call, pending
from tests.support.waiting import eventually_async


def mention(payload: str) -> Event:
    return Event("1-nbs-chat-chat-mention-1.event", 1, "nbs-chat", "chat-mention", Priority.HIGH, payload=payload)


@pytest.mark.parametrize("text", ["look at what came from sidecar: it says so", "from sidecar: x\nfrom sidecar: y"])
def test_a_mention_that_quotes_the_sidecar_is_still_a_call(text: str) -> None:
    assert is_call(mention(f"@bo from ana: {text}"))
    assert not is_call(mention(f"@bo from sidecar: {text}"))


def test_every_event_that_waits_is_named() -> None:
    found = (mention("@bo from ana: x"), Event("0-ana-done-1.event", 0, "ana", "done", payload="@bo x"))
    assert pending(list(found)).names == tuple(event.name for event in found)


async def test_at_a_slow_poll_only_those_are_told_whose_turn_it_is(tmp_path: Path) -> None:
    told: list[str] = []
    chat = Chat(os.path.join(tmp_path, "main.chat"))
    chat.create()
    (tmp_path / "events").mkdir()
    watcher = Watcher()
    board = Board(
        watcher,
        tell=lambda handle, _: told.append(handle),
        problem=told.append,
        roster=lambda: ("ana", "bo"),
        calls=lambda _, __, ___: None,
    )
    try:
        for handle in ("ana", "bo"):
            board.assign(handle, Tray((chat.path,), (str(tmp_path / "events"),)))
        board.look(frozenset({"bo"}))
        assert told == ["ana"]
        # What was to be told to both still is.
        await eventually_async(lambda: told == ["ana", "ana", "bo"])
    finally:
        watcher.close()
