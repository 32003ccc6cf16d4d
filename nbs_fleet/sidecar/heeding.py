"""Whether it is of use now to be told that something moved in the pane: tmux works for that each second. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from nbs_fleet.model import AgentState
from nbs_fleet.sidecar.actions import Heed
from nbs_fleet.sidecar.mind import Mind


def heeds(mind: Mind) -> bool:
    """Whether the screen may know something that nothing else tells of.

    That is so for a client without a state file; until it is ready, as a start may stop at a dialog; and as long as
    it is blocked: that a dialog was answered or a draft taken back is seen there first.
    """
    return mind.file is None or not mind.report.ready or mind.report.state is AgentState.BLOCKED


def heed(mind: Mind) -> tuple[Mind, tuple[Heed, ...]]:
    """Begin or end to heed the pane, when that differs from what is done now."""
    wanted = heeds(mind)
    if wanted is mind.heeding:
        return mind, ()
    return replace(mind, heeding=wanted), (Heed(wanted),)
