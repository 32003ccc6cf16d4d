"""The table of interactions: each is played on the simulator and on the real client, and both must look the same."""

from __future__ import annotations

from tests.conformance.table import commands, dialogs, errors, hooks, mail, startup, turns
from tests.conformance.table.entry import Interaction

SECTIONS: tuple[tuple[str, tuple[Interaction, ...]], ...] = tuple(
    (module.SECTION, module.TABLE) for module in (startup, turns, dialogs, errors, hooks, commands, mail)
)
"""Heading and interactions of each part, in the order of the reference page."""

INTERACTIONS: tuple[Interaction, ...] = tuple(entry for _, entries in SECTIONS for entry in entries)
