"""Which line of a dialog carries out a policy, and the keys that pick it, for any client."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nbs_fleet.drivers.base import Dialog
from nbs_fleet.model import BlockedKind
from nbs_fleet.spec.team import Dialogs

Labels = Mapping[BlockedKind, tuple[str, ...]]
"""Regular expressions of the labels that carry out a wish, the wished ones first."""

NEVER = (BlockedKind.QUESTION, BlockedKind.LOGIN, BlockedKind.DRAFT)
"""What only a person answers."""


def choose(dialog: Dialog, policy: Dialogs, yes: Labels, no: Labels) -> int | None:
    """The index of the line that the policy asks for; None when a person must choose."""
    wish = getattr(policy, dialog.kind.value, "ask")
    if wish == "ask" or dialog.kind in NEVER:
        return None
    for pattern in (no if wish == "deny" else yes).get(dialog.kind, ()):
        for index, option in enumerate(dialog.options):
            if re.search(pattern, option.label):
                return index
    return None


def pick(dialog: Dialog, index: int) -> tuple[str, ...] | None:
    """Keys that choose one line of a dialog, for a client that takes a digit at once."""
    key = dialog.options[index].key
    return (key,) if key else walk(dialog, index)


def walk(dialog: Dialog, index: int) -> tuple[str, ...] | None:
    """Arrow keys from the cursor to a line, then Enter; None when the cursor is not known."""
    if dialog.cursor is None:
        return None
    steps = index - dialog.cursor
    return (*(("Down",) if steps > 0 else ("Up",)) * abs(steps), "Enter")
