"""What waits for whom: what counts as newest, and which events call."""

from __future__ import annotations

import pytest

from nbs_fleet.model import Priority
from nbs_fleet.nbs.bus_format import Event
from nbs_fleet.supervisor.board import is_call, pending


def mention(payload: str) -> Event:
    return Event("1-nbs-chat-chat-mention-1.event", 1, "nbs-chat", "chat-mention", Priority.HIGH, payload=payload)


@pytest.mark.parametrize("text", ["look at what came from sidecar: it says so", "from sidecar: x\nfrom sidecar: y"])
def test_a_mention_that_quotes_the_sidecar_is_still_a_call(text: str) -> None:
    assert is_call(mention(f"@bo from ana: {text}"))
    assert not is_call(mention(f"@bo from sidecar: {text}"))


def test_every_event_that_waits_is_named() -> None:
    found = (mention("@bo from ana: x"), Event("0-ana-done-1.event", 0, "ana", "done", payload="@bo x"))
    assert pending(list(found)).names == tuple(event.name for event in found)
