"""The simulator does what was recorded of the real client; and, at length, what the real client does now."""

from __future__ import annotations

import pytest

from tests.conformance import records
from tests.conformance.table import INTERACTIONS
from tests.conformance.table.entry import Interaction
from tests.support import clients

QUICK = ("turn-tools", "permission-text-enter", "hook-stop-block", "mail-idle", "background", "exit-ctrl-d")
"""One of each kind, played in the normal run, too; the others in `make test-all`."""
EVERY = [
    pytest.param(i, id=i.name, marks=() if i.name in QUICK else pytest.mark.long)
    for i in INTERACTIONS
    if records.fresh(i)
]


def test_every_interaction_has_a_name_of_its_own_and_every_record_its_interaction() -> None:
    names = [interaction.name for interaction in INTERACTIONS]
    assert len(names) == len(set(names))
    assert len(EVERY) >= 60
    assert {path.stem for path in records.RECORDED.glob("*.json")} <= set(names)


@pytest.mark.tmux
@pytest.mark.parametrize("interaction", EVERY)
def test_the_simulator_does_what_was_recorded_of_the_real_client(interaction: Interaction) -> None:
    found = records.differences(interaction, records.load(interaction), records.perform("sim", interaction))
    assert not found, "\n".join(found)


@pytest.mark.real
@pytest.mark.long
@pytest.mark.parametrize("interaction", [pytest.param(i, id=i.name) for i in INTERACTIONS])
def test_the_real_client_does_what_was_recorded_of_it(interaction: Interaction) -> None:
    clients.need("claude")
    found = records.differences(interaction, records.load(interaction), records.perform("claude", interaction))
    assert not found, "\n".join(found)
