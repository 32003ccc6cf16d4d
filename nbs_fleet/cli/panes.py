"""The pane of one agent, looked up in the team's own tmux server; needs no supervisor."""

from __future__ import annotations

from nbs_fleet.cli.lookup import Found
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.supervisor.snapshot import panes_of


def find_pane(found: Found, handle: str) -> Pane | None:
    """The agent's pane, a living one rather than a dead one; None if it has none or no server runs."""
    own = [pane for pane in panes_of(found.paths) or () if pane.handle == handle]
    return next((pane for pane in own if not pane.dead), own[0] if own else None)


def screen(found: Found, pane: Pane) -> tuple[str, ...]:
    """What the pane shows now, one text per row."""
    return tuple(Tmux(found.paths.tmux, found.paths.tmux_conf).capture(pane.id))
