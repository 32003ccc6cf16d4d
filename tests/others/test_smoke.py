"""The shortest proof that a client works in a fleet: a prompt, a message, an end that leaves nothing."""

from __future__ import annotations

import pytest

from tests.others.conftest import WITHIN, delivered, send, up
from tests.support.fleet import Fleet
from tests.support.others import Other

pytestmark = [pytest.mark.real, pytest.mark.e2e, pytest.mark.others("codex", "copilot", "qwen")]


def test_it_takes_its_prompt_and_a_message_once_and_goes_without_a_trace(fleet: Fleet, other: Other) -> None:
    text = 'It\'s "quoted", $HOME 日本語 @nobody'
    row = up(fleet, other, prompt_text=f"{text} [[say ready]]")
    assert row["session_id"]
    delivered(fleet, send(fleet, "hello [[say there]]"))
    fleet.until(lambda: other.count("hello [[say there]]") == 1, within=WITHIN, what="the model was told once")
    assert f"{text} [[say ready]]" in other.told()
    down = fleet.down(within=WITHIN)
    assert down.code == 0, str(down)
    assert fleet.leftovers() == []
