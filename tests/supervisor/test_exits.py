"""What is said of a client whose pane is gone."""

from __future__ import annotations

import pytest

from nbs_fleet.model import ExitKind, ProcId
from nbs_fleet.supervisor.exits import without_pane

CLIENT = ProcId(200, 5_000)


@pytest.mark.parametrize(
    ("server", "kind"),
    [
        (ProcId(100, 4_000), ExitKind.PANE_CLOSED),
        (ProcId(100, 5_000), ExitKind.PANE_CLOSED),
        (ProcId(300, 6_000), ExitKind.TMUX_DIED),
        (None, ExitKind.TMUX_DIED),
    ],
)
def test_a_pane_is_closed_by_somebody_only_if_its_own_server_still_runs(server: ProcId | None, kind: ExitKind) -> None:
    assert without_pane(CLIENT, server) is kind


def test_a_client_that_is_not_known_is_not_said_to_have_lost_its_pane() -> None:
    assert without_pane(None, ProcId(100, 4_000)) is ExitKind.TMUX_DIED
