"""What a person may choose where an agent needs one and no dialog is open: restart it, let it go on, stop it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class Deed(StrEnum):
    """What is done for an agent; the value is the key of the option."""

    RESTART = "restart"
    GO_ON = "go-on"
    STOP = "stop"
    REPLY = "reply"
    DISMISS = "dismiss"


class Remedy(Struct, frozen=True):
    """One choice: `deed`, what a list shows, and whether a text must go with it."""

    deed: Deed
    label: str
    needs_text: bool = False

    @property
    def option(self) -> tuple[str, str]:
        """(key, label), as a dialog's options are."""
        return self.deed.value, self.label


_RESTART = Remedy(Deed.RESTART, "restart it, in the same session")
_STOP = Remedy(Deed.STOP, "leave it stopped")
_GO_ON = Remedy(Deed.GO_ON, "try again: tell it to go on")
_REPLY = Remedy(Deed.REPLY, "reply with -m TEXT", needs_text=True)

REMEDIES: Mapping[str, tuple[Remedy, ...]] = {
    "login": (Remedy(Deed.GO_ON, "it is logged in now: tell it to go on"), _RESTART, _STOP),
    "limit": (_GO_ON, _RESTART, _STOP),
    "error": (_GO_ON, _RESTART, _STOP),
    "crash": (Remedy(Deed.RESTART, "start it now"), _STOP),
    "failed": (Remedy(Deed.RESTART, "start it again"), _STOP),
    "escalation": (_REPLY, Remedy(Deed.DISMISS, "it is settled"), _RESTART, _STOP),
    "context": (
        Remedy(Deed.GO_ON, "let it go on as it is"),
        Remedy(Deed.RESTART, "restart it, in the same session"),
        _STOP,
    ),
    "budget": (Remedy(Deed.GO_ON, "go on nevertheless"), _STOP),
    "idle-done": (Remedy(Deed.DISMISS, "well done"), _REPLY, _STOP),
}
"""By the reason of an item."""

GO_ON_TEXT = "Please go on where you were: what was in the way is settled."
"""What an agent is told that may go on."""


def options(kind: str) -> tuple[tuple[str, str], ...]:
    """(key, label) of each choice where this is the reason; none for a dialog with options of its own."""
    return tuple(remedy.option for remedy in REMEDIES.get(kind, ()))


def find(kind: str, choice: str) -> Remedy | None:
    """The remedy with this key or label, or the only one whose label begins so."""
    word = choice.strip().casefold()
    offered = REMEDIES.get(kind, ())
    exact = [r for r in offered if word in (r.deed.value, r.label.casefold())]
    begun = [r for r in offered if word and r.label.casefold().startswith(word)]
    if exact:
        return exact[0]
    return begun[0] if len(begun) == 1 else None
