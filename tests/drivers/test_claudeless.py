"""claudeless: its screens where they differ from Claude Code's in ways the captures do not show."""

from __future__ import annotations

from nbs_fleet.drivers.base import Screen
from nbs_fleet.drivers.claudeless import Claudeless
from nbs_fleet.model import AgentState


def test_a_text_longer_than_the_pane_is_wide_is_still_a_text_in_the_box() -> None:
    rule = "─" * 40
    rows = ("⏺ Ready.", "", rule, "❯\u00a0[nbs:d-1-a] message from bo: / word wor", "d word", rule)
    reading = Claudeless().read_screen(Screen(rows, 40, 24))
    assert reading.draft == "[nbs:d-1-a] message from bo: / word word word"
    assert reading.state is AgentState.UNKNOWN
